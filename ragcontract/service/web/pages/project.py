"""The page of a project, which says when quality moved, and which commit moved it."""

from litestar import get
from litestar.response import Template

from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import require_project_row, shown_page
from ragcontract.service.web.parameters import Asker, Db, Slug


@get("/p/{slug:str}", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def project_page(principal: Asker, database: Db, slug: Slug) -> Template:
    """Show the metrics of a project over time."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
    return shown_page("project.html", principal, project=row)


ROUTES = (project_page,)
