"""The routes on how runs changed: a metric over time, and what is different between two runs."""

import re
from datetime import UTC, datetime
from typing import Annotated, Literal, NamedTuple

import msgspec
from litestar import get
from litestar.params import QueryParameter
from msgspec import Meta, Struct
from sqlalchemy import Connection, RowMapping

from ragcontract.core import bounds
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import beginning
from ragcontract.core.safe_text import shorten, visible
from ragcontract.history.choose_baseline import LAST_PASS
from ragcontract.report.comparison import RunComparison
from ragcontract.service.access import READ
from ragcontract.service.known_contract import contract_of, project_branch
from ragcontract.service.point_series import ALL, is_recorded, newest_names, recorded_points
from ragcontract.service.run_diff import ChangedQuery, diff, last_pass, side_of
from ragcontract.service.run_list import run_numbered
from ragcontract.service.trends import MetricTrend, Trend, stored_trend
from ragcontract.service.web.authentication import Asker, Background, Db, now_ms
from ragcontract.service.web.problem_details import ProblemError
from ragcontract.service.web.projects import Milliseconds, Slug, require_project
from ragcontract.service.web.runs import ListedRun, Number

DAY = 86_400_000  # ms
OF_TAG = "only the means over all queries are scored again"
_NUMBER = re.compile("[0-9]{1,19}")
COMPUTING = "the runs are being scored again; ask again in a moment"
UNLIMITED = "only metrics with limits, and MRR and Recall at the largest cut-off, are scored again"


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


class MovedQuery(Struct, frozen=True, kw_only=True):
    """A query that is ranked differently since a change point: the means of the first metric that changed there."""

    id: str
    before: float | None
    after: float | None


class MetricChange(Struct, frozen=True, kw_only=True):
    """A run since which a metric is different."""

    run: int
    key: str
    at: Milliseconds
    commit: str | None
    before: Annotated[float, Meta(description="The mean of the runs since the change point before.")]
    after: Annotated[float, Meta(description="The mean of the runs until the next one.")]
    worse: bool
    p_value: Annotated[float | None, Meta(description="Null if the runs do not vary without a change.")]
    queries: Annotated[list[MovedQuery], Meta(description="Those that changed most, at most 20.")]


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
    of_metric = trend.metrics.get(names.metric) if trend and not tag else None
    return MetricSeries(
        metric=names.metric,
        tag=tag or None,
        branch=branch,
        label=of_metric.label if of_metric else None,
        better=of_metric.better if of_metric else None,
        scale=of_metric.scale if of_metric else None,
        recorded=[
            RecordedPoint(run=run, key=key, at=at, commit=commit, value=value, status=status)
            for run, key, at, commit, value, status in rows
        ],
        rescored=_rescored(trend, of_metric, since) if trend and of_metric and not trend.why_recorded else None,
        state="none" if tag or (of_metric is None and is_current) else "current" if is_current else "computing",
        why=_why_not(trend, of_metric, tag, is_current=is_current),
        level=of_metric.level if of_metric else None,
        sigma=of_metric.sigma if of_metric else None,
        changes=_changes(of_metric, since) if of_metric else [],
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


def _why_not(trend: Trend | None, of_metric: MetricTrend | None, tag: str | None, *, is_current: bool) -> str | None:
    """Return why there is no series of the newest runs scored again; None if there is."""
    if tag:
        return OF_TAG
    if not is_current:
        return COMPUTING
    if trend and trend.why_recorded:
        return trend.why_recorded
    return UNLIMITED if of_metric is None else None


def _rescored(trend: Trend, of_metric: MetricTrend, since: int) -> list[SeriesPoint]:
    return [
        SeriesPoint(run=run.id, key=run.key, at=run.at, commit=run.commit, value=value)
        for run, value in zip(trend.runs, of_metric.values, strict=True)
        if run.at >= since
    ]


def _changes(of_metric: MetricTrend, since: int) -> list[MetricChange]:
    return [
        MetricChange(
            run=change.run.id,
            key=change.run.key,
            at=change.run.at,
            commit=change.run.commit,
            before=change.before,
            after=change.after,
            worse=change.worse,
            p_value=change.p_value,
            queries=[MovedQuery(id=each.id, before=each.before, after=each.after) for each in change.queries],
        )
        for change in of_metric.changes
        if change.run.at >= since
    ]


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
        run = _run(run_numbered(connection, principal, number))
        project = require_project(connection, principal, run["project"])
        if against == LAST_PASS:
            other = last_pass(connection, project, run)
            if other is None:
                raise ProblemError(404, "no run of the project's branch passed before this one")
        else:
            other = _run(run_numbered(connection, principal, int(against)) if _NUMBER.fullmatch(against) else None)
        if other["project"] != run["project"]:
            raise ProblemError(404, "the other run is of another project")
        contract = contract_of(connection, project, trends.folder)
        sides = side_of(connection, other), side_of(connection, run)
    made = diff(contract, sides, datetime.now(UTC))
    most = bounds.SERVICE_DIFF_QUERIES
    return ComparedWith(
        against=msgspec.convert(other, ListedRun),
        comparison=made.comparison,
        lost=[*made.lost[:most]],
        won=[*made.won[:most]],
        more_lost=max(0, len(made.lost) - most),
        more_won=max(0, len(made.won) - most),
    )


def _run(row: RowMapping | None) -> RowMapping:
    if row is None:
        raise ProblemError(404, "there is no such run, or the key may not see it")
    return row


ROUTES = (metric_series, run_diff)
