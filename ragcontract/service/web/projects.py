"""The routes of projects: lists of them, whether a commit passed, and how a metric changed over time."""

from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from litestar import get
from litestar.params import FromQuery, QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import beginning
from ragcontract.core.safe_text import shorten, visible
from ragcontract.history.commit_state import Outcome, commit_state
from ragcontract.history.contract_entries import ContractEntries
from ragcontract.history.entry import SHORT_COMMIT, is_commit_start
from ragcontract.service.database import DAY, Milliseconds, now_ms
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.projects_and_runs import project_branch, project_named, projects_after
from ragcontract.service.trends import (
    ALL,
    MetricChange,
    MetricTrend,
    Trend,
    is_recorded,
    newest_names,
    recorded_points,
    stored_trend,
)
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.parameters import (
    DEFAULT_LIMIT,
    NO_PROJECT,
    Asker,
    Background,
    Cursor,
    Db,
    Limit,
    Page,
    Slug,
    page_of,
    position_of,
    require_project,
)
from ragcontract.service.web.problem_details import ProblemError

VERDICTS: dict[Outcome, Literal["pass", "fail", "none"]] = {"success": "pass", "failure": "fail", "error": "none"}
NO_TREND = MetricTrend()
OF_TAG = "only the means over all queries are scored again"
COMPUTING = "the runs are being scored again; ask again in a moment"
UNLIMITED = "only metrics with limits, and MRR and Recall at the largest cut-off, are scored again"


class Project(Struct, frozen=True, kw_only=True):
    """A contract whose checks are recorded, and the newest run of its branch."""

    slug: Annotated[str, Meta(description="Its name in addresses: the folder that other stores have for it.")]
    name: Annotated[str, Meta(description="The name of the contract; empty for the one without a name.")]
    repository: str | None
    branch: Annotated[str | None, Meta(description="The branch whose runs are the state of the project.")]
    created_at: Milliseconds
    verdict: Annotated[str | None, Meta(description="Of the newest run; null without one.")]
    run: Annotated[int | None, Meta(description="The id of the newest run.")]
    commit: str | None
    at: Annotated[int | None, Meta(description="When the newest run was checked, in milliseconds since 1970.")]


class Gate(Struct, frozen=True, kw_only=True):
    """Whether a commit passed: the newest run at it."""

    verdict: Annotated[
        Literal["pass", "fail", "none"], Meta(description="`none` if no run at the commit can decide it.")
    ]
    commit: Annotated[str, Meta(description="In full, if a run says it.")]
    why: Annotated[str, Meta(description="The verdict in words, and why a pass does not count.")]
    entry: Annotated[str | None, Meta(description="The id of the entry that decided it.")] = None


class SeriesPoint(Struct, frozen=True, kw_only=True, gc=False):
    """The mean of a metric in a run."""

    run: Annotated[int, Meta(description="The id of the run.")]
    key: Annotated[str, Meta(description="The id of its entry.")]
    at: Milliseconds
    commit: str | None
    value: Annotated[float | None, Meta(description="Null if the run has none that can be compared.")]


class RecordedPoint(SeriesPoint, frozen=True, kw_only=True, gc=False):
    """The mean of a metric in a run, as it was recorded."""

    status: Annotated[str | None, Meta(description="What its limits said that day; null of a tag.")]


class MetricSeries(Struct, frozen=True, kw_only=True):
    """A metric on the project's branch: as it was recorded, and scored again under the contract of today."""

    metric: str
    tag: Annotated[str | None, Meta(description="The queries of the means; null for all.")]
    branch: str | None
    label: Annotated[str | None, Meta(description="Null if it has no trend.")]
    better: Direction | None
    scale: Scale | None
    recorded: list[RecordedPoint]
    rescored: Annotated[list[SeriesPoint] | None, Meta(description="Null if `why` says so.")]
    state: Annotated[
        Literal["current", "computing", "none"],
        Meta(
            description="`computing`: level, change points and the runs scored again lack the newest runs, or the "
            "newest contract; `none`: they are not computed."
        ),
    ]
    why: Annotated[str | None, Meta(description="Why there is nothing scored again, or not yet.")]
    level: Annotated[float | None, Meta(description="The best mean of five consecutive runs.")]
    sigma: Annotated[float | None, Meta(description="The standard deviation of a run's mean, without changes.")]
    changes: Annotated[list[MetricChange], Meta(description="The change points, the oldest first.")]
    notes: Annotated[list[str], Meta(description="Which runs were left out, and why.")]
    metrics: Annotated[list[str], Meta(description="The metrics that can be asked for: those with a trend first.")]
    tags: Annotated[list[str], Meta(description="The tags of the newest run.")]


@get("/projects", access=READ, sync_to_thread=True)
def list_projects(principal: Asker, database: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT) -> Page[Project]:
    """Return the projects that the key may see, sorted by slug."""
    with database.read() as connection:
        rows = projects_after(connection, principal, position_of(cursor, str), limit)
    return page_of(rows, limit, Project, lambda row: row["slug"])


@get("/projects/{slug:str}", access=READ, sync_to_thread=True)
def show_project(principal: Asker, database: Db, slug: Slug) -> Project:
    """Return a project."""
    with database.read() as connection:
        row = project_named(connection, principal, slug)
    if row is None:
        raise ProblemError(404, NO_PROJECT)
    return msgspec.convert(row, Project)


@get("/projects/{slug:str}/gate", access=READ, sync_to_thread=True)
def gate(principal: Asker, database: Db, slug: Slug, commit: FromQuery[str]) -> Gate:
    """Say whether a commit passed, by its newest run that is not from a dirty working tree."""
    with database.read() as connection:
        require_project(connection, principal, slug)
    if not is_commit_start(commit):
        raise InputError([f"commit: {visible(commit)!r} is not the beginning of one, of {SHORT_COMMIT} digits or more"])
    store = DatabaseStore(database, principal, commit=commit)
    state = commit_state(store, commit, [ContractEntries(store, slug).contract], datetime.now(UTC))
    (of_contract,) = state.contracts
    entry = of_contract.entry.id if of_contract.entry else None
    return Gate(verdict=VERDICTS[of_contract.state], commit=state.commit, why=of_contract.why, entry=entry)


@get("/projects/{slug:str}/metrics", access=READ, sync_to_thread=True)
def metric_series(
    *,
    principal: Asker,
    database: Db,
    trends: Background,
    slug: Slug,
    metric: Annotated[str | None, QueryParameter(description="Such as mrr_at_5. [the first with a limit]")] = None,
    tag: Annotated[str | None, QueryParameter(description="The mean over the queries with this tag. [all]")] = None,
    days: Annotated[int, QueryParameter(ge=1, le=bounds.SERVICE_DAYS)] = 90,
) -> MetricSeries:
    """Return a metric on the project's branch over the last days."""
    since = now_ms() - days * DAY
    with database.read() as connection:
        project = require_project(connection, principal, slug)
        stored = stored_trend(connection, project)
        is_current = trends.is_current(connection, project, stored)
        trend = stored.trend if stored else None
        names = _named(connection, project, metric, tag, trend, is_current=is_current)
        branch = project_branch(connection, project)
        rows = recorded_points(connection, project, names.metric, tag or ALL, since)
    if not is_current:
        trends.note(project)
    of_metric = trend.metrics.get(names.metric, NO_TREND) if trend and not tag else NO_TREND
    has_trend = of_metric is not NO_TREND
    return MetricSeries(
        metric=names.metric,
        tag=tag or None,
        branch=branch,
        label=of_metric.label,
        better=of_metric.better,
        scale=of_metric.scale,
        recorded=[
            RecordedPoint(run=run, key=key, at=at, commit=commit, value=value, status=status)
            for run, key, at, commit, value, status in rows
        ],
        rescored=_rescored(trend, of_metric, since) if trend and has_trend and not trend.why_recorded else None,
        state="none" if tag or (is_current and not has_trend) else "current" if is_current else "computing",
        why=_why_not(trend, tag, has_trend=has_trend, is_current=is_current),
        level=of_metric.level,
        sigma=of_metric.sigma,
        changes=[change for change in of_metric.changes if change.at >= since],
        notes=[*trend.notes] if trend else [],
        metrics=names.metrics,
        tags=names.tags,
    )


class _Names(NamedTuple):
    """The metric that is answered, and what else can be asked for."""

    metric: str
    metrics: list[str]
    tags: list[str]


def _named(
    connection: Connection, project: int, metric: str | None, tag: str | None, trend: Trend | None, *, is_current: bool
) -> _Names:
    """Return the metric that was asked for; answers 404 if no run has it, or none has the tag.

    While a trend is computed, it is not known yet which metrics it will have.
    """
    newest, tags = newest_names(connection, project)
    metrics = [*dict.fromkeys([*(trend.metrics if trend else ()), *newest])]
    metric = metric or next(iter(metrics), None)
    if metric is None:
        raise ProblemError(404, "the project has no run with a metric yet")
    if is_current and metric not in metrics and not is_recorded(connection, project, metric):
        raise ProblemError(404, _unknown("metric", metric, metrics))
    if tag and not is_recorded(connection, project, metric, tag):
        raise ProblemError(404, _unknown("tag", tag, tags))
    return _Names(metric, metrics, tags)


def _unknown(what: str, name: str, known: list[str]) -> str:
    listed = beginning([visible(each) for each in known])
    return f"no run has the {what} {shorten(name, bounds.NAME)!r}; the newest run has {listed or 'none'}"


def _why_not(trend: Trend | None, tag: str | None, *, has_trend: bool, is_current: bool) -> str | None:
    """Return why there is no series of the newest runs scored again; None if there is."""
    if tag:
        return OF_TAG
    if not is_current:
        return COMPUTING
    if trend and trend.why_recorded:
        return trend.why_recorded
    return None if has_trend else UNLIMITED


def _rescored(trend: Trend, of_metric: MetricTrend, since: int) -> list[SeriesPoint]:
    return [
        SeriesPoint(run=run.id, key=run.key, at=run.at, commit=run.commit, value=value)
        for run, value in zip(trend.runs, of_metric.values, strict=True)
        if run.at >= since
    ]


ROUTES = (list_projects, show_project, gate, metric_series)
