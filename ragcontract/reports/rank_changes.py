"""Computes how ranks changed between the baseline and the run."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ragcontract.core.numbers import SAME, fixed
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.reports.report import BaselineInput, QueryReport, Report

DIGITS = 4
RanksById = Mapping[str, int | None]


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

    ``even`` counts the others, in which nothing changed or the changes cancel out.
    """

    worse: list[RankChange]
    better: list[RankChange]
    even: int


def rank_changes(report: Report) -> RankChanges:
    """Return the queries of a report that got worse or better since the baseline."""
    worse: list[RankChange] = []
    better: list[RankChange] = []
    keys = [key for key, metric in report.metrics.items() if metric.k == max(report.k)]
    for query in report.queries:
        if query.baseline_ranks is None:
            continue
        metric = _metric_that_differs(query, keys) if query.repeated else None
        steps = [*_steps(query.baseline_ranks, query.ranks), *_steps(*_forbidden(query), forbidden=True)]
        change = _delta(query, metric) if query.repeated else sum(map(_gain, steps))
        if abs(change) > SAME:
            (better if change > 0 else worse).append(RankChange(query=query, change=change, steps=steps, metric=metric))
    worse.sort(key=lambda one: one.change)
    better.sort(key=lambda one: -one.change)
    shared = report.inputs.baseline.shared if report.inputs.baseline else 0
    return RankChanges(worse=worse, better=better, even=shared - len(worse) - len(better))


def _metric_that_differs(query: QueryReport, keys: Iterable[str]) -> str | None:
    """Return the key of the first metric in which both sides differ."""
    return next((key for key in keys if abs(_delta(query, key)) > SAME), None)


def _delta(query: QueryReport, key: str | None) -> float:
    now = query.metrics.get(key) if key else None
    before = (query.baseline_metrics or {}).get(key) if key else None
    return 0.0 if now is None or before is None else now - before


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


def _reciprocals(ranks: RanksById) -> float:
    return sum(1 / rank for rank in ranks.values() if rank)


def loss(query: QueryReport) -> tuple[bool, float]:
    """Return the sort key of broken queries, worst first: forbidden documents, then lost reciprocal ranks.

    Without a baseline, the loss is measured from every relevant document at rank 1.
    """
    forbidden = any(doc_id in query.forbidden_ranks for broken in query.violations for doc_id in broken.doc_ids)
    before = len(query.ranks) if query.baseline_ranks is None else _reciprocals(query.baseline_ranks)
    return not forbidden, _reciprocals(query.ranks) - before


def broken_queries(report: Report) -> list[QueryReport]:
    """Return the broken queries, worst first."""
    return sorted((query for query in report.queries if query.status == "fail"), key=loss)


def tolerated_queries(report: Report) -> list[QueryReport]:
    """Return the queries with findings that do not fail, worst first; their other findings can fail."""
    tolerated = {finding.query_id for finding in report.findings if finding.status != "fail"}
    return sorted((query for query in report.queries if query.id in tolerated), key=loss)


def not_compared(baseline: BaselineInput) -> dict[str, list[str]]:
    """Return the ids of the queries that are new, have another question or are gone, by these labels."""
    groups = {"new": baseline.new, "with another question": baseline.changed, "gone": baseline.gone}
    return {name: query_ids for name, query_ids in groups.items() if query_ids}


def changed_versions(run: Mapping[str, list[str]], baseline: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Return ``{field: (baseline, run)}`` for the version fields that both sides have and that differ."""
    return {
        field: (", ".join(before), ", ".join(now))
        for field in VERSION_FIELDS
        if (now := run.get(field)) and (before := baseline.get(field)) and set(before) != set(now)
    }
