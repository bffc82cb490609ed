"""The page of the runs of a project, which finds the run that somebody looks for."""

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

import msgspec
from litestar import get, post
from litestar.params import FromQuery, QueryParameter, URLEncodedBody
from litestar.response import Redirect, Template
from msgspec import Struct
from sqlalchemy import Connection, RowMapping

from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten
from ragcontract.history.entry import SHORT_COMMIT, is_commit_start
from ragcontract.service.accounts import Principal
from ragcontract.service.database import Database
from ragcontract.service.projects_and_runs import State, runs_before, unended_runs, verdicts_before
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.page_frame import address, require_project_row, shown_page
from ragcontract.service.web.parameters import (
    DEFAULT_LIMIT,
    Asker,
    By,
    Db,
    Mounts,
    Slug,
    Whole,
    page_of,
    position_of,
)
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.run_requests import RUN, NewRun, start_run, why_not
from ragcontract.service.web.runs import ListedRun

STATES: dict[State, str] = {
    "completed": "passed",
    "blocked": "failed",
    "failed": "no verdict",
    "queued": "queued",
    "running": "running",
    "cancelled": "cancelled",
}
NEXT_RUNS = 5  # of those that wait; the others are counted
TURNS = {("fail", "pass"): "first failure", ("pass", "fail"): "passes again"}  # the verdict now, and before


class Wanted(Struct, frozen=True, kw_only=True):
    """Which runs somebody looks for, as it was typed; empty for all."""

    state: str = ""
    branch: str = ""
    commit: str = ""
    until: str = ""

    @property
    def query(self) -> dict[str, str]:
        """What the address of the page says of it."""
        return {name: text for name, text in msgspec.structs.asdict(self).items() if text}

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with it."""
        if self.state and self.state not in STATES:
            yield f"There is no state {shorten(self.state, 40)!r}: choose one of the list."
        if self.commit and not is_commit_start(self.commit):
            begins = f"type at least {SHORT_COMMIT} digits of its beginning, 0 to 9 and a to f"
            yield f"{shorten(self.commit, 70)!r} is no commit: {begins}."
        try:
            self.end()
        except (ValueError, OverflowError):
            yield f"{shorten(self.until, 40)!r} is no day: type one such as 2026-11-24."

    def end(self) -> int | None:
        """Return when the last day is over, in milliseconds since 1970; raises ValueError or OverflowError."""
        if not self.until:
            return None
        day = date.fromisoformat(self.until) + timedelta(days=1)
        return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 1000


ALL = Wanted()


class Listed(Struct, frozen=True, kw_only=True):
    """A page of runs, what is notable about some of them, and where older ones begin."""

    unended: Sequence[RowMapping]  # those that wait or are at work, if this is the first page of all runs
    runs: list[ListedRun]
    turns: dict[int, str]  # by the id of the run
    older: str | None

    @property
    def queued(self) -> int:
        """How many wait."""
        return sum(run["state"] == "queued" for run in self.unended)


@get("/p/{slug:str}/runs", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def runs_page(
    *,
    principal: Asker,
    database: Db,
    mounts: Mounts,
    slug: Slug,
    run_state: Annotated[str, QueryParameter(name="state")] = "",
    branch: FromQuery[str] = "",
    commit: FromQuery[str] = "",
    until: FromQuery[str] = "",
    cursor: FromQuery[str | None] = None,
) -> Template:
    """Show the runs of a project, the newest first."""
    wanted = Wanted(state=run_state, branch=branch.strip(), commit=commit.strip().lower(), until=until.strip())
    return _page(database, principal, mounts, slug, wanted=wanted, cursor=cursor)


@post("/p/{slug:str}/runs", access=RUN, page=True, include_in_schema=False, sync_to_thread=True)
def start_here(
    *, principal: Asker, database: Db, author: By, mounts: Mounts, slug: Slug, data: URLEncodedBody[NewRun]
) -> Redirect | Template:
    """Start a run, and lead to its page."""
    try:
        number = start_run(database, mounts, slug, principal=principal, author=author, note=data.note)
    except ProblemError as problem:
        if problem.status == HTTPStatus.NOT_FOUND:
            raise
        return _page(database, principal, mounts, slug, refused=problem, note=data.note or "")
    return Redirect(address("runs", number), status_code=SEE_OTHER)


def _page(
    database: Database,
    principal: Principal,
    mounts: Path | None,
    slug: str,
    *,
    wanted: Wanted = ALL,
    cursor: str | None = None,
    refused: ProblemError | None = None,
    note: str = "",
) -> Template:
    problems, listed = [*wanted.problems()], None
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
        if not problems:
            try:
                listed = _listed(connection, row["number"], wanted, cursor)
            except InputError:  # of the cursor
                problems = ["This address of a page of the list is damaged: start with the newest runs."]
    may_run = RUN.admits(principal)
    page = shown_page(
        "run_list.html",
        principal,
        project=row,
        wanted=wanted,
        states=STATES,
        problems=problems,
        listed=listed,
        is_first=cursor is None,
        newest_page=address("p", slug, "runs", **wanted.query),
        may_run=may_run,
        why_not=why_not(mounts, slug) if may_run else "",
        refused=str(refused) if refused else "",
        note=note,
        most=NEXT_RUNS,
    )
    page.status_code = refused.status if refused else 422 if problems else 200
    return page


def _listed(connection: Connection, project: int, wanted: Wanted, cursor: str | None) -> Listed:
    shows_all = not wanted.query
    rows = runs_before(
        connection,
        project,
        state=msgspec.convert(wanted.state or None, State | None),
        branch=wanted.branch or None,
        commit=wanted.commit or None,
        until=wanted.end(),
        before=position_of(cursor, tuple[Whole, Whole]),
        ended=shows_all,
        limit=DEFAULT_LIMIT,
    )
    page = page_of(rows, DEFAULT_LIMIT, ListedRun, lambda row: (row["created_at"], row["id"]))
    before = verdicts_before(connection, [run.id for run in page.items])
    turns = {run.id: TURNS.get((run.verdict or "", before.get(run.id, "")), "") for run in page.items}
    unended = unended_runs(connection, project) if shows_all and cursor is None else []
    return Listed(unended=unended, runs=page.items, turns=turns, older=page.next)


ROUTES = (runs_page, start_here)
