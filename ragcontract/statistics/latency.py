"""How long retrieving took: percentiles by nearest rank. Pure."""

from array import array
from collections.abc import Sequence

from ragcontract.core.run import Latency


def nearest_rank(ascending: Sequence[float], percent: int) -> float:
    """Return the smallest value that at least ``percent`` (1 to 100) in a hundred values are no larger than.

    It is the value at rank ceil(percent / 100 * n), always one that was measured: definition 1 of Hyndman and Fan,
    *Sample Quantiles in Statistical Packages*, The American Statistician 50 (1996); ``inverted_cdf`` in numpy.
    """
    return ascending[rank_of(len(ascending), percent) - 1]


def rank_of(count: int, percent: int) -> int:
    """Return the 1-based rank of that value among ``count`` ones."""
    return -(-count * percent // 100)  # in whole numbers: 0.95 * 20 is a hair more than 19


def summary(milliseconds: "array[float]") -> Latency | None:
    """Sum up what was measured; None where nothing was."""
    if not milliseconds:
        return None
    ascending = array("d", sorted(milliseconds))
    return Latency(
        rows=len(ascending),
        p50_ms=nearest_rank(ascending, 50),
        p95_ms=nearest_rank(ascending, 95),
        max_ms=ascending[-1],
    )
