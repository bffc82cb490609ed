"""How likely a document that nobody has judged is to be relevant, from what is judged at its rank and for its query.

Both shares are smoothed towards that of all judged results of the run, as if a few more had been judged with that
result; where little is judged, the chance is nearly the same for all. It serves to order documents, no more.
"""

from collections.abc import Collection, Sequence

AT_RANK, OF_QUERY = 5, 2  # documents that the share of all counts for, beside those at a rank and those of a query


class RelevanceChances:
    """Counts the judged results of a run."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self._judged: dict[int, int] = {}
        self._relevant: dict[int, int] = {}
        self._all_judged = self._all_relevant = 0

    def note(self, rows: Sequence[Sequence[str]], judged: Collection[str], relevant: Collection[str]) -> None:
        """Count the results of a query's rows that are judged, and those that are relevant, by rank."""
        for row in rows:
            for rank, doc_id in enumerate(row, start=1):
                if doc_id in judged:
                    self._judged[rank] = self._judged.get(rank, 0) + 1
                    self._relevant[rank] = self._relevant.get(rank, 0) + (doc_id in relevant)
                    self._all_judged += 1
                    self._all_relevant += doc_id in relevant

    @property
    def overall(self) -> float:
        """The share of the judged results that are relevant; never 0, as if one more of each were."""
        return (self._all_relevant + 1) / (self._all_judged + 2)

    def of(self, rank: int, judged: int, relevant: int) -> float:
        """Return the chance of a document at a rank, of a query with so many judged and relevant documents."""
        overall = self.overall
        at_rank = (self._relevant.get(rank, 0) + AT_RANK * overall) / (self._judged.get(rank, 0) + AT_RANK)
        of_query = (relevant + OF_QUERY * overall) / (judged + OF_QUERY)
        return min(1.0, at_rank * of_query / overall)
