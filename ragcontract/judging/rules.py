"""The rules of single queries: which are broken, and what was expected and found."""

from collections.abc import Iterable, Iterator

from ragcontract.inputs.config import PerQuery
from ragcontract.judging.words import Where, listed, whereabouts, within
from ragcontract.model import GoldenQuery, QueryScore, Rule, Violation


def broken_rules(query: GoldenQuery, score: QueryScore, k: int, rules: PerQuery) -> list[Violation]:
    """Return every rule of ``query`` that its retrieved documents break, ``k`` being the largest cut-off."""
    if (
        query.must_rank_at_most is None
        and not any(score.forbidden_ranks)
        and all(map(range(1, k + 1).__contains__, score.ranks))
    ):
        return []  # most queries of most runs
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


def never_satisfiable(queries: Iterable[GoldenQuery], k: int) -> Iterator[str]:
    """Yield a warning for every query that asks for more documents in the top k than fit there."""
    for query in queries:
        relevant = len(query.relevant_doc_ids)
        if relevant > k and not query.must_include_any:
            yield (
                f"{query.place}: {query.id!r} wants all {relevant} relevant documents in the top {k}, which cannot "
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
