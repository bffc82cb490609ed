"""Documents that a row returns more than once, as chunks of them do: they displace other documents. Pure."""

from msgspec import Struct

NAMED = 3


class Duplicates(Struct, frozen=True, kw_only=True):
    """Of the ``results`` in the top k, ``repeated`` ones repeat a document of their row.

    ``short`` counts the rows whose exported results, because some repeat, hold fewer than k documents; ``named`` are
    the first three.
    """

    results: int = 0
    repeated: int = 0
    short: int = 0
    named: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """The share of repeated results, 0 where there are no results."""
        return self.repeated / self.results if self.results else 0.0


class DuplicateCounter:
    """Counts duplicates row by row."""

    def __init__(self, k: int) -> None:
        """Look at the top ``k``, the largest cut-off."""
        self._k = k
        self._results = self._repeated = self._short = 0
        self._named: list[str] = []

    def note(self, query_id: str, doc_ids: list[str]) -> bool:
        """Count a row; returns whether it holds too few documents because some repeat."""
        top = doc_ids[: self._k]
        self._results += len(top)
        distinct = len(set(top))
        if distinct == len(top):  # most rows: nothing repeats
            return False
        self._repeated += len(top) - distinct
        if len(set(doc_ids)) >= self._k:
            return False
        self._short += 1
        if len(self._named) < NAMED and query_id not in self._named:
            self._named.append(query_id)
        return True

    def result(self) -> Duplicates:
        """Return the counts."""
        return Duplicates(results=self._results, repeated=self._repeated, short=self._short, named=tuple(self._named))
