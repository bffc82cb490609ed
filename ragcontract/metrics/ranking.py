"""The family of ranking metrics, which computes ranks and metrics from the document ids of a row.

Some documents may not be judged by anybody. They count as not relevant, or the list is condensed, which leaves them
out. That distorts less as long as enough documents that are not relevant were judged: Sakai, *Alternatives to Bpref*
(SIGIR 2007), after Buckley and Voorhees, *Retrieval Evaluation with Incomplete Information* (SIGIR 2004).

Where they count, each metric also has the best value that labels could still give it. That is its value if all unjudged
documents of the top k were relevant. More relevant documents can lower nDCG and MAP, because they add to the ideal and
to the denominator; for these metrics, it is the best value if only the best-ranked of them were relevant. With grades,
they would have the highest grade of the query. The distance to the value itself is like the residual of Moffat and
Zobel, *Rank-Biased Precision for Measurement of Retrieval Effectiveness* (TOIS 2008).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import log2

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import EVERYTHING, pool_of
from ragcontract.core.metric import Family, Gain, Metric, MetricSettings, RankBy, SwitchedOn, Unjudged, at_cutoff
from ragcontract.core.run import QueryScore, Ranks, RunRow, Values
from ragcontract.metrics.formulas import FORMULAS, Formula, Found, average_precision, gain_of, ndcg
from ragcontract.metrics.judged import UnjudgedResults, shares, unjudged_in
from ragcontract.metrics.overlap import Overlap

NOT_FOUND: Ranks = (None,)
REMEMBERED = 50_000  # number of distinct scores cached, about 10 MB; even millions of queries have only a few hundred
SEARCHED = 8  # wanted documents up to which searching the results for each is faster than indexing them all
SUGGESTED = {"mrr", "recall"}  # each further limit reduces the power of the others, so only two are suggested


def ranking(settings: MetricSettings) -> Iterable[Family]:
    """Return the family of every formula at every cut-off."""
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
        unjudged: Unjudged = "count",
        remembered: int = REMEMBERED,
    ) -> None:
        # ``remembered`` is the maximum number of cached scores.
        self.k = max(cutoffs)
        self._cutoffs = sorted(set(cutoffs), reverse=True)
        self._formulas = [(formula, k) for k in self._cutoffs for formula in FORMULAS]
        self.metrics = [
            at_cutoff(Metric(key=formula.name, label=formula.label, suggested=formula.name in SUGGESTED), k, self.k)
            for formula, k in self._formulas
        ]
        self.by_document = rank_by == "documents"
        self._gain = gain
        self._skips = unjudged == "skip"
        self._remembered = remembered
        self._scores: dict[tuple[Ranks, Ranks, UnjudgedResults | None], QueryScore] = {}

    def values(self, query: GoldenQuery, row: RunRow) -> Values:
        """Return the metric values of one row."""
        return self.score(query, row.doc_ids).values

    def score(self, query: GoldenQuery, doc_ids: Sequence[str], pool: bytes | None = None) -> QueryScore:
        """Score the documents retrieved for one query, best first.

        ``pool`` has the documents that were judged for its labels, packed; None if only its golden row has labels.
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
        unjudged: UnjudgedResults | None,
        gains: Sequence[tuple[int, float]] | None = None,
        ideal: Sequence[float] = (),
    ) -> QueryScore:
        values: Values = ()
        if_relevant: Values = ()
        if ranks:
            retrieved = Found(sorted([rank for rank in ranks if rank]), len(ranks), gains, ideal)
            if unjudged and unjudged.skipped:
                retrieved = condensed(retrieved, unjudged)
            elif unjudged:
                if_relevant = best_values(self._formulas, retrieved, unjudged.first)
            values = tuple([formula.value(retrieved, k) for formula, k in self._formulas])
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
    """Return :attr:`QueryScore.clean_rank`; 0 unless all documents are in the top ``k`` and none is forbidden."""
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


class Families(Struct, frozen=True, kw_only=True):
    """The families of metrics that are computed together, of a contract and of the plan that is made from it."""

    ranking: Ranking  # its ranks are stored for rules
    families: tuple[Family, ...] = ()
    diagnostics: tuple[Family, ...] = ()  # they describe labels and changes, and need more than single rows

    @property
    def every_family(self) -> tuple[Family, ...]:
        """All families, in the order in which sides have their values."""
        return self.ranking, *self.families, *self.diagnostics

    @property
    def overlap(self) -> Overlap | None:
        """The family that compares the results with the baseline's, or None."""
        return next((family for family in self.diagnostics if isinstance(family, Overlap)), None)


def best_values(formulas: Iterable[tuple[Formula, int]], retrieved: Found, unjudged: Sequence[int]) -> Values:
    """Return the best value of each formula at its cut-off; ``unjudged`` are the ranks of unjudged documents."""
    return tuple([_best(formula, retrieved, unjudged[: bisect_right(unjudged, k)], k) for formula, k in formulas])


def _best(formula: Formula, retrieved: Found, unjudged: Sequence[int], k: int) -> float:
    if not unjudged:
        return formula.value(retrieved, k)
    if formula.value is average_precision:
        return max(_average_precisions(retrieved, unjudged, k))
    if formula.value is ndcg:
        return min(1.0, max(_ndcgs(retrieved, unjudged, k)))
    return formula.value(Found(sorted([*retrieved.hits, *unjudged]), retrieved.relevant + len(unjudged)), k)


def _average_precisions(retrieved: Found, unjudged: Sequence[int], k: int) -> Iterable[float]:
    """Yield MAP if none, the first, the first two, … of the unjudged documents are relevant."""
    hits = retrieved.hits[: bisect_right(retrieved.hits, k)]
    total = sum([number / rank for number, rank in enumerate(hits, 1)])
    below = [*accumulate((1 / rank for rank in reversed(hits)), initial=0.0)][::-1]  # of the hits from each on
    yield total / retrieved.relevant
    for more, rank in enumerate(unjudged, 1):
        above = bisect_left(hits, rank)
        total += (above + more) / rank + below[above]
        yield total / (retrieved.relevant + more)


def _ndcgs(retrieved: Found, unjudged: Sequence[int], k: int) -> Iterable[float]:
    """Yield nDCG if none, the first, the first two, … of the unjudged documents have the highest gain."""
    gains = [(rank, 1.0) for rank in retrieved.hits] if retrieved.gains is None else retrieved.gains
    ideal = [1.0] * min(k, retrieved.relevant) if retrieved.gains is None else retrieved.ideal
    total = sum([gain / log2(rank + 1) for rank, gain in gains if rank <= k])
    for more, rank in enumerate((0, *unjudged)):
        total += ideal[0] / log2(rank + 1) if rank else 0.0
        best = [ideal[0]] * more + [*ideal[: max(0, k - more)]]
        yield total / sum([gain / log2(rank + 1) for rank, gain in enumerate(best[:k], 1)])


def can_be_condensed(query: GoldenQuery, pool: bytes | None) -> bool:
    """Return whether any document is known as not relevant; otherwise, only relevant ones would be left."""
    grades = query.relevance or {}
    if query.forbidden_doc_ids or 0 in grades.values():
        return True
    return pool is not None and not pool_of(pool).issubset({*query.relevant_doc_ids, *grades})


def condensed(retrieved: Found, unjudged: UnjudgedResults) -> Found:
    """Return the relevant documents in the list without its unjudged results, wherever in the list these are."""
    ranks = unjudged.ranks
    return Found(
        [rank - bisect_left(ranks, rank) for rank in retrieved.hits],
        retrieved.relevant,
        None
        if retrieved.gains is None
        else [(rank - bisect_left(ranks, rank), gain) for rank, gain in retrieved.gains],
        retrieved.ideal,
    )
