"""From the documents that a query returned to what is kept of them: ranks of the named ones, and metrics."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from ragcontract.model import GoldenQuery, QueryScore, Ranks
from ragcontract.scoring.duplicates import Duplicates
from ragcontract.scoring.metrics import Found, Gain, MetricAtK, gain_of
from ragcontract.scoring.repeats import averaged

RankBy = Literal["results", "documents"]

REMEMBERED = 50_000
NOTHING: Ranks = {}  # one for all the queries that have none: there may be a million


def score_rows(
    rows: Iterable[tuple[str, list[str]]],
    golden: Mapping[str, GoldenQuery],
    metrics: Sequence[MetricAtK],
    rank_by: RankBy,
    gain: Gain = "linear",
    *,
    duplicates: Duplicates | None = None,
) -> tuple[dict[str, QueryScore], list[str]]:
    """Fold rows of ``(query_id, doc_ids)`` into a score a golden query, and the ids that no golden query has.

    Several rows of a query are averaged.
    Documents that a row repeats are counted in ``duplicates``, where given.
    """
    scores: dict[str, QueryScore] = {}
    unknown: dict[str, None] = {}
    repeats: dict[str, list[QueryScore]] = {}
    scorer = Scorer(metrics, rank_by, gain)
    for query_id, doc_ids in rows:
        query = golden.get(query_id)
        if query is None:
            unknown[query_id] = None
            continue
        if duplicates is not None:
            duplicates.note(query_id, doc_ids)
        score = scorer.score(query, doc_ids)
        # The golden query's own id is the key: a row's copy of it need not be held.
        if scores.setdefault(query.id, score) is not score:
            repeats.setdefault(query.id, [scores[query.id]]).append(score)
    scores |= {query_id: averaged(several) for query_id, several in repeats.items()}
    return scores, list(unknown)


def score_query(
    query: GoldenQuery,
    doc_ids: Sequence[str],
    metrics: Sequence[MetricAtK],
    rank_by: RankBy = "results",
    gain: Gain = "linear",
) -> QueryScore:
    """Score the documents returned for one query, best first.

    With ``rank_by="documents"`` a document's later results (its other chunks) take no rank. A document is never
    credited twice either way.
    """
    return Scorer(metrics, rank_by, gain).score(query, doc_ids)


class Scorer:
    """Scores queries one by one, and remembers what ranks are worth: a run has far fewer kinds of them than queries."""

    def __init__(self, metrics: Sequence[MetricAtK], rank_by: RankBy, gain: Gain) -> None:
        """Score with these ``metrics``; see :func:`score_query`."""
        self._metrics = metrics
        self._by_document = rank_by == "documents"
        self._gain = gain
        self._values: dict[tuple[int, ...], tuple[float, ...]] = {}

    def score(self, query: GoldenQuery, doc_ids: Sequence[str]) -> QueryScore:
        """Score the documents returned for one query, best first."""
        if self._by_document:
            doc_ids = list(dict.fromkeys(doc_ids))
        ranks = _ranks(doc_ids, query.relevant_doc_ids)
        if query.relevance is not None and query.relevant_doc_ids:
            values = self._graded(query.relevance, doc_ids, ranks, len(query.relevant_doc_ids))
        else:
            values = self._ungraded(ranks, len(query.relevant_doc_ids))
        return QueryScore(ranks=ranks, forbidden_ranks=_ranks(doc_ids, query.forbidden_doc_ids), values=values)

    def _ungraded(self, ranks: Ranks, relevant: int) -> tuple[float, ...]:
        """Score by what matters to every metric: how many are relevant, and at which ranks they were found."""
        if not relevant:
            return ()
        kind = (relevant, *sorted(ranks.values())) if len(ranks) > 1 else (relevant, *ranks.values())
        values = self._values.get(kind)
        if values is None:
            if len(self._values) >= REMEMBERED:
                self._values.clear()
            found = Found(kind[1:], relevant)
            values = self._values[kind] = tuple([metric.of_query(found) for metric in self._metrics])
        return values

    def _graded(
        self, relevance: Mapping[str, float], doc_ids: Sequence[str], ranks: Ranks, relevant: int
    ) -> tuple[float, ...]:
        gains = {doc_id: gain_of(grade, self._gain) for doc_id, grade in relevance.items()}
        graded = [(rank, gains[doc_id]) for doc_id, rank in _ranks(doc_ids, gains).items()]
        found = Found(sorted(ranks.values()), relevant, graded, sorted(gains.values(), reverse=True))
        return tuple([metric.of_query(found) for metric in self._metrics])


def _ranks(doc_ids: Sequence[str], wanted: Collection[str]) -> Ranks:
    """Map those of the wanted documents that were returned to the 1-based rank of their first result."""
    if not wanted:
        return NOTHING
    # list.index runs in C: quicker than a loop over the results for the few documents that a query names.
    return {doc_id: doc_ids.index(doc_id) + 1 for doc_id in wanted if doc_id in doc_ids} or NOTHING
