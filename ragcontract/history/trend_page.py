"""What ``history page`` shows: whether a contract got worse, since which commit, and for which queries.

:func:`section_of` computes what is shown of the runs of a contract, and :func:`render` makes the page.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from math import fsum, isnan

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.metric import Metric, loss
from ragcontract.core.numbers import count
from ragcontract.core.version import __version__
from ragcontract.evaluation.past import PastRun
from ragcontract.history.contract_entries import UNNAMED
from ragcontract.history.entry import short_commit
from ragcontract.history.page_runs import ContractRuns
from ragcontract.history.series import QueryValues, RecordedRun
from ragcontract.report.history_report import time_and_commit
from ragcontract.report.html.charts import Chart, Point, lines_of
from ragcontract.report.html.elements import shown
from ragcontract.report.html.page import rendered
from ragcontract.statistics.change_points import (
    LEAST_RUNS,
    LEAST_RUNS_A_SIDE,
    ChangePoint,
    best_split,
    change_points,
)
from ragcontract.statistics.levels import mean

NEAR = sorted(range(-5, 6), key=abs)  # runs from a change point in noise, the nearest first
MADE_UP = 0.5  # of a loss; where less of it is left, it counts as made up for
CHANGED = "yes"  # where it is not known for how many queries
_WEB = re.compile(r"https?://[!-~]{1,2000}", re.ASCII | re.IGNORECASE)

MovedQuery = tuple[str, float | None, float | None]  # its id, and the mean of a metric before and after


class Step(Struct, frozen=True, kw_only=True):
    """A metric at one of its change points."""

    metric: Metric
    point: ChangePoint
    before: Sequence[RecordedRun]  # since the change point before
    after: Sequence[RecordedRun]  # until the next one

    @property
    def worse(self) -> bool:
        return loss(self.metric.better, self.point.before, self.point.after) > 0


class Change(Struct, frozen=True, kw_only=True):
    """A run at which metrics changed."""

    run: RecordedRun
    steps: Sequence[Step]
    queries: Sequence[MovedQuery]  # that are ranked differently since, those that moved the first metric most first


class Section(Struct, frozen=True, kw_only=True):
    """What is shown of a contract."""

    of: ContractRuns
    changes: Sequence[Change]  # the newest first
    standing: Sequence[Change]  # losses that were not made up for
    results: Mapping[str, str]  # of how many queries the results changed, by run; empty if of none
    charts: Sequence[Chart]
    failed: Sequence[tuple[str, int, RecordedRun]]  # queries, how often they failed, and where they did last

    @property
    def title(self) -> str:
        return shown(self.of.contract or UNNAMED, bounds.HTML_NAME)

    @property
    def tested(self) -> int:
        """How many runs have a mean."""
        return max((len(series.known) for series in self.of.series.values()), default=0)

    @property
    def state(self) -> str:
        return "worse" if self.standing else "steady" if self.tested >= LEAST_RUNS else "unknown"

    @property
    def shared(self) -> int:
        """How many of today's queries all runs in the charts have."""
        charted = {run.id for series in self.of.series.values() for run in series.runs}
        every = {id(run.queries): run.queries.has for run in self.of.runs if run.queries and run.id in charted}
        return sum(map(all, zip(*every.values(), strict=True))) if every else len(self.of.questions)

    @property
    def last_changed(self) -> RecordedRun | None:
        """The last run at which results changed."""
        return next((run for run in reversed(self.of.runs) if self.results.get(run.id)), None)

    @property
    def means(self) -> list[dict[str, float]]:
        """The values of each metric, by run."""
        return [{run.id: value for run, value in series.known} for series in self.of.series.values()]


def section_of(of: ContractRuns) -> Section:
    """Return what is shown of a contract."""
    changes = list(_changes(of))
    now = {step.metric.key: step.point.after for change in reversed(changes) for step in change.steps}
    charts = [_chart(of, key, changes) for key in of.series]
    return Section(
        of=of,
        changes=changes,
        standing=[change for change in changes if any(stands(step, now[step.metric.key]) for step in change.steps)],
        results={after.id: _results_changed(before, after) for before, after in pairwise(of.runs)},
        charts=[chart for chart in charts if chart.values],
        failed=list(_failed(of.runs)),
    )


def stands(step: Step, now: float) -> bool:
    """Return whether most of a loss is left, if ``now`` is the mean since the last change point."""
    was = step.point.before
    return step.worse and (was - now) / (was - step.point.after) > MADE_UP


def _results_changed(before: RecordedRun, after: RecordedRun) -> str:
    """Return how many queries have other first results than in the run before; empty if all results are the same."""
    if before.retrieval == after.retrieval:
        return ""
    then, now = before.queries, after.queries
    if then is None or now is None:
        return CHANGED
    both = [
        first != other for first, other, *has in zip(then.first, now.first, then.has, now.has, strict=True) if all(has)
    ]
    return f"{sum(both):,} of {len(both):,}"


def _changes(of: ContractRuns) -> Iterator[Change]:
    """Yield the runs at which metrics changed, the newest first."""
    runs = {run.id: run for run in of.runs}
    at: dict[str, list[Step]] = {}
    for series in of.series.values():
        of_series = [runs[run.id] for run, _ in series.known]
        points = points_of([value for _, value in series.known])
        edges = [0, *(point.position for point in points), len(of_series)]
        for point, start, stop in zip(points, edges, edges[2:], strict=False):
            around = of_series[start:stop]
            place = _located(around, point, point.position - start)
            step = Step(metric=series.metric, point=point, before=around[:place], after=around[place:])
            at.setdefault(step.after[0].id, []).append(step)
    for run_id, steps in sorted(at.items(), reverse=True):
        then = _distinct(min((step.before for step in steps), key=len))
        now = _distinct(min((step.after for step in steps), key=len))
        key, ids = steps[0].metric.key, list(of.questions)
        queries = [(ids[place], _mean(then, key, place), _mean(now, key, place)) for place in _moved(then, now)]
        queries.sort(key=lambda query: abs((query[1] or 0.0) - (query[2] or 0.0)), reverse=True)
        yield Change(run=runs[run_id], steps=steps, queries=queries)


def _located(runs: Sequence[RecordedRun], point: ChangePoint, place: int) -> int:
    """Return the place near that of a change point since which most queries are ranked differently.

    In noise, the means alone are often some runs off. ``runs`` are those from the change point before to the next.
    """
    if point.p_value is None:
        return place
    near = [place + step for step in NEAR if LEAST_RUNS_A_SIDE <= place + step <= len(runs) - LEAST_RUNS_A_SIDE]
    return max(near, key=lambda each: len(_moved(_distinct(runs[:each]), _distinct(runs[each:]))), default=place)


def points_of(values: Sequence[float]) -> list[ChangePoint]:
    """Return the change points of a series of any length.

    The time that they take grows with the number of runs. So more than ``bounds.PAGE_SEARCHED`` are searched in the
    means of stretches of runs first, and then within the stretches around each.
    """
    size = -(-len(values) // bounds.PAGE_SEARCHED) or 1
    points = change_points([mean(values[start : start + size]) for start in range(0, len(values), size)])
    if size == 1:
        return list(points)
    edges = [0, *(point.position * size for point in points), len(values)]
    splits = [(start, best_split(values[start:stop])) for start, stop in zip(edges, edges[2:], strict=False)]
    placed = {start + split.position: point for point, (start, split) in zip(points, splits, strict=True) if split}
    return [replace(placed[position], position=position) for position in sorted(placed)]


def _distinct(runs: Sequence[RecordedRun]) -> list[QueryValues]:
    """Return the different result sets of runs."""
    return list({id(run.queries): run.queries for run in runs if run.queries}.values())


def _moved(before: Sequence[QueryValues], after: Sequence[QueryValues]) -> list[int]:
    """Return the places of the queries whose ranks in all runs after a change differ from those in all before it."""
    if not before or not after:
        return []
    has = map(all, zip(*(each.has for each in (*before, *after)), strict=True))
    ranks = [map(set, zip(*(each.ranks for each in side), strict=True)) for side in (before, after)]
    return [
        place
        for place, (is_there, was, now) in enumerate(zip(has, *ranks, strict=True))
        if is_there and was.isdisjoint(now)
    ]


def _mean(runs: Sequence[QueryValues], key: str, place: int) -> float | None:
    values = [value for run in runs if key in run.values and not isnan(value := run.values[key][place])]
    return fsum(values) / len(values) if values else None


def _failed(runs: Sequence[RecordedRun]) -> Iterator[tuple[str, int, RecordedRun]]:
    """Yield the queries that failed most often; of equally many, those that failed last."""
    failed, last = Counter[str](), dict[str, RecordedRun]()
    for run in runs:
        failed.update(run.failed)
        last |= dict.fromkeys(run.failed, run)
    order = sorted(failed, key=lambda query: (failed[query], last[query].id), reverse=True)
    for query in order[: bounds.PAGE_FAILED]:
        yield query, failed[query], last[query]


def _chart(of: ContractRuns, key: str, changes: Sequence[Change]) -> Chart:
    series, runs = of.series[key], {run.id: run for run in of.runs}
    best = of.level(key)
    changed = {change.run.id for change in changes if any(step.metric.key == key for step in change.steps)}
    limits = [limit[1:] for limit in of.limits if limit[0] == key]
    return Chart(
        label=series.metric.label,
        scale=series.metric.scale,
        points=[
            Point(value=value, when=_when(run), commit=short_commit(run.commit), state=runs[run.id].state)
            for run, value in zip(series.runs, series.values, strict=True)
        ],
        lines=list(lines_of(limits, best, series.metric.scale)),
        changes={place: short_commit(run.commit) for place, run in enumerate(series.runs) if run.id in changed},
    )


def _when(run: PastRun) -> str:
    return time_and_commit(run.id)[0]


def _link_of(run: RecordedRun) -> str | None:
    """Return the address of a run in CI; None if it has none, or one that a browser might act on."""
    return run.run_url if run.run_url and _WEB.fullmatch(run.run_url) else None


def render(sections: Sequence[Section], now: datetime) -> bytes:
    """Render the page as UTF-8; it has no script."""
    contracts = sections[0].title if len(sections) == 1 else count(len(sections), "contract")
    return rendered(
        "history.html",
        title=f"History of {contracts}",
        about=f"{now.isoformat(timespec='seconds')} · rag-contract {__version__}",
        sections=sections,
        short=short_commit,
        when=_when,
        link_of=_link_of,
        changed=CHANGED,
        least=LEAST_RUNS,
    )
