"""Counts documents that a row returns more than once, for example as chunks: they displace other documents."""

from msgspec import Struct

from ragcontract.core import bounds


class Duplicates(Struct, frozen=True, kw_only=True):
    """Duplicate documents: ``repeated`` of the ``results`` in the top k repeat a document of the same row.

    ``short`` counts the rows that contain fewer than k distinct documents because some are repeated; ``named`` has the
    first three query ids.
    """

    results: int = 0
    repeated: int = 0
    short: int = 0
    named: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """The fraction of repeated results; 0 if there are no results."""
        return self.repeated / self.results if self.results else 0.0


class DuplicateCounter:
    """Counts duplicates row by row."""

    def __init__(self, k: int) -> None:
        """Count duplicates in the top ``k``, where k is the largest cut-off."""
        self._k = k
        self._results = self._repeated = self._short = 0
        self._named: list[str] = []

    def note(self, query_id: str, doc_ids: list[str]) -> bool:
        """Count a row; return whether it contains too few documents because some are repeated."""
        top = doc_ids[: self._k]
        self._results += len(top)
        distinct = len(set(top))
        if distinct == len(top):  # the common case: no duplicates
            return False
        self._repeated += len(top) - distinct
        if len(set(doc_ids)) >= self._k:
            return False
        self._short += 1
        if len(self._named) < bounds.NAMES and query_id not in self._named:
            self._named.append(query_id)
        return True

    def result(self) -> Duplicates:
        """Return the counts so far."""
        return Duplicates(results=self._results, repeated=self._repeated, short=self._short, named=tuple(self._named))
