"""The pages of golden queries: the list of them, and of each, whether it is flaky or newly broken."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from litestar import get
from litestar.params import FromQuery, QueryParameter
from litestar.response import Template
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.service.database import index_key
from ragcontract.service.known_contract import contract_of, golden_of, sender_of
from ragcontract.service.playground.judged_query import rules_of
from ragcontract.service.projects_and_runs import broken_rules, project_branch
from ragcontract.service.query_record import (
    FLAKY,
    LASTING,
    QueryRun,
    is_tolerated_in,
    record_of,
    was_ever_broken,
)
from ragcontract.service.trends import known_flaky
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import require_project_row, shown_page, when
from ragcontract.service.web.parameters import Asker, Background, Db, Slug
from ragcontract.service.web.problem_details import ProblemError

NO_QUERY = "neither the golden set nor a broken query of a recorded run has this id"
SLOTS = 40  # runs for which the strip has room at least, so that few runs are no wide bars
FIRST_ROWS = 20  # of the table of runs; whoever wants all 200 waits a little longer
LEAST_DEPTH = 5  # ranks on the axis, at least
BAR = 0.86  # of the room of a run
TOP, FLOOR = 34, 94  # pixels from the top, of rank 1 and of documents that were not retrieved


class Listed(Struct, frozen=True, kw_only=True):
    """A part of the golden queries."""

    queries: Sequence[GoldenQuery]
    of: int  # how many fit the search
    page: int
    pages: int


@get("/p/{slug:str}/queries", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def queries_page(
    *,
    principal: Asker,
    database: Db,
    trends: Background,
    slug: Slug,
    wanted: Annotated[str, QueryParameter(name="q")] = "",
    number: Annotated[int, QueryParameter(name="page", ge=1)] = 1,
) -> Template:
    """Show the golden queries of a project."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
        project = row["number"]
        contract = contract_of(connection, project, trends.folder)
        sender = sender_of(connection, project, contract)
        broken = broken_rules(connection, row["run"]) if row["run"] else {}
        golden = golden_of(contract)
        flaky = known_flaky(connection, project)
    return shown_page(
        "golden.html",
        principal,
        project=row,
        contract=contract,
        sender=sender,
        wanted=wanted,
        total=len(golden),
        listed=listed(golden, wanted, number),
        is_broken=lambda query_id: index_key(query_id) in broken,
        flaky=flaky,
    )


def listed(golden: Mapping[str, GoldenQuery], wanted: str, page: int) -> Listed:
    """Return a page of the queries that have a text in their ids or questions."""
    text = wanted.strip().casefold()
    fitting = [query for query in golden.values() if text in query.id.casefold() or text in query.query.casefold()]
    pages = -(-len(fitting) // bounds.PAGE_ITEMS) or 1
    page = min(page, pages)
    start = (page - 1) * bounds.PAGE_ITEMS
    return Listed(queries=fitting[start : start + bounds.PAGE_ITEMS], of=len(fitting), page=page, pages=pages)


@get("/p/{slug:str}/query", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def query_page(
    *,
    principal: Asker,
    database: Db,
    trends: Background,
    slug: Slug,
    query_id: Annotated[str, QueryParameter(name="id")],
    rows: FromQuery[Literal["all"] | None] = None,
) -> Template:
    """Show a query in its last runs. Its id is no part of the path, where a browser would change `..`."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
        project = row["number"]
        contract = contract_of(connection, project, trends.folder)
        golden = golden_of(contract).get(query_id)
        if golden is None and not was_ever_broken(connection, project, query_id):
            raise ProblemError(404, NO_QUERY)
        is_golden = golden is not None if contract.today else None
        record = record_of(connection, project, query_id, is_golden=is_golden)
        is_tolerated = record.is_broken and is_tolerated_in(connection, record.asked[-1].id, query_id)
        branch = project_branch(connection, project)
    return shown_page(
        "query.html",
        principal,
        project=row,
        branch=branch,
        query_id=query_id,
        golden=golden,
        is_golden=is_golden,
        rules=rules_of(contract.today[0], golden) if contract.today and golden else [],
        record=record,
        is_tolerated=is_tolerated,
        strip=strip_of(record.runs),
        rows=len(record.runs) if rows == "all" else FIRST_ROWS,
        definition={"switches": FLAKY, "lasting": LASTING},
        may_be_cut=len(golden_of(contract)) > bounds.ENTRY_FAILED,
    )


class Cell(Struct, frozen=True, kw_only=True):
    """A run in the picture, with its places as SVG has them."""

    run: QueryRun
    when: str
    left: str
    middle: str
    down: str  # of its best rank


class Strip(Struct, frozen=True, kw_only=True):
    """A picture of a query in consecutive runs: whether it held, and the best rank of a relevant document."""

    cells: Sequence[Cell]
    width: str  # of a bar
    right: str  # the end of the last one
    has_ranks: bool
    top: int = TOP
    floor: int = FLOOR


def strip_of(runs: Sequence[QueryRun]) -> Strip:
    """Return the picture of a query."""
    share = 100 / max(SLOTS, len(runs))
    depth = max([LEAST_DEPTH, *(run.rank for run in runs if run.rank is not None)])
    cells = []
    for number, run in enumerate(runs):
        down = FLOOR if run.rank is None else TOP + (run.rank - 1) / depth * (FLOOR - TOP)
        left, middle = (f"{share * (number + part):.3f}%" for part in (0, BAR / 2))
        cells.append(Cell(run=run, when=when(run.at), left=left, middle=middle, down=f"{down:.1f}"))
    has_ranks = any(run.ranks for run in runs)
    return Strip(cells=cells, width=f"{share * BAR:.3f}%", right=f"{share * len(runs):.3f}%", has_ranks=has_ranks)


ROUTES = (queries_page, query_page)
