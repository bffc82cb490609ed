"""The pages of golden queries: the list of them, and of each, whether it is flaky or newly broken."""

from typing import Annotated

from litestar import get
from litestar.params import QueryParameter
from litestar.response import Template

from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import require_project_row, shown_page
from ragcontract.service.web.parameters import Asker, Db, Slug


@get("/p/{slug:str}/queries", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def queries_page(principal: Asker, database: Db, slug: Slug) -> Template:
    """Show the golden queries of a project."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
    return shown_page("golden.html", principal, project=row)


@get("/p/{slug:str}/query", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def query_page(
    principal: Asker, database: Db, slug: Slug, query_id: Annotated[str, QueryParameter(name="id")]
) -> Template:
    """Show a query in its last runs. Its id is no part of the path, where a browser would change `..`."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
    return shown_page("query.html", principal, project=row, query_id=query_id)


ROUTES = (queries_page, query_page)
