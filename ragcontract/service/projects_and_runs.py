"""Looks up projects and runs: those that somebody may see, page by page, and the newest of a branch."""

import secrets
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, RowMapping, Select, and_, false, func, or_, select, true, tuple_

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import visible
from ragcontract.history.entry import SHORT_COMMIT, is_commit_start, is_folder_name
from ragcontract.service.accounts import Principal
from ragcontract.service.database import BIGINT, Rows, insert_if_new, storable
from ragcontract.service.tables import broken, projects, runs, trends

State = Literal["queued", "running", "completed", "blocked", "failed", "cancelled"]
LISTED = (
    runs.c.id,
    projects.c.slug.label("project"),
    projects.c.name.label("project_name"),
    *(runs.c.key, runs.c.origin, runs.c.state, runs.c.verdict, runs.c.summary, runs.c.commit_sha.label("commit")),
    *(runs.c.branch, runs.c.event, runs.c.pull_request, runs.c.created_at, runs.c.started_at, runs.c.finished_at),
    runs.c.note,
)
DETAILS = (
    *(runs.c.entry, runs.c.report, runs.c.results, runs.c.golden, runs.c.ci_run, runs.c.ci_attempt, runs.c.problem),
    *(runs.c.attempt, runs.c.created_by, runs.c.cancel, runs.c.lease_until),
)
OUTDATED = 0  # in place of when a trend was computed
NEWEST = (runs.c.created_at.desc(), runs.c.id.desc())


def projects_after(connection: Connection, principal: Principal, after: str | None, limit: int) -> Rows:
    """Return one project more than ``limit``, by their slugs, each with the newest run of its branch."""
    query = _projects(principal).order_by(projects.c.slug).limit(limit + 1)
    if after is not None:
        query = query.where(projects.c.slug > after)
    return connection.execute(query).mappings().all()


def all_projects(connection: Connection, principal: Principal) -> "Sequence[RowMapping]":
    """Return the projects that somebody sees as :func:`projects_after` does."""
    return connection.execute(_projects(principal)).mappings().all()


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
    more = projects.c.id.label("number"), runs.c.summary
    joined = projects.outerjoin(runs, runs.c.id == newest)
    return select(*columns, *of_run, *more).select_from(joined).where(seen(principal))


def runs_before(
    connection: Connection,
    project: int,
    *,
    state: State | None = None,
    branch: str | None = None,
    commit: str | None = None,
    until: int | None = None,
    before: tuple[int, int] | None = None,
    ended: bool = False,
    limit: int,
) -> Rows:
    """Return one run more than ``limit``, the newest first; ``until`` is the time from which on runs are left out.

    With ``ended``, those that wait or are at work are left out as well.

    Raises InputError for what is no commit.
    """
    wanted = [runs.c.project_id == project]
    if state is not None:
        wanted.append(runs.c.state == state)
    if ended:
        wanted.append(runs.c.state.not_in(["queued", "running"]))
    if branch is not None:
        wanted.append(runs.c.branch == storable(branch))
    if commit is not None:
        if not is_commit_start(commit):
            raise InputError([f"commit: {visible(commit)!r} is not the beginning of one, of {SHORT_COMMIT} digits"])
        wanted.append(at_commit(commit))
    if until is not None:
        wanted.append(runs.c.created_at < until)
    if before is not None:
        wanted.append(tuple_(runs.c.created_at, runs.c.id) < before)
    newest = select(*LISTED).join(projects).where(and_(*wanted)).order_by(*NEWEST)
    return connection.execute(newest.limit(limit + 1)).mappings().all()


def unended_runs(connection: Connection, project: int) -> Rows:
    """Return the runs of a project that are at work or wait, in the order in which they began or will."""
    unended = runs.c.project_id == project, runs.c.state.in_(["queued", "running"])
    query = select(*LISTED, runs.c.created_by).join(projects).where(*unended)
    return connection.execute(query.order_by(runs.c.state.desc(), runs.c.created_at, runs.c.id)).mappings().all()


def place_in_queue(connection: Connection, run: RowMapping) -> int:
    """Return the place of a run that waits, among those of all projects: 1 for the next one."""
    before = tuple_(runs.c.created_at, runs.c.id) <= (run["created_at"], run["id"])
    waiting = select(func.count()).select_from(runs).where(runs.c.state == "queued", before)
    return int(connection.execute(waiting).scalar_one())


def verdicts_before(connection: Connection, numbers: Collection[int]) -> dict[int, str]:
    """Return for each of these runs the verdict of the run before it on its branch, if there is one nearby."""
    earlier = runs.alias("earlier")
    is_before = tuple_(earlier.c.created_at, earlier.c.id) < tuple_(runs.c.created_at, runs.c.id)
    near = (
        select(earlier.c.branch, earlier.c.verdict, earlier.c.created_at, earlier.c.id)
        .where(earlier.c.project_id == runs.c.project_id, is_before)
        .order_by(earlier.c.created_at.desc(), earlier.c.id.desc())
        .limit(bounds.SERVICE_RUNS_BEFORE)
        .correlate(runs)
        .subquery()
    )
    verdict = (
        select(near.c.verdict)
        .where(near.c.branch.is_not_distinct_from(runs.c.branch), near.c.verdict.is_not(None))
        .order_by(near.c.created_at.desc(), near.c.id.desc())
        .limit(1)
        .correlate(runs)
        .scalar_subquery()
    )
    rows = connection.execute(select(runs.c.id, verdict.label("before")).where(runs.c.id.in_(numbers)))
    return {row.id: row.before for row in rows if row.before is not None}


def log_of(connection: Connection, number: int) -> str | None:
    """Return the last lines that a run printed; None of a run that CI sent."""
    log: str | None = connection.execute(select(runs.c.log).where(runs.c.id == number)).scalar()
    return log


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


def seen(principal: Principal) -> "ColumnElement[bool]":
    """Return the condition that a principal sees a project."""
    return true() if principal.project_id is None else projects.c.id == principal.project_id


def project_id(connection: Connection, slug: str, principal: Principal | None = None) -> int | None:
    """Return the id of a project; None if there is none, or none that the principal sees."""
    if not is_folder_name(slug):
        return None
    condition = seen(principal) if principal else true()
    return connection.execute(select(projects.c.id).where(projects.c.slug == slug, condition)).scalar()


def add_project(connection: Connection, slug: str, name: str, now: int, *, repository: str | None = None) -> bool:
    """Add a project unless there is one of this slug; return whether it is new."""
    row = {"slug": slug, "name": storable(name), "repository": repository and storable(repository), "created_at": now}
    return insert_if_new(connection, projects, row | {"secret": secrets.token_hex()})


def at_commit(start: str) -> "ColumnElement[bool]":
    """Return the condition that runs are at a commit, of which the beginning is known; an index answers it."""
    return and_(runs.c.commit_sha >= start, runs.c.commit_sha < f"{start}g")  # the digits end with f


def seen_runs(principal: Principal, project_id: "ColumnElement[int]" = runs.c.project_id) -> "ColumnElement[bool]":
    """Return the condition that runs are of projects that somebody sees.

    With ``project_id + 0``, a database does not look for all runs of the project in an index, to sort them.
    """
    return true() if principal.project_id is None else project_id == principal.project_id


def of_months(months: Iterable[str]) -> "ColumnElement[bool]":
    """Return the condition that the keys of runs are of months such as 202611, which an index answers."""
    return or_(false(), *(and_(runs.c.key >= month, runs.c.key < f"{int(month) + 1:06}") for month in months))


def project_branch(connection: Connection, project_id: int) -> str | None:
    """Return the branch whose runs are the project's state: that of the newest run until one is known."""
    branch: str | None = connection.execute(select(projects.c.branch).where(projects.c.id == project_id)).scalar()
    if branch is None:
        newest = select(runs.c.branch).where(runs.c.project_id == project_id, runs.c.entry.is_not(None))
        branch = connection.execute(newest.order_by(*NEWEST).limit(1)).scalar()
    return branch


def newest_run(connection: Connection, project_id: int, *, sent_golden: bool = False) -> "Row[int, str | None] | None":
    """Return the id and the golden blob of the newest recorded run of the project's branch; None if there is none."""
    branch = project_branch(connection, project_id)
    wanted = runs.c.golden if sent_golden else runs.c.entry
    of_branch = runs.c.project_id == project_id, runs.c.branch.is_not_distinct_from(branch)
    newest = select(runs.c.id, runs.c.golden).where(*of_branch, wanted.is_not(None))
    return connection.execute(newest.order_by(*NEWEST).limit(1)).one_or_none()


def outdate_trend(connection: Connection, project_id: int) -> None:
    """Note that the trend of a project lacks something: a run may come late, and a result set after its run."""
    connection.execute(trends.update().where(trends.c.project_id == project_id).values(computed_at=OUTDATED))
