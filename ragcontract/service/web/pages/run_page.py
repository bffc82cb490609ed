"""The pages of a run, which say why it failed, and what changed since the last pass."""

from litestar import get
from litestar.params import FromPath
from litestar.response import Template

from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import require_project_row, shown_page
from ragcontract.service.web.parameters import Asker, Db, Number, require_run


@get("/runs/{number:int}", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def run_page(principal: Asker, database: Db, number: Number) -> Template:
    """Show a run."""
    with database.read() as connection:
        run = require_run(connection, principal, number)
        row = require_project_row(connection, principal, run["project"])
    return shown_page("run.html", principal, project=row, run=run)


@get("/runs/{number:int}/compare/{other:str}", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def compare_page(principal: Asker, database: Db, number: Number, other: FromPath[str]) -> Template:
    """Show what changed in a run since another one: its id, or `last-pass`."""
    with database.read() as connection:
        run = require_run(connection, principal, number)
        row = require_project_row(connection, principal, run["project"])
    return shown_page("compare.html", principal, project=row, run=run, other=other)


ROUTES = (run_page, compare_page)
