"""The state of all projects: whether each is broken and since when, how often its runs passed, and what got worse."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, RowMapping, Select, bindparam, case, func, select, text

from ragcontract.core import bounds
from ragcontract.service.accounts import Principal
from ragcontract.service.database import BIGINT, DAY
from ragcontract.service.production.drift import Alarm
from ragcontract.service.production.monitor_days import standing_alarms
from ragcontract.service.projects_and_runs import NEWEST, all_projects, runs_before, seen
from ragcontract.service.tables import projects, runs
from ragcontract.service.trends import MetricTrend, stored_trend

WEEK = 7 * DAY
PASS, FAIL = VERDICTS = ("pass", "fail")


class Streak(Struct, frozen=True, kw_only=True):
    """The first of the newest runs that all have the same verdict."""

    run: int
    at: int
    commit: str | None
    is_whole: bool  # False if no run is kept that had another verdict: it may have begun before


class Counts(Struct, frozen=True, kw_only=True):
    """How many runs of a project passed and failed in the last 24 hours and 7 days."""

    day_pass: int = 0
    day_fail: int = 0
    week_pass: int = 0
    week_fail: int = 0
    blocked: int = 0  # of the week, over all branches


class Loss(Struct, frozen=True, kw_only=True):
    """A metric that is worse since a run, and was not made up for."""

    label: str
    run: int
    at: int
    commit: str | None


class ProjectState(Struct, frozen=True, kw_only=True):
    """A project, and what its runs say about it; without a verdict, there is no run yet."""

    slug: str
    name: str
    verdict: str | None
    run: int | None
    summary: str | None
    streak: Streak | None
    counts: Counts
    losses: Sequence[Loss]
    drift: Sequence[Alarm] = ()  # of production, the alarms that stand


class States(Struct, frozen=True, kw_only=True):
    """The state of the projects that somebody sees."""

    total: int
    passing: Sequence[RowMapping]
    broken: Sequence[RowMapping]  # sorted by name
    without_runs: int
    shown: Sequence[ProjectState]  # the broken ones first
    newest: Sequence[RowMapping]  # runs


def states_of(connection: Connection, principal: Principal, now: int) -> States:
    """Return the state of the projects that somebody sees."""
    rows = sorted(all_projects(connection, principal), key=_place)
    shown = rows[: bounds.OVERVIEW_PROJECTS]
    counts = _counts(connection, shown, now)
    alarms = standing_alarms(connection, [row["number"] for row in shown], now)
    return States(
        total=len(rows),
        passing=[row for row in rows if row["verdict"] not in {None, FAIL}],
        broken=[row for row in rows if row["verdict"] == FAIL],
        without_runs=sum(row["verdict"] is None for row in rows),
        shown=[_state(connection, row, counts[row["number"]], alarms.get(row["number"], ())) for row in shown],
        newest=_newest_runs(connection, principal),
    )


def _place(row: RowMapping) -> tuple[bool, str, str]:
    return row["verdict"] != FAIL, (row["name"] or row["slug"]).casefold(), row["slug"]


def _state(connection: Connection, row: RowMapping, counts: Counts, drift: Sequence[Alarm]) -> ProjectState:
    stored = stored_trend(connection, row["number"])
    return ProjectState(
        slug=row["slug"],
        name=row["name"],
        verdict=row["verdict"],
        run=row["run"],
        summary=row["summary"],
        streak=streak_of(connection, row) if row["run"] is not None else None,
        counts=counts,
        losses=[] if stored is None else [*standing_losses(stored.trend.metrics.values())],
        drift=drift,
    )


def streak_of(connection: Connection, project: RowMapping) -> Streak:
    """Return since when a project, of which a run has a verdict, has had its verdict."""
    wanted = {"number": project["number"], "verdict": project["verdict"]}
    if project["branch"] is not None:
        wanted["branch"] = project["branch"]
    other = PASS if project["verdict"] == FAIL else FAIL
    first_of_streak = _first_of_streak(of_branch="branch" in wanted)
    (first,) = connection.execute(first_of_streak, {**wanted, "other": other})
    return Streak(run=first.id, at=first.created_at, commit=first.commit_sha, is_whole=first.since > -BIGINT)


@cache
def _first_of_streak(*, of_branch: bool) -> "Select[Any]":
    """Return the query for the first run since the last one with the other verdict."""
    of_project = runs.c.project_id == bindparam("number")
    if of_branch:
        of_project &= runs.c.branch == bindparam("branch")
    others = select(runs.c.created_at).where(of_project, runs.c.verdict == bindparam("other"))
    since = func.coalesce(others.order_by(*NEWEST).limit(1).scalar_subquery(), -BIGINT)
    same = select(runs.c.id, runs.c.created_at, runs.c.commit_sha, since.label("since"))
    same = same.where(of_project, runs.c.verdict == bindparam("verdict"), runs.c.created_at >= since)
    return same.order_by(runs.c.created_at, runs.c.id).limit(1)


def _counts(connection: Connection, rows: Sequence[RowMapping], now: int) -> dict[int, Counts]:
    """Count the runs of a week, by the ids of their projects."""
    since = runs.c.created_at > now - WEEK
    of_day = func.sum(case((runs.c.created_at > now - DAY, 1), else_=0)).label("day")
    columns = runs.c.project_id, runs.c.verdict, func.count().label("week"), of_day
    counted = select(*columns).where(runs.c.verdict.in_(VERDICTS), since).group_by(runs.c.project_id, runs.c.verdict)
    sums: dict[int, dict[str, int]] = {row["number"]: {} for row in rows}
    # The branch is a value, as it is for most projects the same: SQLite would not take its index to join by it.
    for branch in {row["branch"] for row in rows}:
        query = counted.where(runs.c.project_id.in_([row["number"] for row in rows if row["branch"] == branch]))
        for row in connection.execute(query if branch is None else query.where(runs.c.branch == branch)):
            sums[row.project_id] |= {f"week_{row.verdict}": row.week, f"day_{row.verdict}": int(row.day)}
    blocked = select(runs.c.project_id, func.count().label("blocked")).group_by(runs.c.project_id)
    of_projects = runs.c.state == text("'blocked'"), since, runs.c.project_id.in_([*sums])
    for row in connection.execute(blocked.where(*of_projects)):
        sums[row.project_id]["blocked"] = row.blocked
    return {number: Counts(**of_project) for number, of_project in sums.items()}


def standing_losses(metrics: Collection[MetricTrend]) -> Iterator[Loss]:
    """Yield the newest loss of each metric of which most is left."""
    for metric in metrics:
        change = next((each for each in reversed(metric.changes) if each.stands), None)
        if change:
            yield Loss(label=metric.label or "", run=change.run, at=change.at, commit=change.commit)


def _newest_runs(connection: Connection, principal: Principal) -> "Sequence[RowMapping]":
    """Return the newest runs over all projects: those of the projects that have had a run last."""
    at = select(func.max(runs.c.created_at)).where(runs.c.project_id == projects.c.id).correlate(projects)
    query = select(projects.c.id).where(seen(principal)).order_by(at.scalar_subquery().desc().nulls_last())
    last = connection.execute(query.limit(bounds.OVERVIEW_RUNS)).scalars().all()
    newest: list[Any] = [
        *chain.from_iterable(runs_before(connection, each, limit=bounds.OVERVIEW_RUNS) for each in last)
    ]
    newest.sort(key=lambda run: (run["created_at"], run["id"]), reverse=True)
    return newest[: bounds.OVERVIEW_RUNS]
