"""Confidence intervals of a run's mean and bounds of its change, with the quantiles that they need.

Both are for other queries of the same kind as those of the golden set. The quantiles are those of the normal
distribution and of Student's t distribution. All functions are pure.
"""

from collections.abc import Sequence
from math import cbrt, cos, erfc, exp, fsum, inf, isfinite, lgamma, pi, sqrt, tan

from ragcontract.core.metric import Scale
from ragcontract.statistics.sign_flips import Change

STEPS, FARTHEST = 60, 40.0


def exceeded_by(share: float) -> float:
    """Return the value that a standard normal variable exceeds with a probability of ``share``: 1.645 for 0.05."""
    low, high = -FARTHEST, FARTHEST
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if erfc(middle / sqrt(2)) / 2 > share else (low, middle)
    return (low + high) / 2


INTERVALS = 100  # of Simpson's rule
HALVINGS = 45
NEARLY_NORMAL = 1_000  # degrees of freedom from which the expansion's error is below 1e-9


def t_quantile(tail: float, freedom: float) -> float:
    """Return the value that is exceeded with probability ``tail`` (above 0, at most 1/2).

    With t = √ν tan θ, the density becomes proportional to cos^(ν-1) θ, which is integrated by Simpson's rule. From a
    thousand degrees of freedom on, the first terms of the Cornish-Fisher expansion are enough (Abramowitz and Stegun,
    *Handbook of Mathematical Functions*, 26.7.5). Degrees below 1 count as 1. The relative error is below 0.00001 for
    tails from 0.005.
    """
    freedom = max(freedom, 1.0)
    z = exceeded_by(tail)
    if freedom >= NEARLY_NORMAL:
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, pi / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail_from(middle, freedom) > tail else (low, middle)
    return sqrt(freedom) * tan(low) if low < pi / 2 else inf


def _tail_from(theta: float, freedom: float) -> float:
    """Return the probability of a t above √ν tan ``theta``."""
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(pi)
    step = theta / INTERVALS
    heights: list[float] = [cos(step * number) ** (freedom - 1) for number in range(INTERVALS + 1)]
    area = heights[0] + heights[-1] + 4 * sum(heights[1:-1:2]) + 2 * sum(heights[2:-1:2])
    return 0.5 - scale * area * step / 3


Z_95 = exceeded_by(0.025)
Counted = tuple[float, float, int]  # weight and value of a query, and the number of queries like it


def mean_interval(queries: Sequence[Counted], scale: Scale) -> tuple[float, float] | None:
    """Return the interval of the weighted mean, which always contains that mean.

    Agresti and Coull, *Approximate Is Better than "Exact" for Interval Estimation of Binomial Proportions*, The
    American Statistician 52 (1998), generalized from binary results to any value on a scale and to weights. One query
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


LITTLE = 1e-6
FULLY_SKEWED = 1.0  # the skewness of a sum that consists of a single term


def change_bounds(change: Change, lower: float, upper: float) -> tuple[float, float]:
    """Return the bounds of a change for the worse (negative: for the better), within the size of the scale.

    ``lower`` and ``upper`` are quantiles of the normal distribution. With 1.645, each bound is wrong in 5 % of samples.
    The true change is at least the first and at most the second.

    As in the interval of Bonett and Price, *Adjusted Wald Confidence Interval for a Difference of Binomial Proportions
    Based on Paired Data*, Journal of Educational and Behavioral Statistics 37 (2012), two queries are added, one that
    got better and one that got worse, with the root mean square of the weights and of the observed changes, or the
    whole scale if no value of the metric changed. Losses are mostly larger than gains or the other way round, so the
    bounds are corrected for skewness by the cubic of Hall, *On the Removal of Skewness by Transformation*, Journal of
    the Royal Statistical Society B 54 (1992). If few queries carry most of the weight, the squares of the weighted
    changes vary too much to be summed. The spread is therefore at least the one that independent weights would have.

    `python -m benchmarks.coverage` measures how often each bound holds. Both are 0 if no query's values changed.
    """
    if change.identical or not change.weights.count:
        return 0.0, 0.0
    mean, error, skewness = _moments(change)
    low = min(change.amount, mean - error * _quantile(lower, skewness))
    high = max(change.amount, mean - error * _quantile(-upper, skewness))
    return max(-change.span, low), min(change.span, high)


def _moments(change: Change) -> tuple[float, float, float]:
    """Return the mean change and its standard error, with the two added queries, and the skewness without them."""
    weights, changed = change.weights, [(weight, change.sign * moved) for weight, moved in change.changed.values()]
    third = _central(changed, weights.total, weights.cubes, change.amount, 3)
    size = change.span if isfinite(change.span) else 0.0
    if changed:
        size = sqrt(fsum(w * d * d for w, d in changed) / fsum(w for w, _ in changed))
    typical = sqrt(weights.squares / weights.count)
    changed += [(typical, size), (typical, -size)]
    total, squares = weights.total + 2 * typical, weights.squares + 2 * typical**2
    mean = fsum(w * d for w, d in changed) / total
    second = _central(changed, total, squares, mean, 2)
    use = second[1] > second[0]
    error = sqrt(second[use])
    skewness = third[use] / error**3 if error else 0.0
    return mean, error / total, max(-FULLY_SKEWED, min(FULLY_SKEWED, skewness))


def _central(
    changed: Sequence[tuple[float, float]], total: float, powers: float, mean: float, power: int
) -> tuple[float, float]:
    """Return a central moment of the sum of weighted changes, as observed and as if they did not depend on weights.

    ``total`` and ``powers`` are the sums of the weights and of their powers, of unchanged queries too.
    """
    observed = fsum((w * (d - mean)) ** power for w, d in changed)
    still = max(powers - fsum(w**power for w, _ in changed), 0.0)
    by_weight = fsum(w * (d - mean) ** power for w, d in changed)
    still_by_weight = max(total - fsum(w for w, _ in changed), 0.0)
    least = (-mean) ** power
    return observed + still * least, powers / total * (by_weight + still_by_weight * least)


def _quantile(normal: float, skewness: float) -> float:
    """Return the quantile of a studentized mean, at which Hall's cubic, which removes its skewness, is ``normal``."""
    shifted = normal - skewness / 6
    third = skewness / 3
    return shifted if abs(third) < LITTLE else (cbrt(1 + 3 * third * shifted) - 1) / third
