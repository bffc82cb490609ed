"""The metric values of all families except the ranking metrics, by query."""

from array import array
from collections.abc import Container, Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Protocol

from ragcontract.core.run import QueryScore, Values
from ragcontract.statistics.means import averaged_values


class ValuesByQuery(Protocol):
    """The values of one family by query, and those of each row of a query."""

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:
        """Return the values of several queries; None for one that is not among the ``scored`` ones."""

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""


class JudgedShares:
    """The shares of judged results, which are stored with the ranks."""

    def __init__(self, scores: Mapping[str, QueryScore]) -> None:
        self._scores = scores

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        return self._scores[query_id].judged

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:  # noqa: ARG002 (the seam's)
        """Return the values of several queries; None for one without a score."""
        get = self._scores.get
        return [score.judged if (score := get(query_id)) else None for query_id in query_ids]

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""
        score = self._scores[query_id]
        return [repeat.judged for repeat in score.repeats] or [score.judged]


class SharedColumn:
    """Values that many queries share. Equal values are stored as one object."""

    def __init__(self, usual: Values = ()) -> None:
        self._usual = usual  # the values of most queries
        self._shared: dict[Values, Values] = {}
        self._values: dict[str, Values] = {}
        self._repeats: dict[str, list[Values]] = {}

    def add(self, query_id: str, values: Values) -> None:
        """Add a row of a query. Empty values do not count."""
        if not values:
            return
        values = self._shared.setdefault(values, values)
        if query_id in self._values:
            self._repeats.setdefault(query_id, [self._values[query_id]]).append(values)
        else:
            self._values[query_id] = values

    def same(self, query_id: str) -> None:
        """Add a row with the usual values."""
        if query_id in self._values:
            self.add(query_id, self._usual)
        else:
            self._values[query_id] = self._usual

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:  # noqa: ARG002 (the seam's)
        """Return the values of several queries; None for one that was not compared."""
        if self._repeats:
            return [self[query_id] or None for query_id in query_ids]
        return [*map(self._values.get, query_ids)]

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, or their means if it has several rows; empty if it has none."""
        if rows := self._repeats.get(query_id):
            return averaged_values(rows)
        return self._values.get(query_id, ())

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""
        return self._repeats.get(query_id) or [self[query_id]]


class Column:
    """The values of one family by query; 8 bytes per value.

    If a query has several rows, its values are the means, and ``rows`` returns those of each row.
    """

    def __init__(self, metrics: int, numbers: Mapping[str, int]) -> None:
        self._metrics = metrics  # how many the family has
        self._numbers = numbers  # of the queries, by id
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

    def replace(self, query_id: str, values: Values) -> None:
        """Store the values of a query instead of those of its rows; with empty values, it has none."""
        self._repeats.pop(query_id, None)
        self.note(query_id, values or (nan,) * self._metrics)

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        if rows := self._repeats.get(query_id):
            return averaged_values(rows)  # when read: a mean for each of many rows would be quadratic in them
        start = self._numbers[query_id] * self._metrics
        values = tuple(self._values[start : start + self._metrics])
        return () if isnan(values[0]) else values

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:
        """Return the values of several queries; None for one that is not among the ``scored`` ones."""
        return [self[query_id] if query_id in scored else None for query_id in query_ids]

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""
        return self._repeats.get(query_id) or [self[query_id]]
