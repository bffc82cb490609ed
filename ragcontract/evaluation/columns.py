"""The values of the families beside the ranking metrics: a number a query and metric, in arrays."""

from array import array
from collections.abc import Mapping, Sequence
from math import isnan, nan

from ragcontract.core.scores import Values
from ragcontract.statistics.repeats import averaged_values


class Column:
    """The values of one family, by the number of a query in the golden set; 8 bytes a number.

    A query may be noted several times: its values are then the means, and ``rows`` has each.
    """

    def __init__(self, metrics: int, numbers: Mapping[str, int]) -> None:
        """Make room for so many ``metrics`` of the queries that are numbered."""
        self._metrics = metrics
        self._numbers = numbers
        self._values = array("d", [nan]) * (metrics * len(numbers))
        self._repeats: dict[str, list[Values]] = {}

    def note(self, query_id: str, values: Values) -> None:
        """Keep a row's values; a query without a part in the metrics has none."""
        if values:
            start = self._numbers[query_id] * self._metrics
            self._values[start : start + self._metrics] = array("d", values)

    def repeat(self, query_id: str, values: Values) -> None:
        """Keep the values of one more row of a query; a row without values has no part in the means."""
        if values:
            first = self[query_id]
            rows = self._repeats.setdefault(query_id, [first] if first else [])
            rows.append(values)
            self.note(query_id, averaged_values(rows))

    def __getitem__(self, query_id: str) -> Values:
        """Return a query's values, empty where it has none."""
        start = self._numbers[query_id] * self._metrics
        values = tuple(self._values[start : start + self._metrics])
        return () if isnan(values[0]) else values

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""
        return self._repeats.get(query_id) or [self[query_id]]
