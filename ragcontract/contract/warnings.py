"""Finds golden queries that can never pass, and limits on changes that need more queries than there are.

``check`` warns about both, and ``lint`` reports them. All functions are pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from math import inf, isfinite

from msgspec import Struct

from ragcontract.contract.config import Config, enforced
from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import NOUNS, Gate, written
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family
from ragcontract.core.numbers import count
from ragcontract.core.phrase import Place, listed, render
from ragcontract.metrics.ranking import Ranking
from ragcontract.rules.ranks import ForbiddenDocs, MustInclude, MustRankAtMost
from ragcontract.statistics.significance import queries_needed

Queries = Mapping[str, GoldenQuery]  # by id


def never_passing(queries: Queries, config: Config, k: int) -> Iterator[str]:
    """Yield a sentence with its location for each query that no results can satisfy under this configuration."""
    for query, message, is_certain in contradictions(queries, config, k):
        if is_certain:
            yield f"{query.location}: {message}"
    for query, message in more_than_k(queries, config, k):
        yield f"{query.location}: {message}"


def contradictions(queries: Queries, config: Config, k: int) -> Iterator[tuple[GoldenQuery, str, bool]]:
    """Yield queries that want and forbid a document, and whether they can therefore never pass."""
    if not enforced(config, ForbiddenDocs):
        return
    includes, ranks = enforced(config, MustInclude), enforced(config, MustRankAtMost)
    forbidden_within, by_default = config.per_query.forbidden_within, config.per_query.includes_any
    for query in queries.values():
        if query.forbidden_doc_ids and (both := sorted(set(query.relevant_doc_ids) & set(query.forbidden_doc_ids))):
            is_all = len(both) == len(query.relevant_doc_ids)
            wanted_within = [k] if includes and (is_all or not query.wants_any(by_default)) else []
            if ranks and query.must_rank_at_most is not None and is_all:
                wanted_within.append(query.must_rank_at_most)
            is_certain = any(forbidden_within is None or top <= forbidden_within for top in wanted_within)
            never = ", so it can never pass" if is_certain else ""
            message = f"{query.id!r} wants and forbids {render(listed(both, 'and'))}{never}; take one out"
            yield query, message, is_certain


def more_than_k(queries: Queries, config: Config, k: int) -> Iterator[tuple[GoldenQuery, str]]:
    """Yield queries that want more documents in the top ``k`` than fit there."""
    if not enforced(config, MustInclude):
        return
    by_default = config.per_query.includes_any
    for query in queries.values():
        relevant = len(query.relevant_doc_ids)
        if relevant > k and not query.wants_any(by_default):
            wants = f"{query.id!r} wants all {relevant} relevant documents in the top {k}"
            yield query, f"{wants}, so it can never pass; set must_include_any, or raise k"


ADVICE = "add queries, or allow more"


class TooFew(Struct, frozen=True, kw_only=True):
    """A limit on a change of a mean over too few queries."""

    gate: Gate
    queries: int
    needs: int  # the number of queries with which the limit could be decided


def without_enough(contract: Contract) -> Iterator[TooFew]:
    """Yield the limits on changes that need more queries than the golden set has, whatever the run.

    With ``mode: strict`` every limit can be decided. A relative limit is taken of the best possible baseline.
    """
    fail_on = contract.config.fail_on
    if fail_on.mode == "strict":
        return
    needed = cache(queries_needed)
    sizes, scales = {}, {}
    for family in (contract.ranking, *contract.families):
        size = _sizes(family, contract.queries.values())
        for metric in family.metrics:
            sizes[metric.key], scales[metric.key] = size, metric.scale.high - metric.scale.low
    gates = [gate for gate in contract.gates if gate.compares and isfinite(scales.get(gate.quantity.key, inf))]
    tests = len({gate.tag for gate in gates})
    for gate in gates:
        span, queries = scales[gate.quantity.key], sizes[gate.quantity.key][gate.tag]
        limit = gate.limit * span if gate.relative else gate.limit
        needs = needed(limit, fail_on.mode, alpha=fail_on.alpha, span=span, tests=tests)
        if needs and queries < needs:
            yield TooFew(gate=gate, queries=queries, needs=needs)


def _sizes(family: Family, queries: Iterable[GoldenQuery]) -> Counter[str | None]:
    """Return how many queries may have the metrics of a family, in all (None) and by tag."""
    return Counter(tag for query in queries if _applies(family, query) for tag in (None, *query.tags))


def _applies(family: Family, query: GoldenQuery) -> bool:
    """Return whether a query may have a metric, because it names documents or has the field that switches it on."""
    if isinstance(family, Ranking):
        return query.answerable
    return not isinstance(family.switch, str) or getattr(query.answer, family.switch, None) is not None


def too_few_queries(limits: Iterable[TooFew]) -> Iterator[tuple[Place, str]]:
    """Yield the location of the first limit of each size, and a sentence about all limits of that size."""
    by_limit: dict[str, list[TooFew]] = {}
    for limit in limits:
        by_limit.setdefault(_limit(limit.gate), []).append(limit)
    for size, same in by_limit.items():
        for are_tags in (False, True):
            if group := [limit for limit in same if (limit.gate.tag is not None) is are_tags]:
                needs = max(limit.needs for limit in group)
                message = f"{_which(group)}{_names(group)} cannot carry {size}, which needs {needs:,}; {ADVICE}"
                yield group[0].gate.location, message


def _limit(gate: Gate) -> str:
    return f"an allowed {NOUNS[gate.kind]} of {written(gate.limit, relative=gate.relative)}"


def _which(group: list[TooFew]) -> str:
    """Return the queries of the limits, as ``12 queries``, ``a tag of 10 queries``, ``3 tags of 8 to 12 queries``."""
    sizes = [limit.queries for limit in group]
    least, most = min(sizes), max(sizes)
    queries = count(most, "query") if least == most else f"{least:,} to {count(most, 'query')}"
    tags = len({limit.gate.tag for limit in group})
    if group[0].gate.tag is None:
        return queries
    return f"a tag of {queries}" if tags == 1 else f"{count(tags, 'tag')} of {queries}"


def _names(group: list[TooFew]) -> str:
    """Return the names of the tags in brackets; if there are many, the first five and a count."""
    tags = list(dict.fromkeys(limit.gate.tag for limit in group if limit.gate.tag is not None))
    return f" ({render(listed(tags, 'and'), repr)})" if tags else ""
