"""An evaluation: run and baseline, scored under one contract. The verdict depends on nothing else."""

from collections.abc import Sequence

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core.scores import Means, Values
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.evaluation.side import Side


class Evaluation(Struct, frozen=True, kw_only=True):
    """The contract, the scores of run and baseline, and the aggregates over them."""

    contract: Contract
    run: Side
    baseline: Side | None
    aggregates: Aggregates

    def metrics(self, side: Side, query_id: str) -> Means:
        """Return the metrics of a query on one side, by key; None for a metric that does not apply to it."""
        found: Means = {}
        for number, family in enumerate(self.aggregates.families):
            (values,) = side.values(number, [query_id])
            found |= dict(zip(family.keys, values, strict=True)) if values else dict.fromkeys(family.keys)
        return found

    def rows(self, side: Side, query_id: str) -> list[Values]:
        """Return the values of all metrics for each row of a query; the side must have a score for it."""
        score = side.scores[query_id]
        columns = [[one.values for one in score.repeats] or [score.values], *[c.rows(query_id) for c in side.columns]]
        longest = max(map(len, columns))
        return [
            _joined([column[number if number < len(column) else 0] for column in columns]) for number in range(longest)
        ]


def _joined(values: Sequence[Values]) -> Values:
    return tuple(value for part in values for value in part)
