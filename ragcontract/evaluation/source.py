"""Source interface: where a run or a baseline is read from."""

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from ragcontract.core.run import RunRow
from ragcontract.evaluation.fold import fold
from ragcontract.evaluation.listed_results import Listed, ListedResults
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.events import Batch
from ragcontract.runs.readers import Reader


class Source(Protocol):
    """Evaluates a plan where the rows are, and returns the result."""

    def evaluate(self, plan: Plan) -> Side:
        """Return the side; its ``problems`` contain everything wrong with the rows."""

    def listed(self, plan: Plan) -> Listed:
        """Return the results of the queries that the plan for a baseline lists, for which rows are read once more."""

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Yield the rows once more, for a report on all that was answered; raises InputError if that is impossible."""


class Local(Struct, frozen=True):
    """Rows that are read on this machine."""

    reader: Reader

    def evaluate(self, plan: Plan) -> Side:
        """Read and evaluate the rows."""
        with_metrics = any(not family.from_ids for family in plan.families)
        return fold(plan, self.reader.events(plan.row_type, with_metrics=with_metrics))

    def listed(self, plan: Plan) -> Listed:
        """Read the rows until those of all listed queries were found; of several rows of one, the first counts."""
        found = ListedResults(plan)
        for event in self.reader.events(plan.row_type):
            if isinstance(event, Batch):
                found.note_listed(event.rows)
                if found.has_all:
                    break
        return Listed(retrieved=found.held, said=found.said)

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:
        """Read the rows; those that cannot be read were reported before."""
        for event in self.reader.events(record):
            if isinstance(event, Batch):
                yield from event.rows
