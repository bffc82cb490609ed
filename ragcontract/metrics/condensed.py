"""Condensed lists: the ranking without the documents that nobody has judged.

Sakai, *Alternatives to Bpref* (SIGIR 2007), after Buckley and Voorhees, *Retrieval Evaluation with Incomplete
Information* (SIGIR 2004): leaving out what nobody judged distorts less than counting it as not relevant, as long as
enough of what is not relevant was judged.
"""

from bisect import bisect_left

from ragcontract.core.first_ids import pool_of
from ragcontract.core.golden import GoldenQuery
from ragcontract.metrics.formulas import Found
from ragcontract.metrics.judged import Unjudged


def can_be_condensed(query: GoldenQuery, pool: bytes | None) -> bool:
    """Return whether any document is known as not relevant: otherwise, only relevant ones would be left."""
    grades = query.relevance or {}
    if query.forbidden_doc_ids or 0 in grades.values():
        return True
    return pool is not None and not pool_of(pool).issubset({*query.relevant_doc_ids, *grades})


def condensed(found: Found, unjudged: Unjudged) -> Found:
    """Return what is found in the list without its unjudged results, wherever in the list they are."""
    ranks = unjudged.ranks
    return Found(
        [rank - bisect_left(ranks, rank) for rank in found.hits],
        found.relevant,
        None if found.gains is None else [(rank - bisect_left(ranks, rank), gain) for rank, gain in found.gains],
        found.ideal,
    )
