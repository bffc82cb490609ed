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

from ragcontract.core import bounds
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import count, fixed
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.version import __version__
from ragcontract.evaluation.past import PastRun
from ragcontract.history.contract_entries import UNNAMED
from ragcontract.history.entry import SHORT_COMMIT
from ragcontract.history.page_runs import ContractRuns
from ragcontract.history.series import QueryValues, RecordedRun
from ragcontract.report.html.charts import (
    DIGITS,
    Chart,
    Point,
    Trend,
    chart_of,
    limit_lines,
    when_of,
    worse,
)
from ragcontract.report.html.elements import shown
from ragcontract.report.html.page import rendered
from ragcontract.statistics.change_points import (
    HOW_OFTEN_WRONG,
    LEAST_RUNS,
    LEAST_RUNS_A_SIDE,
    ChangePoint,
    best_split,
    change_points,
)
from ragcontract.statistics.levels import level, mean

NEAR = sorted(range(-5, 6), key=abs)  # runs from a change point in noise, the nearest first
MADE_UP = 0.5  # of a loss; where less of it is left, it counts as made up for
CHANGED = "yes"  # where it is not known for how many queries
AS_RECORDED = (
    "The means are those that were recorded, of runs with the newest run's golden queries. "
    "Name the contract and its golden files to score all runs in the same way."
)
_WEB = re.compile(r"https?://[!-~]{1,2000}", re.ASCII | re.IGNORECASE)


class MetricChange(Struct, frozen=True, kw_only=True):
    """A metric at one of its change points."""

    key: str
    label: str
    before: float
    after: float
    worse: bool
    p_value: float | None
    # The runs since the change point before, and those until the next one.
    sides: tuple[Sequence[RecordedRun], Sequence[RecordedRun]]

    @property
    def was(self) -> str:
        return fixed(self.before, DIGITS)

    @property
    def now(self) -> str:
        return fixed(self.after, DIGITS)


class MovedQuery(Struct, frozen=True, kw_only=True):
    """A query whose ranks are others since a change point; of its metric, the means before and after."""

    id: str
    question: str
    was: str
    now: str


class Changed(Struct, frozen=True, kw_only=True):
    """A run at which metrics changed."""

    run: RecordedRun
    metrics: Sequence[MetricChange]
    results: str  # of how many queries the results changed at this very run
    queries: Sequence[MovedQuery] = ()
    further: int = 0

    @property
    def worse(self) -> bool:
        return any(metric.worse for metric in self.metrics)

    @property
    def p_value(self) -> float | None:
        return max((metric.p_value for metric in self.metrics if metric.p_value is not None), default=None)


class Row(Struct, frozen=True, kw_only=True):
    """A run in the table of runs."""

    run: RecordedRun
    results: str
    means: Sequence[str] = ()


class FailedQuery(Struct, frozen=True, kw_only=True):
    """How often a query failed, and where it did last."""

    id: str
    failed: int
    of: int
    last: RecordedRun


class Section(Struct, frozen=True, kw_only=True):
    """What is shown of a contract; what changed and the runs are the newest first."""

    title: str
    about: Phrase
    basis: str  # what the means are of
    state: str  # worse, steady or unknown
    tested: int  # runs
    standing: Sequence[Changed]  # losses that were not made up for
    made_up: Changed | None  # the last loss that was
    last_changed: Row | None
    charts: Sequence[Chart]
    changes: Sequence[Changed]
    labels: Sequence[str]
    rows: Sequence[Row]
    further_runs: int
    failed: Sequence[FailedQuery]
    notes: Sequence[str]


def section_of(of: ContractRuns) -> Section:
    """Return what is shown of a contract."""
    results = {after.id: _results_changed(before, after) for before, after in pairwise(of.runs)}
    changes = list(_changes(of, results))
    current = {metric.key: metric.after for change in reversed(changes) for metric in change.metrics}
    losses = [change for change in changes if change.worse]
    standing = [change for change in losses if any(_stands(metric, current) for metric in change.metrics)]
    tested = max((len(series.known) for series in of.series.values()), default=0)
    labels = {key: series.metric.label for key, series in of.series.items()}
    means = {
        key: {run.id: fixed(value, DIGITS) for run, value in series.known[-bounds.PAGE_ROWS :]}
        for key, series in of.series.items()
    }
    rows = [
        Row(run=run, results=results.get(run.id, ""), means=[means[key].get(run.id, "-") for key in labels])
        for run in of.runs[::-1][: bounds.PAGE_ROWS]
    ]
    return Section(
        title=shown(of.contract or UNNAMED, bounds.HTML_NAME),
        about=tuple(_about(of)),
        basis=_basis(of),
        state="worse" if standing else "steady" if tested >= LEAST_RUNS else "unknown",
        tested=tested,
        standing=standing,
        made_up=next((change for change in losses if change not in standing), None),
        last_changed=next((Row(run=run, results=results[run.id]) for run in of.runs[:0:-1] if results[run.id]), None),
        charts=[chart for trend in _trends(of, changes) if (chart := chart_of(trend))],
        changes=changes,
        labels=list(labels.values()),
        rows=rows,
        further_runs=len(of.runs) - len(rows),
        failed=list(_failed(of.runs)),
        notes=[*of.notes, *_notes(of)],
    )


def _about(of: ContractRuns) -> Iterator[str | Name]:
    yield count(len(of.runs), "recorded run")
    if of.branch:
        yield from (" of ", Name(of.branch))
    if of.runs:
        yield f", {' to '.join(dict.fromkeys(_when(run)[:10] for run in (of.runs[0], of.runs[-1])))}."


def _basis(of: ContractRuns) -> str:
    if not of.questions:
        return AS_RECORDED
    every = {id(run.queries): run.queries.has for run in _charted(of) if run.queries}
    shared = sum(map(all, zip(*every.values(), strict=True))) if every else len(of.questions)
    of_all = "" if shared == len(of.questions) else f"the {shared:,} that all runs have of "
    return f"Scored again by {of_all}today's {count(len(of.questions), 'golden query')}."


def _charted(of: ContractRuns) -> list[RecordedRun]:
    """Return the runs that are in the charts."""
    ids = {run.id for series in of.series.values() for run in series.runs}
    return [run for run in of.runs if run.id in ids]


def _notes(of: ContractRuns) -> Iterator[str]:
    if dirty := sum(run.dirty for run in of.runs):
        yield f"{count(dirty, 'run')} of a dirty working tree, only in the table of runs."
    if len(of.runs) > bounds.PAGE_SEARCHED:
        yield f"Before the last {bounds.PAGE_SEARCHED} runs, change points are searched in the means of several runs."


def _stands(metric: MetricChange, current: Mapping[str, float]) -> bool:
    """Return whether most of a loss is left, ``current`` being the means since the last change points."""
    lost = metric.before - metric.after
    return metric.worse and (metric.before - current[metric.key]) / lost > MADE_UP


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


def _changes(of: ContractRuns, results: Mapping[str, str]) -> Iterator[Changed]:
    """Yield the runs at which metrics changed, the newest first."""
    runs = {run.id: run for run in of.runs}
    at: dict[str, list[MetricChange]] = {}
    for key, series in of.series.items():
        of_series = [runs[run.id] for run, _ in series.known]
        points = points_of([value for _, value in series.known])
        edges = [0, *(point.position for point in points), len(of_series)]
        for number, point in enumerate(points):
            around = of_series[edges[number] : edges[number + 2]]
            place = _located(around, point, point.position - edges[number], key)
            before, after = around[:place], around[place:]
            at.setdefault(after[0].id, []).append(_metric_change(key, series.metric, point, before, after))
    for run_id, metrics in sorted(at.items(), reverse=True):
        before, after = (min(sides, key=len) for sides in zip(*(metric.sides for metric in metrics), strict=True))
        moved = _moved(before, after, metrics[0].key)
        moved.sort(key=lambda query: abs((query[1] or 0.0) - (query[2] or 0.0)), reverse=True)
        ids = [*of.questions]
        yield Changed(
            run=runs[run_id],
            metrics=metrics,
            results=results.get(run_id, ""),
            queries=[
                MovedQuery(
                    id=ids[place],
                    question=of.questions[ids[place]],
                    was=fixed(was, DIGITS),
                    now=fixed(now, DIGITS),
                )
                for place, was, now in moved[: bounds.PAGE_QUERIES]
            ],
            further=max(len(moved) - bounds.PAGE_QUERIES, 0),
        )


def _located(runs: Sequence[RecordedRun], point: ChangePoint, place: int, key: str) -> int:
    """Return the place near that of a change point since which most queries are ranked differently.

    In noise, the means alone are often some runs off. ``runs`` are those from the change point before to the next.
    """
    if point.p_value is None:
        return place
    near = [place + step for step in NEAR if LEAST_RUNS_A_SIDE <= place + step <= len(runs) - LEAST_RUNS_A_SIDE]
    return max(near, key=lambda each: len(_moved(runs[:each], runs[each:], key)), default=place)


def points_of(values: Sequence[float]) -> list[ChangePoint]:
    """Return the change points of a series of any length.

    The time that they take grows with the number of runs. So in runs before the last ``bounds.PAGE_SEARCHED``, they are
    searched in the means of stretches of runs first, and then within the stretches around each.
    """
    newest = len(values) - bounds.PAGE_SEARCHED
    if newest <= 0:
        return list(change_points(values))
    size = -(-len(values) // bounds.PAGE_SEARCHED)
    stretches = [mean(values[start : start + size]) for start in range(0, len(values), size)]
    points = change_points(stretches)
    edges = [0, *(point.position for point in points), len(stretches)]
    p_values = {newest + point.position: point.p_value for point in change_points(values[newest:])}
    for point, before, after in zip(points, edges, edges[2:], strict=False):
        split = best_split(values[before * size : after * size])
        position = before * size + split.position if split else point.position * size
        if position < newest + LEAST_RUNS_A_SIDE:
            p_values.setdefault(position, point.p_value)
    edges = [0, *sorted(p_values), len(values)]
    means = [mean(values[start:stop]) for start, stop in pairwise(edges)]
    return [
        ChangePoint(position=position, before=before, after=after, p_value=p_values[position])
        for position, (before, after) in zip(edges[1:-1], pairwise(means), strict=True)
    ]


def _metric_change(
    key: str, metric: Metric, point: ChangePoint, before: Sequence[RecordedRun], after: Sequence[RecordedRun]
) -> MetricChange:
    return MetricChange(
        key=key,
        label=metric.label,
        before=point.before,
        after=point.after,
        worse=worse(metric.better, point.before, point.after),
        p_value=point.p_value,
        sides=(before, after),
    )


def _moved(
    before: Sequence[RecordedRun], after: Sequence[RecordedRun], key: str
) -> list[tuple[int, float | None, float | None]]:
    """Return the queries whose ranks in all runs after a change differ from those in all before it.

    They are given by their places, with the means of a metric before and after. Runs without a result set do not count.
    """
    then, now = (
        list({id(run.queries): run.queries for run in runs if run.queries}.values()) for runs in (before, after)
    )
    if not then or not now:
        return []
    has = map(all, zip(*(each.has for each in (*then, *now)), strict=True))
    ranks = [map(set, zip(*(each.ranks for each in side), strict=True)) for side in (then, now)]
    places = [
        place
        for place, (is_there, was, is_now) in enumerate(zip(has, *ranks, strict=True))
        if is_there and was.isdisjoint(is_now)
    ]
    return [(place, _mean(then, key, place), _mean(now, key, place)) for place in places]


def _mean(runs: Sequence[QueryValues], key: str, place: int) -> float | None:
    values = [value for run in runs if key in run.values and not isnan(value := run.values[key][place])]
    return fsum(values) / len(values) if values else None


def _failed(runs: Sequence[RecordedRun]) -> Iterator[FailedQuery]:
    """Yield the queries that failed most often; of equally many, those that failed last."""
    failed, last = Counter[str](), dict[str, RecordedRun]()
    for run in runs:
        failed.update(run.failed)
        last |= dict.fromkeys(run.failed, run)
    order = sorted(failed, key=lambda query: (failed[query], last[query].id), reverse=True)
    for query in order[: bounds.PAGE_FAILED]:
        yield FailedQuery(id=query, failed=failed[query], of=len(runs), last=last[query])


def _trends(of: ContractRuns, changes: Sequence[Changed]) -> Iterator[Trend]:
    runs = {run.id: run for run in of.runs}
    for key, series in of.series.items():
        best = level([value for _, value in series.known[-of.window :]], series.metric.better)
        best_value = None if best is None else best.value
        changed = {change.run.id for change in changes if any(metric.key == key for metric in change.metrics)}
        yield Trend(
            label=series.metric.label,
            scale=series.metric.scale,
            points=[_point(runs[run.id], value) for run, value in zip(series.runs, series.values, strict=True)],
            limits=[
                line
                for kind, limit, relative in of.limits.get(key, ())
                for line in limit_lines(kind, limit, best_value, series.metric.scale, relative=relative)
            ],
            level=None if best_value is None else (_level_text(of, best_value), best_value),
            changes={place: _short(run) for place, run in enumerate(series.runs) if run.id in changed},
        )


def _level_text(of: ContractRuns, best: float) -> str:
    among = f" of the last {of.window} runs" if of.window < len(of.runs) else ""
    return f"best level{among} {fixed(best, DIGITS)}"


def _point(run: RecordedRun, value: float | None) -> Point:
    return Point(value=value, when=_when(run), commit=_short(run), state=run.state, passed=run.verdict == "pass")


def _short(run: PastRun) -> str:
    return (run.commit or "unknown")[:SHORT_COMMIT]


def _when(run: PastRun) -> str:
    return when_of(run.id)[0]


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
        short=_short,
        when=_when,
        day=lambda run: _when(run)[: len("2026-11-21")],
        link_of=_link_of,
        changed=CHANGED,
        least=LEAST_RUNS,
        wrong=HOW_OFTEN_WRONG,
    )
