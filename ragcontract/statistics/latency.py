"""Latency summaries with percentiles by nearest rank. Pure functions."""

from array import array
from collections.abc import Sequence

from ragcontract.core.run import Latency


def nearest_rank(ascending: Sequence[float], percent: int) -> float:
    """Return the smallest value that is at least as large as ``percent`` (1 to 100) percent of all values.

    It is the value at rank ceil(percent / 100 * n), which is always a measured one: definition 1 of Hyndman and Fan,
    *Sample Quantiles in Statistical Packages*, The American Statistician 50 (1996); ``inverted_cdf`` in numpy.
    """
    return ascending[rank_of(len(ascending), percent) - 1]


def rank_of(count: int, percent: int) -> int:
    """Return the 1-based rank of a percentile among ``count`` values."""
    return -(-count * percent // 100)  # integer arithmetic: in floating point, 0.07 * 100 is slightly more than 7


def summary(milliseconds: "array[float]") -> Latency | None:
    """Summarize latencies; None if there are none."""
    if not milliseconds:
        return None
    ascending = array("d", sorted(milliseconds))
    return Latency(
        rows=len(ascending),
        p50_ms=nearest_rank(ascending, 50),
        p95_ms=nearest_rank(ascending, 95),
        max_ms=ascending[-1],
    )
