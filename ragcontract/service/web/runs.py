"""The routes of runs: lists of them, what is recorded of each, its files, and what changed since another run."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Annotated

import msgspec
from litestar import Response, get
from litestar.params import FromQuery, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection, RowMapping

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.choose_baseline import LAST_PASS, document_of
from ragcontract.history.entry import EntryGate, EntryMetric
from ragcontract.report.comparison import RunComparison
from ragcontract.report.html import page
from ragcontract.report.json_report import decoded, refusing_inconsistent
from ragcontract.report.record import ErrorReport, Report
from ragcontract.service.accounts import Principal
from ragcontract.service.blobs import blob
from ragcontract.service.database import Database, Milliseconds, index_key
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.known_contract import contract_digest, contract_of
from ragcontract.service.projects_and_runs import State, broken_rules, log_of, runs_before
from ragcontract.service.run_diff import ChangedQuery, RunDiff, diff, last_pass, recorded_entry, side_of
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.parameters import (
    DEFAULT_LIMIT,
    Asker,
    Background,
    Cursor,
    Db,
    Limit,
    Number,
    Page,
    Slug,
    Whole,
    page_of,
    position_of,
    require_project,
    require_run,
)
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.request_limits import expensive

JSON, HTML = "application/json", "text/html"

_NUMBER = re.compile("[0-9]{1,19}")
_KEY = itemgetter("id", "key", "results")


class ListedRun(Struct, frozen=True, kw_only=True):
    """A run in short."""

    id: int
    project: Annotated[str, Meta(description="The slug of its project.")]
    key: Annotated[str, Meta(description="The id of its entry.")]
    origin: Annotated[str, Meta(description="Where it ran: `ci`, or `service`.")]
    state: State
    verdict: Annotated[str | None, Meta(description="`pass` or `fail`; null before it is known.")]
    summary: str | None
    commit: str | None
    branch: str | None
    event: Annotated[str | None, Meta(description="What started it: such as push in CI; `manual` or `schedule` here.")]
    pull_request: int | None
    created_at: Milliseconds
    started_at: int | None
    finished_at: int | None
    note: Annotated[str | None, Meta(description="Why somebody started it.")]


class BrokenQuery(Struct, frozen=True, kw_only=True):
    """A query that is broken."""

    id: str
    fails: Annotated[bool, Meta(description="False if it does not fail by itself: known, waived and such.")]
    rules: Annotated[list[str], Meta(description="The broken rules; empty if the run was sent without its report.")]


class RunBlobs(Struct, frozen=True, kw_only=True):
    """The digests of what was sent with a run; null for what was not."""

    report: str | None
    results: str | None
    golden: str | None


class Run(ListedRun, frozen=True, kw_only=True):
    """All that is recorded of a run."""

    ci_run: int | None
    ci_attempt: int | None
    attempt: Annotated[int, Meta(description="How often a worker of the service has begun it; 0 for one of CI.")]
    created_by: Annotated[str | None, Meta(description="Who started or sent it, such as user:ana, or schedule.")]
    problem: Annotated[str | None, Meta(description="Why it has no verdict.")]
    log: Annotated[str | None, Meta(description="What it printed last; null of a run that CI sent.")]
    run_url: Annotated[str | None, Meta(description="The page of its CI job, as CI named it.")]
    accepted: Annotated[bool, Meta(description="A label accepted that the contract is broken.")]
    dirty: Annotated[bool, Meta(description="Files were changed, so the commit is not what ran.")]
    pass_rate: float | None
    metrics: dict[str, EntryMetric]
    gates: list[EntryGate]
    broken: list[BrokenQuery]
    blobs: RunBlobs
    links: Annotated[dict[str, str], Meta(description="The addresses of what there is of the run.")]


class ComparedWith(Struct, frozen=True, kw_only=True):
    """What changed in a run since another one."""

    against: ListedRun
    comparison: Annotated[RunComparison, Meta(description="As of `rag-contract compare`; the other run is the first.")]
    lost: Annotated[
        list[ChangedQuery], Meta(description="The queries that hold in the other run and are broken in this one.")
    ]
    won: Annotated[list[ChangedQuery], Meta(description="The queries that were broken and hold now.")]
    more_lost: Annotated[int, Meta(description="How many further queries were lost.")]
    more_won: Annotated[int, Meta(description="How many further queries hold now.")]


@get("/projects/{slug:str}/runs", access=READ, sync_to_thread=True)
def list_runs(
    *,
    principal: Asker,
    database: Db,
    slug: Slug,
    run_state: Annotated[State | None, QueryParameter(name="state")] = None,
    branch: FromQuery[str | None] = None,
    commit: Annotated[str | None, QueryParameter(description="The beginning of a commit, at least 7 digits.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[ListedRun]:
    """Return the runs of a project, the newest first."""
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        before = position_of(cursor, tuple[Whole, Whole])
        rows = runs_before(
            connection, project, state=run_state, branch=branch, commit=commit, before=before, limit=limit
        )
    return page_of(rows, limit, ListedRun, lambda row: (row["created_at"], row["id"]))


@get("/runs/{number:int}", access=READ, sync_to_thread=True)
def show_run(principal: Asker, database: Db, number: Number) -> Run:
    """Return what is recorded of a run."""
    with database.read() as connection:
        row = require_run(connection, principal, number)
        rules, log = broken_rules(connection, number), log_of(connection, number)
    entry = recorded_entry(row)
    queries = [(query, True) for query in entry.failed] + [(query, False) for query in entry.tolerated] if entry else []
    address = f"/api/v1/runs/{number}"
    files = {"report.json": row["report"], "report.html": row["report"], "baseline.json": row["results"]}
    return Run(
        **msgspec.structs.asdict(msgspec.convert(row, ListedRun)),
        ci_run=row["ci_run"],
        ci_attempt=row["ci_attempt"],
        attempt=row["attempt"],
        created_by=row["created_by"],
        problem=row["problem"],
        log=log,
        run_url=entry.source.run_url if entry else None,
        accepted=entry.accepted if entry else False,
        dirty=entry.source.dirty if entry else False,
        pass_rate=entry.pass_rate if entry else None,
        metrics=entry.metrics if entry else {},
        gates=entry.gates if entry else [],
        broken=[BrokenQuery(id=query, fails=fails, rules=rules.get(index_key(query), [])) for query, fails in queries],
        blobs=msgspec.convert(row, RunBlobs),
        links={"self": address} | {name: f"{address}/{name}" for name, blob_of in files.items() if blob_of},
    )


@get("/runs/{number:int}/report.json", access=READ, sync_to_thread=True, media_type=JSON)
def report_json(principal: Asker, database: Db, number: Number) -> Response[bytes]:
    """Return the report of a run as it was sent."""
    return Response(_blob(database, _report_of(_run(database, principal, number))), media_type=JSON)


@get("/runs/{number:int}/report.html", access=READ, sync_to_thread=True, media_type=HTML)
def report_html(principal: Asker, database: Db, number: Number) -> Response[bytes]:
    """Return the report of a run as a page. It is a document of its own, which nothing in the service trusts."""
    content = _page(database, _report_of(_run(database, principal, number)))
    policy = f"{page.policy()}; frame-ancestors 'none'; sandbox allow-scripts"
    return Response(content, media_type=HTML, headers={"Content-Security-Policy": policy})


def stored_report(database: Database, sha256: str) -> Report | None:
    """Return the report of a run; None if it has no verdict, as no entry names one."""
    report = decoded(_blob(database, sha256), "report.json")
    return None if isinstance(report, ErrorReport) else report


@expensive  # rendering a thousand queries takes a fifth of a second, and a report never changes
def _page(database: Database, sha256: str) -> bytes:
    report = stored_report(database, sha256)
    if report is None:
        raise ProblemError(404, "the report has no verdict")
    with refusing_inconsistent("report.json"):
        return page.render(report)


@get("/runs/{number:int}/baseline.json", access=READ, sync_to_thread=True, media_type=JSON)
def baseline_json(principal: Asker, database: Db, number: Number) -> Response[bytes]:
    """Return the baseline that a run would make."""
    entry = recorded_entry(_run(database, principal, number))
    if entry is None:
        raise ProblemError(404, "the run has no results")
    try:
        return Response(document_of(DatabaseStore(database, principal), entry), media_type=JSON)
    except InputError as error:
        raise ProblemError(404, error.problems[0], error.problems) from error


@get("/runs/{number:int}/diff", access=READ, sync_to_thread=True)
def run_diff(
    *,
    principal: Asker,
    database: Db,
    trends: Background,
    number: Number,
    against: Annotated[str, QueryParameter(description="`last-pass`, or the id of a run of the project.")] = LAST_PASS,
) -> ComparedWith:
    """Return what changed in a run since another one, under the contract of today."""
    with database.read() as connection:
        run = require_run(connection, principal, number)
        other = other_run(connection, principal, run, against)
        if other is None:
            raise ProblemError(404, "no run of the project's branch passed before this one")
    made = diff_of(database, principal, (other, run), trends.folder)
    most = bounds.SERVICE_DIFF_QUERIES
    return ComparedWith(
        against=msgspec.convert(other, ListedRun),
        comparison=made.comparison,
        lost=[*made.lost[:most]],
        won=[*made.won[:most]],
        more_lost=max(0, len(made.lost) - most),
        more_won=max(0, len(made.won) - most),
    )


def other_run(connection: Connection, principal: Principal, run: RowMapping, against: str) -> RowMapping | None:
    """Return what a run is compared with: the last pass, None if there is none, or the run that has this id.

    Answers 404 if no run of the project has it.
    """
    if against == LAST_PASS:
        return last_pass(connection, require_project(connection, principal, run["project"]), run)
    other = require_run(connection, principal, int(against) if _NUMBER.fullmatch(against) else 0)
    if other["project"] != run["project"]:
        raise ProblemError(404, "the other run is of another project")
    return other


def diff_of(database: Database, principal: Principal, compared: Sequence[RowMapping], folder: Path | None) -> RunDiff:
    """Return what changed between two runs, the one before and the one now; see :func:`~.run_diff.diff`."""
    with database.read() as connection:
        project = require_project(connection, principal, compared[1]["project"])
        digest = contract_digest(connection, project, folder)
    return _diff(database, project, folder, digest, tuple(map(_KEY, compared)))


@expensive  # scoring a thousand queries takes a third of a second
def _diff(
    database: Database,
    project: int,
    folder: Path | None,
    _digest: str | None,  # of the contract: with another one, the runs are scored again
    compared: Sequence[tuple[int, str, str | None]],  # their ids, keys and result sets, which may come later
) -> RunDiff:
    reader = Principal(actor="diff", project_id=project)
    with database.read() as connection:
        contract = contract_of(connection, project, folder)
        sides = [side_of(connection, require_run(connection, reader, number)) for number, *_ in compared]
    return diff(contract, sides, datetime.now(UTC))


def _run(database: Database, principal: Principal, number: int) -> RowMapping:
    with database.read() as connection:
        return require_run(connection, principal, number)


def _report_of(row: RowMapping) -> str:
    if row["report"] is None:
        raise ProblemError(404, "the run was sent without its report")
    return str(row["report"])


def _blob(database: Database, sha256: str) -> bytes:
    with database.read() as connection:
        return blob(connection, sha256) or b""


ROUTES = (list_runs, show_run, report_json, report_html, baseline_json, run_diff)
