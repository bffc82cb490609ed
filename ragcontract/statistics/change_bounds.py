"""One-sided confidence bounds of the change of a mean, for other queries of the same kind. Pure functions."""

from collections.abc import Sequence
from math import cbrt, fsum, isfinite, sqrt

from ragcontract.statistics.change import Change

LITTLE = 1e-6
MOST_SKEWED = 1.0  # the skewness of a sum that consists of a single term


def change_bounds(change: Change, lower: float, upper: float) -> tuple[float, float]:
    """Return the bounds of a change for the worse (negative: for the better), within the size of the scale.

    ``lower`` and ``upper`` are quantiles of the normal distribution: 1.645 for bounds each of which is wrong in 5 % of
    samples. The true change is at least the first and at most the second.

    As in the interval of Bonett and Price, *Adjusted Wald Confidence Interval for a Difference of Binomial Proportions
    Based on Paired Data*, Journal of Educational and Behavioral Statistics 37 (2012), two queries are added, one that
    got better and one that got worse, with the root mean square of the weights and of the observed changes, or the
    whole scale if no value of the metric changed. Losses are mostly larger than gains or the other way round, so the
    bounds are corrected for skewness by the cubic of Hall, *On the Removal of Skewness by Transformation*, Journal of
    the Royal Statistical Society B 54 (1992). If few queries carry most of the weight, the squares of the weighted
    changes vary too much to be summed; therefore the spread is at least what it is if changes do not depend on weights.

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
    return mean, error / total, max(-MOST_SKEWED, min(MOST_SKEWED, skewness))


def _central(
    changed: Sequence[tuple[float, float]], total: float, powers: float, mean: float, power: int
) -> tuple[float, float]:
    """Return a central moment of the sum of weighted changes: as observed, and as if they did not depend on weights.

    ``total`` and ``powers`` are the sums of the weights and of their powers, of unchanged queries too.
    """
    observed = fsum((w * (d - mean)) ** power for w, d in changed)
    still = max(powers - fsum(w**power for w, _ in changed), 0.0)
    by_weight = fsum(w * (d - mean) ** power for w, d in changed)
    still_by_weight = max(total - fsum(w for w, _ in changed), 0.0)
    least = (-mean) ** power
    return observed + still * least, powers / total * (by_weight + still_by_weight * least)


def _quantile(normal: float, skewness: float) -> float:
    """Return the quantile of a studentized mean: where Hall's cubic, which removes its skewness, is ``normal``."""
    shifted = normal - skewness / 6
    third = skewness / 3
    return shifted if abs(third) < LITTLE else (cbrt(1 + 3 * third * shifted) - 1) / third
