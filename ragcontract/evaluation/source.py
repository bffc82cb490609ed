"""The seam for sources: what a run or a baseline comes from."""

from typing import Protocol

from msgspec import Struct

from ragcontract.evaluation.fold import fold
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.runs.readers import Reader


class Source(Protocol):
    """Carries out a plan where the rows are, and hands back what they come to."""

    def evaluate(self, plan: Plan) -> Side:
        """Return the side; what is wrong with its rows is in its problems."""


class Local(Struct, frozen=True):
    """Rows that are read on this machine."""

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        """Read and fold the rows."""
        with_metrics = any(not family.from_ids for family in plan.families)
        return fold(plan, self.reader.events(plan.row_type, with_metrics=with_metrics))
