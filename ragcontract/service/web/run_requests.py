"""The routes that start and cancel runs of mounted projects. A request says which project, and may say why: no more.

What is run is only what the operator has mounted.
"""

from pathlib import Path
from typing import Annotated

from litestar import Response, post
from litestar.params import JSONBody
from msgspec import Meta, Struct
from sqlalchemy import Connection, RowMapping

from ragcontract.core import bounds
from ragcontract.history.interface import ConflictError
from ragcontract.service.accounts import Principal
from ragcontract.service.audit import Author, record
from ragcontract.service.database import Database, storable
from ragcontract.service.projects_and_runs import State
from ragcontract.service.web.authentication import Access
from ragcontract.service.web.parameters import (
    API,
    Asker,
    By,
    Db,
    Mounts,
    Number,
    Slug,
    require_mounted,
    require_project,
    require_run,
)
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.workers.run_queue import QueueFullError, ask_to_cancel, enqueue

RUN = Access(role="editor", scope="run")
MANUAL = "manual"
AGAIN = 60  # seconds until a queue that is full may have room
OVER = "the run is over already"


class NewRun(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to start."""

    note: Annotated[Annotated[str, Meta(max_length=bounds.RUN_NOTE)] | None, Meta(description="Why it is started.")] = (
        None
    )


class StartedRun(Struct, frozen=True, kw_only=True):
    """A run that waits, is run, or is being cancelled."""

    id: int
    state: State


@post("/projects/{slug:str}/runs", access=RUN, status_code=202, sync_to_thread=True)
def post_run(
    *, principal: Asker, database: Db, author: By, mounts: Mounts, slug: Slug, data: JSONBody[NewRun]
) -> Response[StartedRun]:
    """Start a run of a mounted project: its system is asked the golden queries, and its contract is checked."""
    number = start_run(database, mounts, slug, principal=principal, author=author, note=data.note)
    location = {"Location": f"{API}/runs/{number}"}
    return Response(StartedRun(id=number, state="queued"), status_code=202, headers=location)


@post("/runs/{number:int}/cancel", access=RUN, status_code=202, sync_to_thread=True)
def post_cancel(principal: Asker, database: Db, author: By, number: Number) -> StartedRun:
    """Cancel a run. One that is at work ends within seconds, and keeps what it has printed."""
    return StartedRun(id=number, state=cancel_run(database, principal, author, number)["state"])


def start_run(
    database: Database, mounts: Path | None, slug: str, *, principal: Principal, author: Author, note: str | None
) -> int:
    """Start a run and return its id; answers 404, 409 if the project cannot be run here, and 429 if too many wait."""
    with database.read() as connection:
        require_project(connection, principal, slug)
    require_mounted(mounts, slug)

    def job(connection: Connection) -> int:
        project = require_project(connection, principal, slug)
        text = storable(note).strip() if note else ""
        number = enqueue(connection, project, event=MANUAL, created_by=author.actor, note=text or None, now=author.at)
        record(connection, author, "run.start", f"run:{number}", f"{slug}: {text}" if text else slug)
        return number

    try:
        return database.write(job)
    except QueueFullError as error:
        raise ProblemError(429, str(error), retry_after=AGAIN) from error


def cancel_run(database: Database, principal: Principal, author: Author, number: int) -> RowMapping:
    """Cancel a run and return it; answers 404, and 409 if it is over."""

    def job(connection: Connection) -> RowMapping:
        run = require_run(connection, principal, number)
        if not ask_to_cancel(connection, number, author.at):
            raise ConflictError([OVER])
        record(connection, author, "run.cancel", f"run:{number}", str(run["project"]))
        return require_run(connection, principal, number)

    return database.write(job)


def why_not(mounts: Path | None, slug: str) -> str:
    """Return why a project cannot be run here, and what to do; empty if it can."""
    try:
        require_mounted(mounts, slug)
    except ProblemError as problem:
        return str(problem)
    return ""


ROUTES = (post_run, post_cancel)
