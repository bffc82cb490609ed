"""Documents that a row returns more than once, as chunks of them do: they take the places of others. Pure."""

from msgspec import Struct

NAMED = 3


class Duplicates(Struct, kw_only=True):
    """Counted row by row: of the ``results`` in the top k, ``repeated`` ones repeat a document of their row.

    ``short`` counts the rows whose exported results, because some repeat, hold fewer than k documents; ``named`` are
    the first three.
    """

    k: int
    results: int = 0
    repeated: int = 0
    short: int = 0
    named: list[str] = []

    def note(self, query_id: str, doc_ids: list[str]) -> None:
        """Count a row."""
        top = doc_ids[: self.k]
        self.results += len(top)
        distinct = len(set(top))
        if distinct == len(top):  # most rows: nothing repeats
            return
        self.repeated += len(top) - distinct
        if len(set(doc_ids)) < self.k:
            self.short += 1
            if len(self.named) < NAMED and query_id not in self.named:
                self.named.append(query_id)

    @property
    def rate(self) -> float:
        """The share of repeated results, 0 where there are no results."""
        return self.repeated / self.results if self.results else 0.0
