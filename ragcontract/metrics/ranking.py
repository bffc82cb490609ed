"""From the documents that a query returned to what is kept of them: ranks of the named ones, and metrics."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ragcontract.evaluation.duplicates import Duplicates
from ragcontract.metrics.formulas import Found, Gain, MetricAtK, gain_of
from ragcontract.model import GoldenQuery, QueryScore
from ragcontract.statistics.repeats import averaged

RankBy = Literal["results", "documents"]
RanksOf = tuple[int | None, ...]

NOT_FOUND: RanksOf = (None,)
REMEMBERED = 50_000  # kinds of scores, some 10 MB of them; queries by the million have a few hundred


def score_rows(
    rows: Iterable[tuple[str, list[str]]],
    golden: Mapping[str, GoldenQuery],
    scorer: "Scorer",
    *,
    duplicates: Duplicates | None = None,
    listed: int = sys.maxsize,
) -> tuple[dict[str, QueryScore], list[str], int]:
    """Fold rows of ``(query_id, doc_ids)`` into a score a golden query; several rows of a query are averaged.

    Returns also the first ids that no golden query has, as many as are to be ``listed``, and counts the other rows of
    that kind: a log may have any number of them. Documents that a row repeats are counted in ``duplicates``.
    """
    scores: dict[str, QueryScore] = {}
    unknown: dict[str, None] = {}
    more = 0
    repeats: dict[str, list[QueryScore]] = {}
    score = scorer.score
    for query_id, doc_ids in rows:
        query = golden.get(query_id)
        if query is None:
            if len(unknown) < listed or query_id in unknown:
                unknown[query_id] = None
            else:
                more += 1
            continue
        if duplicates is not None:
            duplicates.note(query_id, doc_ids)
        if query_id in scores:
            repeats.setdefault(query_id, [scores[query_id]]).append(score(query, doc_ids))
        else:  # under the golden query's own id: a row's copy of it need not be held
            scores[query.id] = score(query, doc_ids)
    scores |= {query_id: averaged(several) for query_id, several in repeats.items()}
    return scores, list(unknown), more


class Scorer:
    """Scores queries one by one, and gives those that fared alike one and the same score.

    With ``rank_by="documents"`` a document's later results (its other chunks) take no rank. A document is never
    credited twice either way.
    """

    def __init__(
        self,
        metrics: Sequence[MetricAtK],
        rank_by: RankBy = "results",
        gain: Gain = "linear",
        *,
        remembered: int = REMEMBERED,
    ) -> None:
        """Score with these ``metrics``; at most so many different scores are ``remembered``."""
        self._metrics = metrics
        self._by_document = rank_by == "documents"
        self._gain = gain
        self._remembered = remembered
        self._scores: dict[tuple[RanksOf, RanksOf], QueryScore] = {}

    def score(self, query: GoldenQuery, doc_ids: Sequence[str]) -> QueryScore:
        """Score the documents returned for one query, best first."""
        if self._by_document:
            doc_ids = list(dict.fromkeys(doc_ids))
        relevant, forbidden = query.relevant_doc_ids, query.forbidden_doc_ids
        if len(relevant) == 1:  # as most have: calls cost a million times
            ranks = (doc_ids.index(relevant[0]) + 1,) if relevant[0] in doc_ids else NOT_FOUND
        else:
            ranks = _ranks(doc_ids, relevant)
        forbidden_ranks = _ranks(doc_ids, forbidden) if forbidden else ()
        if query.relevance is not None and ranks:
            values = self._values(ranks, *self._gains(query.relevance, doc_ids))
            return QueryScore(ranks=ranks, forbidden_ranks=forbidden_ranks, values=values)
        score = self._scores.get((ranks, forbidden_ranks))
        if score is None:
            if len(self._scores) >= self._remembered:
                self._scores.clear()
            score = QueryScore(ranks=ranks, forbidden_ranks=forbidden_ranks, values=self._values(ranks))
            self._scores[ranks, forbidden_ranks] = score
        return score

    def _values(
        self, ranks: RanksOf, gains: Sequence[tuple[int, float]] | None = None, ideal: Sequence[float] = ()
    ) -> tuple[float, ...]:
        if not ranks:
            return ()
        found = Found(sorted([rank for rank in ranks if rank]), len(ranks), gains, ideal)
        return tuple([metric.of_query(found) for metric in self._metrics])

    def _gains(
        self, relevance: Mapping[str, float], doc_ids: Sequence[str]
    ) -> tuple[list[tuple[int, float]], list[float]]:
        """Return the rank and the gain of every graded document that was found, and all gains, largest first."""
        gains = {doc_id: gain_of(grade, self._gain) for doc_id, grade in relevance.items()}
        ranked = zip(_ranks(doc_ids, tuple(gains)), gains.values(), strict=True)
        return [(rank, gain) for rank, gain in ranked if rank], sorted(gains.values(), reverse=True)


def _ranks(doc_ids: Sequence[str], wanted: tuple[str, ...]) -> RanksOf:
    """Return the 1-based rank of the first result of each wanted document, None for one that was not returned."""
    # list.index runs in C: quicker than a loop over the results for the few documents that a query names.
    return tuple([doc_ids.index(doc_id) + 1 if doc_id in doc_ids else None for doc_id in wanted])
