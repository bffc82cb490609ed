"""The page of a project, which says when quality moved, and which commit moved it."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Literal

from litestar import get
from litestar.params import QueryParameter
from litestar.response import Template
from markupsafe import Markup
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Scale
from ragcontract.history.entry import short_commit
from ragcontract.report.html.charts import Chart, Point, lines_of
from ragcontract.service.database import DAY, now_ms
from ragcontract.service.known_contract import contract_of, golden_of
from ragcontract.service.project_states import streak_of
from ragcontract.service.projects_and_runs import project_branch, run_numbered, runs_before
from ragcontract.service.run_diff import recorded_entry
from ragcontract.service.trends import (
    MetricChange,
    MetricTrend,
    StoredTrend,
    Trend,
    TrendRun,
    decoded_trend,
    recorded_means,
    stored_trend,
)
from ragcontract.service.web.authentication import READ
from ragcontract.service.web.pages.page_frame import environment, require_project_row, shown_page, when
from ragcontract.service.web.pages.run_page import shown_gates
from ragcontract.service.web.parameters import Asker, Background, Db, Mounts, Slug
from ragcontract.service.web.run_requests import why_not
from ragcontract.service.workers.schedule import nightly_of, problem_of
from ragcontract.statistics.change_points import LEAST_RUNS

NEWEST_RUNS = 10  # in the table of runs
Days = Literal["7", "30", "90", "all"]
SPANS: Mapping[Days, str] = {"7": "7 days", "30": "30 days", "90": "90 days", "all": "All runs"}


class MetricStep(Struct, frozen=True, kw_only=True):
    """A metric at a run since which it is different."""

    label: str
    change: MetricChange


class RunChange(Struct, frozen=True, kw_only=True):
    """A run since which metrics are different."""

    steps: Sequence[MetricStep]

    @property
    def first(self) -> MetricChange:
        """The change of the first metric, which also says which queries moved."""
        return self.steps[0].change

    @property
    def is_worse(self) -> bool:
        return any(step.change.worse for step in self.steps)

    @property
    def stands(self) -> bool:
        """Whether it is a loss that was not made up for."""
        return any(step.change.stands for step in self.steps)

    @property
    def p_value(self) -> float | None:
        """The largest one; None if the runs do not vary without a change."""
        return max((step.change.p_value for step in self.steps if step.change.p_value is not None), default=None)


class Quality(Struct, frozen=True, kw_only=True):
    """What the page says of a trend."""

    trend: Trend
    changes: Sequence[RunChange]  # the newest first
    charts: Markup  # of the chosen days; empty if no run has a mean
    has_older: bool  # there are runs before these days

    @property
    def standing(self) -> Sequence[RunChange]:
        """The losses that were not made up for."""
        return [change for change in self.changes if change.stands]

    @property
    def tested(self) -> int:
        """How many runs have a mean."""
        values = (of_metric.values for of_metric in self.trend.metrics.values())
        return max((sum(value is not None for value in each) for each in values), default=0)

    @property
    def state(self) -> str:
        return "worse" if self.standing else "steady" if self.tested >= LEAST_RUNS else "unknown"


@get("/p/{slug:str}", access=READ, page=True, include_in_schema=False, sync_to_thread=True)
def project_page(
    *,
    principal: Asker,
    database: Db,
    trends: Background,
    mounts: Mounts,
    slug: Slug,
    days: Annotated[Days, QueryParameter()] = "90",
) -> Template:
    """Show the metrics of a project over time."""
    with database.read() as connection:
        row = require_project_row(connection, principal, slug)
        project = row["number"]
        branch = project_branch(connection, project)
        stored = stored_trend(connection, project)
        is_current = trends.is_current(connection, project, stored)
        newest = runs_before(connection, project, branch=branch, ended=True, limit=NEWEST_RUNS)[:NEWEST_RUNS]
        recorded = None if stored else recorded_means(connection, [run["id"] for run in newest])
        contract = contract_of(connection, project, trends.folder)
        streak = streak_of(connection, row) if row["run"] is not None else None
        nightly = nightly_of(connection, project, slug)
        entry = None if row["run"] is None else recorded_entry(run_numbered(connection, principal, row["run"]))
    if not is_current:
        trends.note(project)
    return shown_page(
        "project.html",
        principal,
        project=row,
        branch=branch,
        quality=quality_of(stored, _first(stored, days)) if stored else None,
        recorded=recorded,
        is_current=is_current,
        runs=newest,
        contract=contract,
        golden=golden_of(contract),
        streak=streak,
        waived=[gate for gate in shown_gates(entry) if gate.waived] if entry else [],
        flaky=decoded_trend(stored).flaky if stored else (),
        most=bounds.SERVICE_QUERIES,
        days=days,
        spans=SPANS,
        least=LEAST_RUNS,
        nightly=nightly,
        mount_problem=problem_of(mounts, slug),
        can_run=not why_not(mounts, slug),
    )


def _first(stored: StoredTrend, days: Days) -> int:
    """Return the place of the first run of the last days."""
    since = 0 if days == "all" else now_ms() - int(days) * DAY
    return bisect_left(decoded_trend(stored).runs, since, key=lambda run: run.at)


@lru_cache(maxsize=bounds.REPORT_PAGES)  # eight charts of 500 points take 200 ms
def quality_of(stored: StoredTrend, first: int) -> Quality:
    """Return what the page says of a trend, with charts of the runs from the place ``first`` on."""
    trend = decoded_trend(stored)
    charts = [chart_of(trend.runs[first:], of_metric, of_metric.values[first:]) for of_metric in trend.metrics.values()]
    drawn = [chart for chart in charts if chart.values]
    rendered: Callable[[Sequence[Chart]], Markup] = environment().get_template("trend.html").module.charts_in  # type: ignore[attr-defined]
    return Quality(
        trend=trend,
        changes=list(_changes(trend)),
        charts=rendered(drawn) if drawn else Markup(),
        has_older=first > 0,
    )


def chart_of(runs: Sequence[TrendRun], of_metric: MetricTrend, values: Sequence[float | None]) -> Chart:
    """Return the chart of a metric in consecutive runs, of those that have a value."""
    known = [(run, value) for run, value in zip(runs, values, strict=True) if value is not None]
    scale = of_metric.scale or Scale()
    changed = {change.run for change in of_metric.changes}
    return Chart(
        label=of_metric.label or "",
        scale=scale,
        points=[Point(value=value, when=when(run.at), commit=_name_of(run), state=run.state) for run, value in known],
        lines=list(lines_of(of_metric.limits, of_metric.level, scale)),
        changes={place: _name_of(run) for place, (run, _) in enumerate(known) if run.id in changed},
    )


def _name_of(run: TrendRun) -> str:
    """Return the commit of a run, or its number: runs of the service have no commit."""
    return short_commit(run.commit) if run.commit else f"run {run.id}"


def _changes(trend: Trend) -> Iterator[RunChange]:
    """Yield the runs since which metrics are different, the newest first."""
    at: dict[tuple[int, int], list[MetricStep]] = {}
    for of_metric in trend.metrics.values():
        for change in of_metric.changes:
            at.setdefault((change.at, change.run), []).append(MetricStep(label=of_metric.label or "", change=change))
    for _, steps in sorted(at.items(), reverse=True):
        yield RunChange(steps=steps)


ROUTES = (project_page,)
