"""Reads projects and runs for lists, page by page, and what is recorded of one run."""

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from sqlalchemy import Connection, RowMapping, Select, and_, or_, select, tuple_

from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import visible
from ragcontract.history.entry import SHORT_COMMIT, is_commit_start
from ragcontract.service.access import Principal
from ragcontract.service.blobs import seen_runs
from ragcontract.service.database import storable
from ragcontract.service.record_entry import BIGINT
from ragcontract.service.recorded import at_commit, seen
from ragcontract.service.tables import broken, projects, runs

State = Literal["queued", "running", "completed", "blocked", "failed", "cancelled"]
Rows: TypeAlias = Sequence[RowMapping]
LISTED = (
    runs.c.id,
    projects.c.slug.label("project"),
    *(runs.c.key, runs.c.origin, runs.c.state, runs.c.verdict, runs.c.summary, runs.c.commit_sha.label("commit")),
    *(runs.c.branch, runs.c.event, runs.c.pull_request, runs.c.created_at, runs.c.started_at, runs.c.finished_at),
)
DETAILS = (runs.c.entry, runs.c.report, runs.c.results, runs.c.golden, runs.c.ci_run, runs.c.ci_attempt, runs.c.problem)


def page_of(rows: Rows, limit: int) -> tuple[Rows, bool]:
    """Return the rows of a page, of which one more was asked for, and whether there are more."""
    return rows[:limit], len(rows) > limit


def cursor_of(*position: int | str) -> str:
    """Return what stands for a position in a list; clients hand it back as it is."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def position_of(cursor: str, kind: Any) -> Any:
    """Return the position that a cursor stands for, as a tuple of this type; raises InputError for any other text."""
    try:
        data = base64.b64decode(f"{cursor}{'=' * (-len(cursor) % 4)}", altchars=b"-_", validate=True)
        position = msgspec.json.decode(data, type=kind)
    except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
        raise InputError(["cursor: is not one of this list"]) from error
    if any(isinstance(part, int) and abs(part) > BIGINT for part in position):
        raise InputError(["cursor: is not one of this list"])
    return tuple(storable(part) if isinstance(part, str) else part for part in position)


def projects_after(connection: Connection, principal: Principal, cursor: str | None, limit: int) -> Rows:
    """Return one project more than ``limit``, by their slugs, each with the newest run of its branch."""
    query = _projects(principal).order_by(projects.c.slug).limit(limit + 1)
    if cursor is not None:
        query = query.where(projects.c.slug > position_of(cursor, tuple[str])[0])
    return connection.execute(query).mappings().all()


def project_named(connection: Connection, principal: Principal, slug: str) -> RowMapping | None:
    """Return a project as :func:`projects_after` does; None if there is none that the principal sees."""
    return connection.execute(_projects(principal).where(projects.c.slug == storable(slug))).mappings().one_or_none()


def _projects(principal: Principal) -> "Select[Any]":
    of_project = runs.alias("of_project")
    newest = (
        select(of_project.c.id)
        .where(
            of_project.c.project_id == projects.c.id,
            of_project.c.verdict.is_not(None),
            or_(projects.c.branch.is_(None), of_project.c.branch == projects.c.branch),
        )
        .order_by(of_project.c.created_at.desc(), of_project.c.id.desc())
        .limit(1)
        .correlate(projects)
        .scalar_subquery()
    )
    columns = projects.c.slug, projects.c.name, projects.c.repository, projects.c.branch, projects.c.created_at
    of_run = runs.c.verdict, runs.c.id.label("run"), runs.c.commit_sha.label("commit"), runs.c.created_at.label("at")
    joined = projects.outerjoin(runs, runs.c.id == newest)
    return select(*columns, *of_run).select_from(joined).where(seen(principal))


def runs_before(
    connection: Connection,
    project: int,
    *,
    state: State | None = None,
    branch: str | None = None,
    commit: str | None = None,
    cursor: str | None = None,
    limit: int,
) -> Rows:
    """Return one run more than ``limit``, the newest first. Raises InputError for what is no commit or cursor."""
    wanted = [runs.c.project_id == project]
    if state is not None:
        wanted.append(runs.c.state == state)
    if branch is not None:
        wanted.append(runs.c.branch == storable(branch))
    if commit is not None:
        if not is_commit_start(commit):
            raise InputError([f"commit: {visible(commit)!r} is not the beginning of one, of {SHORT_COMMIT} digits"])
        wanted.append(at_commit(commit))
    if cursor is not None:
        at, number = position_of(cursor, tuple[int, int])
        wanted.append(tuple_(runs.c.created_at, runs.c.id) < (at, number))
    newest = select(*LISTED).join(projects).where(and_(*wanted)).order_by(runs.c.created_at.desc(), runs.c.id.desc())
    return connection.execute(newest.limit(limit + 1)).mappings().all()


def run_numbered(connection: Connection, principal: Principal, number: int) -> RowMapping | None:
    """Return a run; None if there is none that the principal sees."""
    if abs(number) > BIGINT:
        return None
    query = select(*LISTED, *DETAILS).join(projects).where(runs.c.id == number, seen_runs(principal))
    return connection.execute(query).mappings().one_or_none()


def broken_rules(connection: Connection, number: int) -> dict[str, list[str]]:
    """Return the names of the broken rules of a run by what stands for a query in an index."""
    rows = connection.execute(select(broken.c.query_id, broken.c.rules).where(broken.c.run_id == number))
    return {row.query_id: msgspec.json.decode(row.rules, type=list[str]) for row in rows}
