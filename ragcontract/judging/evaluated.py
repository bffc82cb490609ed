"""An evaluation: run and baseline, scored under one contract. The verdict depends on nothing else."""

from typing import TYPE_CHECKING

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core.scores import Means
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.evaluation.side import Side

if TYPE_CHECKING:
    from ragcontract.judging.replayed import Replayed
    from ragcontract.runs.score_files import GivenScores


class Evaluation(Struct, frozen=True, kw_only=True):
    """The contract, the scores of run and baseline, and the aggregates over them.

    ``given`` is what scores files have for the run; its scores are among those of the run. ``replayed`` is what a judge
    said of it; None if no metric needs that and no judgments are given.
    """

    contract: Contract
    run: Side
    baseline: Side | None
    aggregates: Aggregates
    given: "GivenScores | None" = None
    replayed: "Replayed | None" = None

    def metrics(self, side: Side, query_id: str) -> Means:
        """Return the metrics of a query on one side, by key; None for a metric that does not apply to it."""
        found: Means = {}
        for number, family in enumerate(self.aggregates.families):
            (values,) = side.values(number, [query_id])
            found |= dict(zip(family.keys, values, strict=True)) if values else dict.fromkeys(family.keys)
        return found
