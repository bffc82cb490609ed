"""The metrics of one query, cut at rank k. All values are from 0 to 1.

Definitions as in Manning, Raghavan and Schütze, *Introduction to Information Retrieval* (2008), chapter 8, and
trec_eval (``recip_rank``, ``recall.k``, ``P.k``, ``success.k``, ``map_cut.k``, ``ndcg_cut.k``) on the list cut at k.
Where a list is shorter than k, precision still divides by k, as trec_eval does. nDCG is that of Järvelin and Kekäläinen
(2002) with the discount log2(rank + 1); exponential gain is that of Burges et al. (2005).
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import log2

from msgspec import Struct

from ragcontract.core.metric import Gain


class Found(Struct, frozen=True, gc=False):
    """What was found of a query's relevant documents.

    ``hits`` are the ascending 1-based ranks at which they were found, each document once, and ``relevant`` is how many
    there are (at least 1). With grades, ``gains`` has the ``(rank, gain)`` of every graded document that was found and
    ``ideal`` all gains, largest first; without, every relevant document has the gain 1.
    """

    hits: Sequence[int]
    relevant: int
    gains: Sequence[tuple[int, float]] | None = None
    ideal: Sequence[float] = ()


def reciprocal_rank(found: Found, k: int) -> float:
    """One over the rank of the first relevant document, 0 if none is in the top k."""
    hits = found.hits
    return 1 / hits[0] if hits and hits[0] <= k else 0.0


def recall(found: Found, k: int) -> float:
    """Return the part of the relevant documents that is in the top k."""
    return bisect_right(found.hits, k) / found.relevant


def precision(found: Found, k: int) -> float:
    """Return the part of the top k that is relevant; short lists are divided by k too."""
    return bisect_right(found.hits, k) / k


def hit_rate(found: Found, k: int) -> float:
    """1 if any relevant document is in the top k, else 0."""
    return float(bool(found.hits) and found.hits[0] <= k)


def ndcg(found: Found, k: int) -> float:
    """Return the discounted gain of the top k, as part of the best that the golden grades allow."""
    if found.gains is None:
        best = _discounts(min(k, found.relevant))
        return sum([1 / log2(rank + 1) for rank in found.hits if rank <= k]) / best
    best = sum(gain / log2(rank + 1) for rank, gain in enumerate(found.ideal[:k], 1))
    return min(1.0, sum(gain / log2(rank + 1) for rank, gain in found.gains if rank <= k) / best)


def average_precision(found: Found, k: int) -> float:
    """Average the precision at the rank of each relevant document, those that are not in the top k counting 0."""
    return sum([number / rank for number, rank in enumerate(found.hits, 1) if rank <= k]) / found.relevant


@lru_cache(maxsize=1024)
def _discounts(ranks: int) -> float:
    return sum([1 / log2(rank + 1) for rank in range(1, ranks + 1)])


LARGEST_EXPONENT = 64.0  # of the grades that gain takes to the power; beyond it one grade would outweigh all others


def gain_of(grade: float, gain: Gain) -> float:
    """Return what a document of a grade is worth: the grade itself, or 2^grade - 1."""
    return grade if gain == "linear" else 2.0**grade - 1


class Formula(Struct, frozen=True, kw_only=True):
    """A formula: its name in files, its name for people, and how it is computed from what was found and a cut-off."""

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
