"""The rules of single queries: which are broken, and what was expected and found."""

from collections.abc import Iterable, Iterator, Mapping

from ragcontract.contract.config import PerQuery
from ragcontract.judging.words import Where, listed, whereabouts, within
from ragcontract.model import GoldenQuery, QueryScore, Rule, Violation


def broken_rules(query: GoldenQuery, score: QueryScore, k: int, rules: PerQuery) -> list[Violation]:
    """Return every rule of ``query`` that its retrieved documents break, ``k`` being the largest cut-off."""
    where = dict(zip(query.relevant_doc_ids, score.ranks, strict=True))
    found: list[Violation] = []
    if rules.enforce_forbidden_docs:
        forbidden = dict(zip(query.forbidden_doc_ids, score.forbidden_ranks, strict=True))
        found += _forbidden(forbidden, k, rules.forbidden_within)
    if rules.enforce_must_rank_at_most:
        found += _rank_too_low(query, where)
    if rules.enforce_must_include:
        found += _not_included(query, where, k)
    return found


def suspects(queries: Iterable[GoldenQuery], scores: Mapping[str, QueryScore], k: int) -> list[GoldenQuery]:
    """Leave out queries, most as a rule, that cannot have broken a rule.

    It must let through every query that :func:`broken_rules` finds something in, whichever rules are enforced.
    """
    distinct = {id(score): score for score in scores.values()}  # queries that fared alike share a score
    best = {identity: rank for identity, score in distinct.items() if (rank := _best_if_sound(score, k)) is not None}
    return [
        query
        for query in queries
        if (rank := best.get(id(scores[query.id]))) is None or rank > (query.must_rank_at_most or rank)
    ]


def _best_if_sound(score: QueryScore, k: int) -> int | None:
    """Return the best rank of a relevant document, where all are in the top k and no forbidden one is anywhere."""
    ranks = [rank for rank in score.ranks if rank is not None and rank <= k]
    if len(ranks) < len(score.ranks) or any(score.forbidden_ranks):
        return None
    return min(ranks, default=1)  # an unanswerable query has no rank that could be too low


def never_satisfiable(queries: Iterable[GoldenQuery], k: int) -> Iterator[str]:
    """Yield a warning for every query that asks for more documents in the top k than fit there."""
    for query in queries:
        if len(query.relevant_doc_ids) > k and not query.must_include_any:
            relevant = len(query.relevant_doc_ids)
            yield (
                f"{query.location}: {query.id!r} wants all {relevant} relevant documents in the top {k}, which cannot "
                "hold them, so it can never pass; set must_include_any, or raise k"
            )


def _forbidden(where: Where, k: int, top: int | None) -> Iterator[Violation]:
    present = [doc_id for doc_id, rank in where.items() if rank and (top is None or rank <= top)]
    if present:
        expected = f"no {listed(present, 'or')} {within(top)}"
        yield _violation("forbidden_docs", present, top, expected, whereabouts(present, where, k))


def _rank_too_low(query: GoldenQuery, where: Where) -> Iterator[Violation]:
    top = query.must_rank_at_most
    if top is None or any(rank and rank <= top for rank in where.values()):
        return
    docs = list(where)
    expected = f"{listed(docs, 'or')} {within(top)}"
    yield _violation("must_rank_at_most", docs, top, expected, whereabouts(docs, where, top))


def _not_included(query: GoldenQuery, where: Where, k: int) -> Iterator[Violation]:
    missing = [doc_id for doc_id, rank in where.items() if rank is None or rank > k]
    if not missing or (query.must_include_any and len(missing) < len(where)):
        return
    rule: Rule = "must_include_any" if query.must_include_any else "must_include"
    expected = f"{listed(missing, 'or' if query.must_include_any else 'and')} {within(k)}"
    yield _violation(rule, missing, k, expected, whereabouts(missing, where, k))


def _violation(rule: Rule, doc_ids: list[str], limit: int | None, expected: str, found: str) -> Violation:
    message = f"expected {expected}; found: {found}"
    return Violation(rule=rule, doc_ids=doc_ids, limit=limit, expected=expected, found=found, message=message)
