"""Golden queries that can never pass, whatever is retrieved: ``check`` warns about them, ``lint`` reports them."""

from collections.abc import Iterator, Mapping

from ragcontract.contract.config import Config, enforced
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import listed, render
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost

Queries = Mapping[str, GoldenQuery]  # by id


def never_passing(queries: Queries, config: Config, k: int) -> Iterator[str]:
    """Yield a sentence, with its location, for each query that no results can satisfy under this configuration."""
    for query, message, is_certain in contradictions(queries, config, k):
        if is_certain:
            yield f"{query.location}: {message}"
    for query, message in more_than_k(queries, config, k):
        yield f"{query.location}: {message}"


def contradictions(queries: Queries, config: Config, k: int) -> Iterator[tuple[GoldenQuery, str, bool]]:
    """Yield queries that want and forbid a document, and whether they can therefore never pass."""
    if not enforced(config, ForbiddenDocs):
        return
    for query in queries.values():
        if query.forbidden_doc_ids and (both := sorted(set(query.relevant_doc_ids) & set(query.forbidden_doc_ids))):
            is_certain = _contradicts(query, len(both), config, k)
            never = ", so it can never pass" if is_certain else ""
            yield (
                query,
                f"{query.id!r} wants and forbids {render(listed(both, 'and'))}{never}; take one out",
                is_certain,
            )


def _contradicts(query: GoldenQuery, forbidden: int, config: Config, k: int) -> bool:
    """Return whether no results can satisfy both rules if so many of the relevant documents are forbidden."""
    rules = config.per_query
    all_forbidden = forbidden == len(query.relevant_doc_ids)
    wanted_within = []
    if enforced(config, MustInclude) and (all_forbidden or not query.must_include_any):
        wanted_within.append(k)
    if enforced(config, MustRankAtMost) and query.must_rank_at_most is not None and all_forbidden:
        wanted_within.append(query.must_rank_at_most)
    return any(rules.forbidden_within is None or top <= rules.forbidden_within for top in wanted_within)


def more_than_k(queries: Queries, config: Config, k: int) -> Iterator[tuple[GoldenQuery, str]]:
    """Yield queries that want more documents in the top ``k`` than fit there."""
    if not enforced(config, MustInclude):
        return
    for query in queries.values():
        relevant = len(query.relevant_doc_ids)
        if relevant > k and not query.must_include_any:
            wants = f"{query.id!r} wants all {relevant} relevant documents in the top {k}"
            yield query, f"{wants}, so it can never pass; set must_include_any, or raise k"
