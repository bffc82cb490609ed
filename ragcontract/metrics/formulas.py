"""Formulas of the ranking metrics of a query, with the ranking cut at rank k; all values are from 0 to 1.

The definitions are those of Manning, Raghavan and Schütze, *Introduction to Information Retrieval* (2008), chapter 8,
and of trec_eval (``recip_rank``, ``recall.k``, ``P.k``, ``success.k``, ``map_cut.k``, ``ndcg_cut.k``) on the list cut
at k. As in trec_eval, precision is divided by k even if a list is shorter. nDCG is that of Järvelin and Kekäläinen
(2002) with the discount log2(rank + 1); exponential gain is that of Burges et al. (2005).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import log2

from msgspec import Struct

from ragcontract.core.metric import Gain


class Found(Struct, frozen=True, gc=False):
    """The relevant documents of a query that were retrieved."""

    hits: Sequence[int]  # their 1-based ranks in ascending order, each document once
    relevant: int  # the number of all relevant documents, at least 1
    # The (rank, gain) of every graded document that was retrieved; without grades, each relevant one has a gain of 1.
    gains: Sequence[tuple[int, float]] | None = None
    ideal: Sequence[float] = ()  # with grades, all gains, largest first


def reciprocal_rank(retrieved: Found, k: int) -> float:
    """Return 1 / rank of the first relevant document, or 0 if none is in the top k."""
    hits = retrieved.hits
    return 1 / hits[0] if hits and hits[0] <= k else 0.0


def recall(retrieved: Found, k: int) -> float:
    """Return the fraction of the relevant documents that are in the top k."""
    return bisect_right(retrieved.hits, k) / retrieved.relevant


def precision(retrieved: Found, k: int) -> float:
    """Return the fraction of the top k that is relevant; the denominator is k even for shorter lists."""
    return bisect_right(retrieved.hits, k) / k


def hit_rate(retrieved: Found, k: int) -> float:
    """Return 1 if any relevant document is in the top k, otherwise 0."""
    return float(bool(retrieved.hits) and retrieved.hits[0] <= k)


def ndcg(retrieved: Found, k: int) -> float:
    """Return the discounted gain of the top k, divided by the best possible gain."""
    if retrieved.gains is None:
        best = _discounts(min(k, retrieved.relevant))
        return sum([1 / log2(rank + 1) for rank in retrieved.hits if rank <= k]) / best
    best = sum(gain / log2(rank + 1) for rank, gain in enumerate(retrieved.ideal[:k], 1))
    return min(1.0, sum(gain / log2(rank + 1) for rank, gain in retrieved.gains if rank <= k) / best)


def average_precision(retrieved: Found, k: int) -> float:
    """Return the mean of the precision at the rank of each relevant document, counting 0 for those not in the top k."""
    return sum([number / rank for number, rank in enumerate(retrieved.hits, 1) if rank <= k]) / retrieved.relevant


@lru_cache(maxsize=1024)
def _discounts(ranks: int) -> float:
    return sum([1 / log2(rank + 1) for rank in range(1, ranks + 1)])


def gain_of(grade: float, gain: Gain) -> float:
    """Return the gain of a grade, which is the grade itself or 2^grade - 1."""
    return grade if gain == "linear" else 2.0**grade - 1


class Formula(Struct, frozen=True, kw_only=True):
    """A formula of a ranking metric."""

    name: str  # in files
    label: str  # for people
    value: Callable[[Found, int], float]  # of the retrieved documents and k


FORMULAS = (
    Formula(name="mrr", label="MRR", value=reciprocal_rank),
    Formula(name="recall", label="Recall", value=recall),
    Formula(name="precision", label="Precision", value=precision),
    Formula(name="hitrate", label="HitRate", value=hit_rate),
    Formula(name="ndcg", label="nDCG", value=ndcg),
    Formula(name="map", label="MAP", value=average_precision),
)
