"""Computes how ranks changed between the baseline and the run."""

from collections.abc import Container

from msgspec import Struct

from ragcontract.core.numbers import SAME, fixed
from ragcontract.core.scores import RanksById
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import QueryReport, Report

DIGITS = 4


class Step(Struct, frozen=True, kw_only=True):
    """A document whose rank changed: its rank before and now, None if it was not retrieved."""

    doc_id: str
    before: int | None
    now: int | None
    forbidden: bool = False


class RankChange(Struct, frozen=True, kw_only=True):
    """A query whose ranks changed; a negative ``change`` is worse.

    The change is the sum of differences in reciprocal rank: positive for relevant documents that rose and for
    forbidden documents that fell. For a query with several rows, it is the change of the metric with the key
    ``metric``, because worst ranks over different numbers of rows cannot be compared; its steps are worst ranks.
    """

    query: QueryReport
    change: float
    steps: list[Step]
    metric: str | None = None


class RankChanges(Struct, frozen=True, kw_only=True):
    """The queries that both sides have, as worse (worst first) and better (best first).

    ``even`` counts those that are neither: nothing changed, or documents swapped ranks. It is None where the report
    lists only broken queries (``detail`` is ``failed``).
    """

    worse: list[RankChange]
    better: list[RankChange]
    even: int | None


def rank_changes(report: Report) -> RankChanges:
    """Return the queries of a report that got worse or better since the baseline."""
    worse: list[RankChange] = []
    better: list[RankChange] = []
    keys = frozenset(at_largest_k(report))
    for query in report.queries:
        if query.baseline_ranks is None:
            continue
        metric = _metric_that_differs(query, keys) if query.repeated else None
        steps = [*_steps(query.baseline_ranks, query.ranks), *_steps(*_forbidden(query), forbidden=True)]
        change = _gain_in(query, metric, report) if query.repeated else sum(map(_gain, steps))
        if abs(change) > SAME:
            (better if change > 0 else worse).append(RankChange(query=query, change=change, steps=steps, metric=metric))
    worse.sort(key=lambda one: one.change)
    better.sort(key=lambda one: -one.change)
    return RankChanges(worse=worse, better=better, even=_even(report, len(worse) + len(better)))


def _even(report: Report, changed: int) -> int | None:
    if report.detail == "failed":
        return None
    return max((report.inputs.baseline.shared if report.inputs.baseline else 0) - changed, 0)


def _metric_that_differs(query: QueryReport, keys: Container[str]) -> str | None:
    """Return the first of some metrics in which both sides differ."""
    return next((key for key in query.metrics if key in keys and abs(_delta(query, key)) > SAME), None)


def _delta(query: QueryReport, key: str | None) -> float:
    now = query.metrics.get(key) if key else None
    before = (query.baseline_metrics or {}).get(key) if key else None
    return 0.0 if now is None or before is None else now - before


def _gain_in(query: QueryReport, key: str | None, report: Report) -> float:
    return 0.0 if key is None else _delta(query, key) * (1 if report.metrics[key].better == "higher" else -1)


def _steps(before: RanksById, now: RanksById, *, forbidden: bool = False) -> list[Step]:
    if before == now:
        return []
    return [
        Step(doc_id=doc_id, before=before.get(doc_id), now=now.get(doc_id), forbidden=forbidden)
        for doc_id in {**before, **now}
        if before.get(doc_id) != now.get(doc_id)
    ]


def _forbidden(query: QueryReport) -> tuple[RanksById, RanksById]:
    return query.baseline_forbidden_ranks or {}, query.forbidden_ranks


def _gain(step: Step) -> float:
    gain = (1 / step.now if step.now else 0.0) - (1 / step.before if step.before else 0.0)
    return -gain if step.forbidden else gain


def rank(number: int | None) -> str:
    """Format a rank; None is ``missing``."""
    return "missing" if number is None else str(number)


def metric_step(item: RankChange, report: Report, arrow: str) -> str:
    """Return the change of a query with several rows as text: ``MRR@5 0.8333 → 0.6667``."""
    key = item.metric or ""
    before = (item.query.baseline_metrics or {}).get(key)
    return f"{report.metrics[key].label} {fixed(before, DIGITS)} {arrow} {fixed(item.query.metrics[key], DIGITS)}"
