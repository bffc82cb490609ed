"""Arrays of the metric values of all families except the ranking metrics."""

from array import array
from collections.abc import Mapping, Sequence
from math import isnan, nan

from ragcontract.core.scores import Values
from ragcontract.statistics.repeats import averaged_values


class Column:
    """The values of one family by query; 8 bytes per value.

    If a query has several rows, its values are the means, and ``rows`` returns those of each row.
    """

    def __init__(self, metrics: int, numbers: Mapping[str, int]) -> None:
        """Allocate the values of so many ``metrics`` for the queries in ``numbers``, which maps ids to indexes."""
        self._metrics = metrics
        self._numbers = numbers
        self._values = array("d", [nan]) * (metrics * len(numbers))
        self._repeats: dict[str, list[Values]] = {}

    def note(self, query_id: str, values: Values) -> None:
        """Store the values of a row; they are empty if the metrics do not apply to it."""
        if values:
            start = self._numbers[query_id] * self._metrics
            self._values[start : start + self._metrics] = array("d", values)

    def repeat(self, query_id: str, values: Values) -> None:
        """Add the values of a further row of a query; empty values do not count in the means."""
        if values:
            if query_id not in self._repeats:
                first = self[query_id]
                self._repeats[query_id] = [first] if first else []
            self._repeats[query_id].append(values)

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        if rows := self._repeats.get(query_id):
            return averaged_values(rows)  # when read: a mean for each of many rows would be quadratic in them
        start = self._numbers[query_id] * self._metrics
        values = tuple(self._values[start : start + self._metrics])
        return () if isnan(values[0]) else values

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""
        return self._repeats.get(query_id) or [self[query_id]]
