"""From the documents that a query returned to what is kept of them: ranks of the named ones, and metrics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from ragcontract.model import GoldenQuery, QueryScore, Ranks
from ragcontract.scoring.duplicates import Duplicates
from ragcontract.scoring.metrics import Found, Gain, MetricAtK, gain_of
from ragcontract.scoring.repeats import averaged

RankBy = Literal["results", "documents"]


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
    for query_id, doc_ids in rows:
        query = golden.get(query_id)
        if query is None:
            unknown[query_id] = None
        else:
            if duplicates is not None:
                duplicates.note(query_id, doc_ids)
            score = score_query(query, doc_ids, metrics, rank_by, gain)
            if scores.setdefault(query_id, score) is not score:
                repeats.setdefault(query_id, [scores[query_id]]).append(score)
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
    if rank_by == "documents":
        doc_ids = list(dict.fromkeys(doc_ids))
    ranks = _ranks(doc_ids, query.relevant_doc_ids)
    relevant = len(query.relevant_doc_ids)
    found = Found(sorted(ranks.values()), relevant)
    if query.relevance is not None and relevant:
        gains = {doc_id: gain_of(grade, gain) for doc_id, grade in query.relevance.items()}
        graded = [(rank, gains[doc_id]) for doc_id, rank in _ranks(doc_ids, gains).items()]
        found = Found(found.hits, relevant, graded, sorted(gains.values(), reverse=True))
    return QueryScore(
        ranks=ranks,
        forbidden_ranks=_ranks(doc_ids, query.forbidden_doc_ids),
        values=tuple([metric.of_query(found) for metric in metrics]) if relevant else (),
    )


def _ranks(doc_ids: Sequence[str], wanted: Iterable[str]) -> Ranks:
    """Map those of the wanted documents that were returned to the 1-based rank of their first result."""
    # list.index runs in C: quicker than a loop over the results for the few documents that a query names.
    return {doc_id: doc_ids.index(doc_id) + 1 for doc_id in wanted if doc_id in doc_ids}
