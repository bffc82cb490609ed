"""The page of the runs of a project, which finds the run that somebody looks for."""

from litestar import get
from litestar.response import Template

from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import require_project_row, shown_page
from ragcontract.service.web.parameters import Asker, Db, Slug


@get("/p/{slug:str}/runs", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def runs_page(principal: Asker, database: Db, slug: Slug) -> Template:
    """Show the runs of a project, the newest first."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
    return shown_page("run_list.html", principal, project=row)


ROUTES = (runs_page,)
