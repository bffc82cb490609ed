"""The first page, which says whether anything is broken now."""

from litestar import get
from litestar.response import Template

from ragcontract.core import bounds
from ragcontract.service.projects_and_runs import projects_after
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import shown_page
from ragcontract.service.web.parameters import Asker, Db


@get("/", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def overview_page(principal: Asker, database: Db) -> Template:
    """Show the state of each project."""
    with database.read() as connection:
        rows = projects_after(connection, principal, None, bounds.PAGE_ITEMS)
    return shown_page("overview.html", principal, projects=rows)


ROUTES = (overview_page,)
