"""Counts the rows of queries that are not in the golden set, and lists their ids."""

import sys

from ragcontract.core import bounds
from ragcontract.evaluation.plan import Plan


class UnknownQueries:
    """The ids of a side that the golden set does not have.

    ``bounds.UNKNOWN`` of a run are listed, and ``more`` counts the rows of others. Of a baseline, all are listed.
    """

    def __init__(self, plan: Plan) -> None:
        """Have no ids yet; those of golden queries that are not judged are no unknown ones."""
        self._not_judged = plan.not_judged
        self._most = sys.maxsize if plan.is_baseline else bounds.UNKNOWN
        self._listed: dict[str, None] = {}
        self.more = 0

    def note(self, query_id: str) -> None:
        """Add a row's id."""
        if query_id in self._not_judged:
            return
        if len(self._listed) < self._most or query_id in self._listed:
            self._listed[query_id] = None
        else:
            self.more += 1

    @property
    def listed(self) -> tuple[str, ...]:
        """The distinct ids, in the order of the rows."""
        return tuple(self._listed)
