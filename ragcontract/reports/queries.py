"""What became of single queries, made one by one: a million of them need not be held to be written."""

from collections.abc import Iterable, Iterator, Sequence

from ragcontract.core.text import encodable
from ragcontract.evaluation.scored import Scored
from ragcontract.judging.verdict import Judgement
from ragcontract.model import Detail, GoldenQuery, QueryReport, QueryScore, Ranks

ALL_UP_TO = 10_000  # golden queries: all that a report for people shows, and tools open, with ease


def usual_detail(scored: Scored) -> Detail:
    """Return what a report lists unless it is told otherwise."""
    return "all" if len(scored.golden.queries) <= ALL_UP_TO else "changed"


def query_reports(scored: Scored, judgement: Judgement, detail: Detail) -> Iterator[QueryReport]:
    """Yield the queries that a report of this ``detail`` lists, in the golden set's order."""
    keys = [metric.key for metric in scored.metrics]
    now = scored.run.scores
    before = scored.baseline.scores if scored.baseline else {}
    broken = judgement.violations
    queries: Iterable[GoldenQuery] = scored.golden.queries.values()
    if detail == "failed":
        queries = [query for query in queries if query.id in broken]
    elif detail == "changed":
        others = {query_id for query_id, score in before.items() if score is not now[query_id]}  # mostly, one is shared
        changed = {query_id for query_id in others if before[query_id] != now[query_id]}
        queries = [query for query in queries if query.id in broken or query.id in changed]
    for query in queries:
        yield _query(query, now[query.id], before.get(query.id), judgement, keys)


def _query(
    query: GoldenQuery, current: QueryScore, before: QueryScore | None, judgement: Judgement, keys: Sequence[str]
) -> QueryReport:
    violations = judgement.violations.get(query.id, [])
    return QueryReport(
        id=query.id,
        location=encodable(query.location),
        query=query.query,
        tags=list(query.tags),
        weight=query.weight,
        status=judgement.status(query.id),
        metrics=query_metrics(current, keys),
        baseline_metrics=query_metrics(before, keys) if before else None,
        ranks=relevant_ranks(query, current),
        baseline_ranks=relevant_ranks(query, before) if before else None,
        forbidden_ranks=_forbidden_ranks(query, current),
        baseline_forbidden_ranks=_forbidden_ranks(query, before) if before else None,
        violations=violations,
        repeated=bool(current.repeats or (before and before.repeats)),
    )


def query_metrics(score: QueryScore, keys: Sequence[str]) -> dict[str, float | None]:
    """Name a query's metrics; null for an unanswerable query."""
    return dict(zip(keys, score.values or (None,) * len(keys), strict=True))


def relevant_ranks(query: GoldenQuery, score: QueryScore) -> dict[str, int | None]:
    """Give every relevant document its rank, null where it was not retrieved."""
    return dict(zip(query.relevant_doc_ids, score.ranks, strict=True))


def _forbidden_ranks(query: GoldenQuery, score: QueryScore) -> Ranks:
    """Give every forbidden document that was retrieved its rank."""
    return {doc_id: rank for doc_id, rank in zip(query.forbidden_doc_ids, score.forbidden_ranks, strict=True) if rank}
