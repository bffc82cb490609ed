"""The family of ranking metrics: computes ranks and metrics from the document ids of a row."""

from collections.abc import Iterable, Mapping, Sequence

from ragcontract.core.first_ids import EVERYTHING
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Gain, Metric, MetricSettings, RankBy, SwitchedOn
from ragcontract.core.metric import Unjudged as Treatment
from ragcontract.core.run import RunRow
from ragcontract.core.scores import QueryScore, Ranks, Values
from ragcontract.metrics.best_case import best_values
from ragcontract.metrics.condensed import can_be_condensed, condensed
from ragcontract.metrics.formulas import FORMULAS, Found, gain_of
from ragcontract.metrics.judged import Unjudged, shares, unjudged_in

NOT_FOUND: Ranks = (None,)
REMEMBERED = 50_000  # number of distinct scores cached, about 10 MB; even millions of queries have only a few hundred
SEARCHED = 8  # wanted documents up to which searching the results for each is faster than indexing them all
SUGGESTED = {"mrr", "recall"}  # each further limit reduces the power of the others, so only two are suggested


def ranking(settings: MetricSettings) -> Iterable[Family]:
    """Return the family: every formula at every cut-off."""
    return [Ranking(settings.cutoffs, settings.rank_by, settings.gain, unjudged=settings.unjudged)]


class Ranking:
    """MRR, Recall, Precision, HitRate, nDCG and MAP at each cut-off, the largest cut-off first.

    With ``rank_by="documents"``, repeated results of a document (its other chunks) do not count as ranks. In either
    case, a document is credited only once. Queries with the same ranks share one score object. With
    ``unjudged="skip"``, values are those of the condensed list, without the documents that nobody has judged.
    """

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.ALWAYS

    def __init__(
        self,
        cutoffs: Sequence[int],
        rank_by: RankBy = "results",
        gain: Gain = "linear",
        *,
        unjudged: Treatment = "count",
        remembered: int = REMEMBERED,
    ) -> None:
        """Store the cut-offs and options; ``remembered`` is the maximum number of cached scores."""
        self.k = max(cutoffs)
        self._cutoffs = sorted(set(cutoffs), reverse=True)
        self._formulas = [(formula, k) for k in self._cutoffs for formula in FORMULAS]
        self.metrics = [
            Metric(
                key=f"{formula.name}_at_{k}",
                label=f"{formula.label}@{k}",
                aliases=(f"{formula.name}_at_k",) if k == self.k else (),
                k=k,
                suggested=formula.name in SUGGESTED,
            )
            for formula, k in self._formulas
        ]
        self.by_document = rank_by == "documents"
        self._gain = gain
        self._skips = unjudged == "skip"
        self._remembered = remembered
        self._scores: dict[tuple[Ranks, Ranks, Unjudged | None], QueryScore] = {}

    def values(self, query: GoldenQuery, row: RunRow) -> Values:
        """Return the metric values of one row."""
        return self.score(query, row.doc_ids).values

    def score(self, query: GoldenQuery, doc_ids: Sequence[str], pool: bytes | None = None) -> QueryScore:
        """Score the documents retrieved for one query, best first.

        ``pool`` has those that were judged for its labels, packed; None if only its golden row says what is judged.
        """
        if self.by_document:
            doc_ids = list(dict.fromkeys(doc_ids))
        relevant, forbidden = query.relevant_doc_ids, query.forbidden_doc_ids
        if len(relevant) == 1:  # the common case; a direct index() saves the call, which matters for millions of rows
            ranks = (doc_ids.index(relevant[0]) + 1,) if relevant[0] in doc_ids else NOT_FOUND
        else:
            ranks = _ranks(doc_ids, relevant)
        forbidden_ranks = _ranks(doc_ids, forbidden) if forbidden else ()
        unjudged = None
        if ranks and pool != EVERYTHING:
            skip = self._skips and can_be_condensed(query, pool)
            unjudged = unjudged_in(query, doc_ids, pool, self.k, skip=skip)
        if query.relevance is not None and ranks:
            return self._made(ranks, forbidden_ranks, unjudged, *self._gains(query.relevance, doc_ids))
        score = self._scores.get((ranks, forbidden_ranks, unjudged))
        if score is None:
            if len(self._scores) >= self._remembered:
                self._scores.clear()
            score = self._scores[ranks, forbidden_ranks, unjudged] = self._made(ranks, forbidden_ranks, unjudged)
        return score

    def _made(
        self,
        ranks: Ranks,
        forbidden_ranks: Ranks,
        unjudged: Unjudged | None,
        gains: Sequence[tuple[int, float]] | None = None,
        ideal: Sequence[float] = (),
    ) -> QueryScore:
        values: Values = ()
        if_relevant: Values = ()
        if ranks:
            found = Found(sorted([rank for rank in ranks if rank]), len(ranks), gains, ideal)
            if unjudged and unjudged.skipped:
                found = condensed(found, unjudged)
            elif unjudged:
                if_relevant = best_values(self._formulas, found, unjudged.first)
            values = tuple([formula.value(found, k) for formula, k in self._formulas])
        return QueryScore(
            ranks=ranks,
            forbidden_ranks=forbidden_ranks,
            values=values,
            clean_rank=clean_rank_of(ranks, forbidden_ranks, self.k),
            judged=shares(unjudged, self._cutoffs) if ranks else (),
            if_relevant=if_relevant,
        )

    def _gains(
        self, relevance: Mapping[str, float], doc_ids: Sequence[str]
    ) -> tuple[list[tuple[int, float]], list[float]]:
        """Return the rank and gain of every graded document that was retrieved, and all gains, largest first."""
        gains = {doc_id: gain_of(grade, self._gain) for doc_id, grade in relevance.items()}
        ranked = zip(_ranks(doc_ids, tuple(gains)), gains.values(), strict=True)
        return [(rank, gain) for rank, gain in ranked if rank], sorted(gains.values(), reverse=True)


def clean_rank_of(ranks: Ranks, forbidden_ranks: Ranks, k: int) -> int:
    """Return :attr:`QueryScore.clean_rank`, 0 unless all documents are in the top ``k`` and none is forbidden."""
    within = [rank for rank in ranks if rank is not None and rank <= k]
    if len(within) < len(ranks) or any(forbidden_ranks):
        return 0
    return min(within, default=1)


def _ranks(doc_ids: Sequence[str], wanted: tuple[str, ...]) -> Ranks:
    """Return the 1-based rank of the first result of each wanted document, None for one that was not retrieved."""
    if len(wanted) <= SEARCHED:
        return tuple([doc_ids.index(doc_id) + 1 if doc_id in doc_ids else None for doc_id in wanted])
    first = dict(zip(reversed(doc_ids), range(len(doc_ids), 0, -1), strict=True))  # the last one set is the best rank
    return tuple(map(first.get, wanted))
