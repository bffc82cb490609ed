"""How far labels move the limits of a contract: what is lacking to each, and what a relevant document adds to it.

A limit on a mean is linear in the means of run and baseline: they must satisfy ``now + before * factor >= limit``, with
the factor 0 for a minimum, -1 for a drop in points, and -(1 - p) for a drop of p of the baseline. A label changes the
values of one query on both sides, so its move is the weighted change of that sum.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.core.gate import Gate
from ragcontract.core.golden import PLACEHOLDER, GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.scores import Values
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.gate_report import NOT_HELD, GateReport
from ragcontract.statistics.repeats import averaged_values

Lists = Sequence[Sequence[str]]  # the first k documents of each row of a query
Scorer = Callable[[GoldenQuery, Sequence[str], bytes | None], Values]


class Limit(Struct, frozen=True, kw_only=True):
    """A limit on the mean of a ranking metric, or only that metric where nothing is limited.

    ``column`` is that of the metric, ``factor`` and ``total`` (of weights) are those of the sum that it limits.
    ``lacking`` is by how much the sum must rise to be within the limit, 0 if it is; ``slack`` by how much it may fall.
    """

    id: str
    label: str
    column: int
    factor: float = 0.0
    compares: bool = False
    tag: str | None = None
    total: float
    lacking: float = 0.0
    slack: float | None = None
    report: GateReport | None = None

    def move(self, query: GoldenQuery, now: Values, before: Values) -> float:
        """Return how far the sum moves, given the changes of the query's values; empty ones of a side without any."""
        if (self.tag is not None and self.tag not in query.tags) or not now or (self.compares and not before):
            return 0.0
        change = now[self.column] + (self.factor * before[self.column] if self.compares else 0.0)
        return query.weight * change / self.total


def limits_of(evaluation: Evaluation, reports: Iterable[GateReport]) -> list[Limit]:
    """Return the limits on ranking metrics; without any, one for each ranking metric at the largest cut-off."""
    contract = evaluation.contract
    columns = {metric.key: column for column, metric in enumerate(contract.ranking.metrics)}
    by_id = {report.id: report for report in reports}
    gates = [gate for gate in contract.gates if gate.quantity.key in columns]
    totals = _totals(evaluation, {gate.tag for gate in gates})
    found = [
        _limit(gate, by_id[gate.id], columns[gate.quantity.key], totals[gate.tag, gate.compares], evaluation)
        for gate in gates
    ]
    return found or [
        Limit(id=metric.key, label=metric.label, column=columns[metric.key], total=totals[None, False])
        for metric in _at_largest_k(contract.ranking.metrics, contract.k)
    ]


def _at_largest_k(metrics: Iterable[Metric], k: int) -> list[Metric]:
    return [metric for metric in metrics if metric.k == k]


def _totals(evaluation: Evaluation, tags: Iterable[str | None]) -> Mapping[tuple[str | None, bool], float]:
    """Return the weights of all queries, and of those in both sides, in the means of each tag (None: of all)."""
    wanted = {None, *tags}
    totals = dict.fromkeys([(tag, shared) for tag in wanted for shared in (False, True)], 0.0)
    now, before = evaluation.run.scores, evaluation.baseline.scores if evaluation.baseline else {}
    for query in evaluation.contract.queries.values():
        score = now.get(query.id)
        if score is None or not score.values:
            continue
        other = before.get(query.id)
        for tag in wanted.intersection((None, *query.tags)):
            totals[tag, False] += query.weight
            if other is not None and other.values:
                totals[tag, True] += query.weight
    return totals


def _limit(gate: Gate, report: GateReport, column: int, total: float, evaluation: Evaluation) -> Limit:
    factor = 0.0 if not gate.compares else gate.limit - 1 if gate.relative else -1.0
    before = report.before or 0.0
    unit = before if gate.relative else 1.0
    observed, limit = report.observed * unit, report.limit * unit
    margin = limit - observed if gate.compares else observed - limit
    if evaluation.contract.config.fail_on.mode == "noninferiority" and report.bounds is not UNSET:
        margin = min(margin, limit - report.bounds[1] * unit)
    is_over = report.status in NOT_HELD and margin < -SAME
    return Limit(
        id=gate.id,
        label=gate.quantity.label,
        column=column,
        factor=factor,
        compares=gate.compares,
        tag=gate.tag,
        total=total or 1.0,
        lacking=-margin if is_over else 0.0,
        slack=max(margin, SAME),
        report=report,
    )


class Effects:
    """What the values of a query become when some of its documents are relevant."""

    def __init__(self, score: Scorer, level: float) -> None:
        """Store how a row is scored, and the grade from which documents are relevant."""
        self._score = score
        self._level = level

    def values(self, query: GoldenQuery, rows: Lists, pool: bytes | None) -> Values:
        """Return the values of a query with a judged pool, the means over its rows; empty without rows."""
        return averaged_values([self._score(query, row, pool) for row in rows]) if rows else ()

    def with_relevant(self, query: GoldenQuery, doc_ids: Sequence[str]) -> GoldenQuery:
        """Return a query with more relevant documents, of its highest grade; the placeholder makes room for them."""
        known = tuple([doc_id for doc_id in query.relevant_doc_ids if doc_id != PLACEHOLDER])
        relevance = query.relevance
        if relevance is not None:
            graded = {doc_id: grade for doc_id, grade in relevance.items() if doc_id != PLACEHOLDER}
            highest = max(self._level, *graded.values()) if graded else self._level
            relevance = {**graded, **dict.fromkeys(doc_ids, highest)}
        return replace(query, relevant_doc_ids=(*known, *doc_ids), relevance=relevance)


def changes(values: Values, before: Values) -> Values:
    """Return the differences between two rows of values; empty if either is."""
    return tuple([now - then for now, then in zip(values, before, strict=True)]) if values and before else ()
