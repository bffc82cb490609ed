"""The 95 % confidence interval of one run's mean, over queries of the same kind as those of the golden set."""

from collections.abc import Sequence
from math import fsum, isfinite, sqrt

from ragcontract.core.metric import Scale
from ragcontract.statistics.normal import exceeded_by

Z_95 = exceeded_by(0.025)
Counted = tuple[float, float, int]  # weight and value of a query, and the number of queries like it


def mean_interval(queries: Sequence[Counted], scale: Scale) -> tuple[float, float] | None:
    """Return the interval of the weighted mean, which always contains that mean.

    Agresti and Coull, *Approximate Is Better than "Exact" for Interval Estimation of Binomial Proportions*, The
    American Statistician 52 (1998), generalized from binary results to any value on a scale and to weights: one query
    with the lowest value and one with the highest are added, with the root mean square of the weights. Without them, a
    run with only perfect scores would appear to have no noise. None without queries, and for a scale without ends.
    """
    number = sum(count for _, _, count in queries)
    if not number or not isfinite(scale.high - scale.low):
        return None
    typical = sqrt(fsum(weight * weight * count for weight, _, count in queries) / number)
    all_queries = [*queries, (typical, scale.low, 1), (typical, scale.high, 1)]
    total = fsum(weight * count for weight, _, count in all_queries)
    mean = fsum(weight * value * count for weight, value, count in all_queries) / total
    error = sqrt(fsum((weight * (value - mean)) ** 2 * count for weight, value, count in all_queries)) / total
    return max(scale.low, mean - Z_95 * error), min(scale.high, mean + Z_95 * error)
