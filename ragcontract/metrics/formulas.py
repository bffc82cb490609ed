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
    """The relevant documents of a query that were retrieved.

    ``hits`` are the 1-based ranks of these documents in ascending order, with each document once; ``relevant`` is the
    number of all relevant documents (at least 1). If there are grades, ``gains`` has the ``(rank, gain)`` of every
    graded document that was retrieved, and ``ideal`` has all gains, largest first; otherwise each relevant document has
    a gain of 1.
    """

    hits: Sequence[int]
    relevant: int
    gains: Sequence[tuple[int, float]] | None = None
    ideal: Sequence[float] = ()


def reciprocal_rank(found: Found, k: int) -> float:
    """Return 1 / rank of the first relevant document, or 0 if none is in the top k."""
    hits = found.hits
    return 1 / hits[0] if hits and hits[0] <= k else 0.0


def recall(found: Found, k: int) -> float:
    """Return the fraction of the relevant documents that are in the top k."""
    return bisect_right(found.hits, k) / found.relevant


def precision(found: Found, k: int) -> float:
    """Return the fraction of the top k that is relevant; the denominator is k even for shorter lists."""
    return bisect_right(found.hits, k) / k


def hit_rate(found: Found, k: int) -> float:
    """Return 1 if any relevant document is in the top k, otherwise 0."""
    return float(bool(found.hits) and found.hits[0] <= k)


def ndcg(found: Found, k: int) -> float:
    """Return the discounted gain of the top k, divided by the best possible one."""
    if found.gains is None:
        best = _discounts(min(k, found.relevant))
        return sum([1 / log2(rank + 1) for rank in found.hits if rank <= k]) / best
    best = sum(gain / log2(rank + 1) for rank, gain in enumerate(found.ideal[:k], 1))
    return min(1.0, sum(gain / log2(rank + 1) for rank, gain in found.gains if rank <= k) / best)


def average_precision(found: Found, k: int) -> float:
    """Return the mean of the precision at the rank of each relevant document, counting 0 for those not in the top k."""
    return sum([number / rank for number, rank in enumerate(found.hits, 1) if rank <= k]) / found.relevant


@lru_cache(maxsize=1024)
def _discounts(ranks: int) -> float:
    return sum([1 / log2(rank + 1) for rank in range(1, ranks + 1)])


def gain_of(grade: float, gain: Gain) -> float:
    """Return the gain of a grade: the grade itself, or 2^grade - 1."""
    return grade if gain == "linear" else 2.0**grade - 1


class Formula(Struct, frozen=True, kw_only=True):
    """A formula: its name in files, its display name, and the function of the retrieved documents and k."""

    name: str
    label: str
    value: Callable[[Found, int], float]


FORMULAS = (
    Formula(name="mrr", label="MRR", value=reciprocal_rank),
    Formula(name="recall", label="Recall", value=recall),
    Formula(name="precision", label="Precision", value=precision),
    Formula(name="hitrate", label="HitRate", value=hit_rate),
    Formula(name="ndcg", label="nDCG", value=ndcg),
    Formula(name="map", label="MAP", value=average_precision),
)
