"""The first page, which says whether anything is broken now."""

from typing import Any

from litestar import Request, get
from litestar.response import Template

from ragcontract.service.database import now_ms
from ragcontract.service.project_states import states_of
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import service_address, shown_page
from ragcontract.service.web.parameters import Asker, Db


@get("/", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def overview_page(request: Request[Any, Any, Any], principal: Asker, database: Db) -> Template:
    """Show the state of each project, the broken ones first, and the newest runs."""
    with database.read() as connection:
        states = states_of(connection, principal, now_ms())
    return shown_page("overview.html", principal, states=states, service=service_address(request))


ROUTES = (overview_page,)
