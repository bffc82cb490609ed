"""The results of a run that count for what is judged and measured."""

from collections.abc import Sequence
from itertools import islice

from ragcontract.core import bounds
from ragcontract.core.first_ids import FirstIds, first_of
from ragcontract.core.golden import GoldenQuery
from ragcontract.judging.evaluated import Evaluation
from ragcontract.metrics.judged import judged_documents


class FirstResults:
    """Collects the results of a run as far as they count: the top k, or those from which it is condensed."""

    def __init__(self, evaluation: Evaluation) -> None:
        """Collect nothing yet."""
        contract, baseline = evaluation.contract, evaluation.baseline
        self._queries, self._ranking = contract.queries, contract.ranking
        self._skips = contract.config.unjudged == "skip"
        self._pools = baseline.pools if baseline else {}
        self._found = FirstIds(bounds.RANK, by_document=self._ranking.by_document)

    def note(self, query_id: str, doc_ids: Sequence[str]) -> None:
        """Add a row; of a query that is not golden, nothing."""
        query = self._queries.get(query_id)
        if query is not None:
            k = bounds.RANK if self._skips else self._ranking.k
            first = first_of(doc_ids, k, by_document=self._ranking.by_document)
            self._found.note([(query, self._until_k_judged(query, first) if self._skips else first)])

    def _until_k_judged(self, query: GoldenQuery, doc_ids: Sequence[str]) -> Sequence[str]:
        """Return the results down to the k-th that is judged, and at least k."""
        judged, k = judged_documents(query, self._pools.get(query.id)), self._ranking.k
        ranks = (rank for rank, doc_id in enumerate(doc_ids, start=1) if doc_id in judged)
        return doc_ids[: max(k, next(islice(ranks, k - 1, None), len(doc_ids)))]

    def result(self) -> dict[str, bytes]:
        """Return the packed rows of each query."""
        return self._found.result()
