"""The state of all projects: whether each is broken and since when, how often its runs passed, and what got worse."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, takewhile
from typing import Any, Literal

from msgspec import Struct
from sqlalchemy import Connection, RowMapping, case, func, select

from ragcontract.core import bounds
from ragcontract.history.trend_page import MADE_UP
from ragcontract.service.accounts import Principal
from ragcontract.service.database import DAY
from ragcontract.service.projects_and_runs import NEWEST, all_projects, of_state, runs_before, seen
from ragcontract.service.tables import projects, runs
from ragcontract.service.trends import MetricTrend, stored_trend

WEEK = 7 * DAY
FAIL: Literal["fail"] = "fail"


class Streak(Struct, frozen=True, kw_only=True):
    """The first of the newest runs that all have the same verdict."""

    run: int
    at: int
    commit: str | None
    or_earlier: bool  # whether there may be older ones


class Counts(Struct, frozen=True, kw_only=True):
    """How many runs of a project there were lately, and how many of them passed."""

    day: int = 0
    day_passed: int = 0
    week: int = 0
    week_passed: int = 0
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
    counts = _counts(connection, [row["number"] for row in shown], now)
    return States(
        total=len(rows),
        passing=[row for row in rows if row["verdict"] not in {None, FAIL}],
        broken=[row for row in rows if row["verdict"] == FAIL],
        without_runs=sum(row["verdict"] is None for row in rows),
        shown=[_state(connection, row, counts.get(row["number"], Counts())) for row in shown],
        newest=_newest_runs(connection, principal),
    )


def _place(row: RowMapping) -> tuple[bool, str, str]:
    return row["verdict"] != FAIL, (row["name"] or row["slug"]).casefold(), row["slug"]


def _state(connection: Connection, row: RowMapping, counts: Counts) -> ProjectState:
    stored = stored_trend(connection, row["number"])
    return ProjectState(
        slug=row["slug"],
        name=row["name"],
        verdict=row["verdict"],
        run=row["run"],
        summary=row["summary"],
        streak=_streak(connection, row) if row["run"] is not None else None,
        counts=counts,
        losses=[] if stored is None else [*standing_losses(stored.trend.metrics.values())],
    )


def _streak(connection: Connection, project: RowMapping) -> Streak:
    wanted = runs.c.project_id == project["number"], runs.c.verdict.is_not(None)
    query = select(runs.c.id, runs.c.created_at, runs.c.commit_sha, runs.c.verdict).where(*wanted)
    if project["branch"] is not None:
        query = query.where(runs.c.branch == project["branch"])
    newest = connection.execute(query.order_by(*NEWEST).limit(bounds.STREAK_RUNS + 1)).all()
    same = [*takewhile(lambda run: run.verdict == project["verdict"], newest)]
    first = same[: bounds.STREAK_RUNS][-1]
    return Streak(
        run=first.id, at=first.created_at, commit=first.commit_sha, or_earlier=len(same) > bounds.STREAK_RUNS
    )


def _counts(connection: Connection, numbers: Collection[int], now: int) -> dict[int, Counts]:
    """Count the runs of a week, by the ids of their projects."""
    counted = of_state() & runs.c.verdict.is_not(None)
    passed = counted & (runs.c.verdict != FAIL)
    of_day = runs.c.created_at > now - DAY
    columns = {
        "day": counted & of_day,
        "day_passed": passed & of_day,
        "week": counted,
        "week_passed": passed,
        "blocked": runs.c.state == "blocked",
    }
    sums = [func.sum(case((condition, 1), else_=0)).label(name) for name, condition in columns.items()]
    query = select(runs.c.project_id, *sums).join(projects, runs.c.project_id == projects.c.id)
    query = query.where(runs.c.project_id.in_(numbers), runs.c.created_at > now - WEEK)
    rows = connection.execute(query.group_by(runs.c.project_id)).mappings()
    return {row["project_id"]: Counts(**{name: int(row[name]) for name in columns}) for row in rows}


def standing_losses(metrics: Collection[MetricTrend]) -> Iterator[Loss]:
    """Yield the newest loss of each metric of which most is left since the metric's last change."""
    for metric in metrics:
        if not metric.changes:
            continue
        now = metric.changes[-1].after
        for change in reversed(metric.changes):
            if change.worse and (change.before - now) / (change.before - change.after) > MADE_UP:
                yield Loss(label=metric.label or "", run=change.run, at=change.at, commit=change.commit)
                break


def _newest_runs(connection: Connection, principal: Principal) -> "Sequence[RowMapping]":
    """Return the newest runs over all projects: those of the projects that have had a run last."""
    at = select(func.max(runs.c.created_at)).where(runs.c.project_id == projects.c.id).correlate(projects)
    query = select(projects.c.id).where(seen(principal)).order_by(at.scalar_subquery().desc().nulls_last())
    last = connection.execute(query.limit(bounds.OVERVIEW_RUNS)).scalars().all()
    newest: list[Any] = [*chain.from_iterable(runs_before(connection, each, limit=bounds.OVERVIEW_RUNS) for each in last)]
    newest.sort(key=lambda run: (run["created_at"], run["id"]), reverse=True)
    return newest[: bounds.OVERVIEW_RUNS]
