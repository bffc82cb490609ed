"""The significance and the bounds of the change of a mean, the interval of a mean, and how many queries limits need.

Significance and bounds fit each other. The p-value of one limit is that of the sign-flip test (``sign_flips``), the
p-values of several limits are those of the max-T test (``max_t``). Intervals and bounds are for other queries of the
same kind as those of the golden set; their quantiles are those of the normal distribution and of Student's t
distribution. All functions are pure and deterministic, and independent of the order of the queries.
"""

from collections.abc import Sequence
from math import cbrt, ceil, cos, erfc, exp, fsum, inf, isfinite, lgamma, pi, sqrt, tan
from typing import Literal

from msgspec import Struct

from ragcontract.core.metric import Scale
from ragcontract.core.numbers import SAME
from ragcontract.statistics.max_t import adjust
from ragcontract.statistics.sign_flips import Change, SignFlips, Weights, smallest_p_value

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


ALPHA = 0.05


class Noise(Struct, frozen=True, kw_only=True):
    """The uncertainty of a metric's change, from a paired comparison over the shared queries.

    ``bounds`` are the one-sided 95 % confidence bounds of the change, now minus before (or as sure as ``alpha`` in the
    configuration demands): it is at least the first and at most the second. ``p_value`` is that of a one-sided
    sign-flip test for a change for the worse; of a metric with a limit on its change, it is adjusted over all such
    limits. ``wins`` and ``losses`` count the queries that got better and worse.
    """

    bounds: tuple[float, float]
    p_value: float
    wins: int
    ties: int
    losses: int


class ChangeTest(Struct, frozen=True, kw_only=True):
    """The test and the bounds of a change for the worse."""

    bounds: tuple[float, float]  # positive for the worse
    p_value: float | None  # None if no query changed
    could_be: bool  # whether it would be significant if all changed queries had got worse
    queries: int  # the number that both runs have
    span: float  # the size of the scale


def assess(changes: Sequence[Change], alpha: float = ALPHA, *, together: bool = True) -> list[ChangeTest]:
    """Test changes of the same runs ``together``, or each as if it were the only one; return the results in order.

    Together, lower bounds and p-values are adjusted to the number of changes. Where bound and test disagree about 0,
    the test decides. Upper bounds are not adjusted. A run is only no worse if all changes are within their limits, so
    each may be tested at ``alpha``. This is the intersection-union test of Berger, *Multiparameter Hypothesis Testing
    and Acceptance Sampling*, Technometrics 24 (1982).
    """
    usual = exceeded_by(alpha)
    adjusted = adjust([SignFlips.of(change) for change in changes if change.changed], alpha)
    lower = max(usual, adjusted.critical or usual) if together else usual
    results = iter(adjusted.tests)
    tests = []
    for change in changes:
        result = next(results) if change.changed else None
        p_value = None if result is None else result.p_value if together else result.own
        could_be = result is not None and result.smallest <= alpha
        tests.append(
            ChangeTest(
                bounds=_bounds(change, (lower, usual), significant=p_value is not None and p_value <= alpha),
                p_value=p_value,
                could_be=could_be,
                queries=change.weights.count,
                span=change.span,
            )
        )
    return tests


def _bounds(change: Change, quantiles: tuple[float, float], *, significant: bool) -> tuple[float, float]:
    low, high = change_bounds(change, *quantiles)
    return (max(low, 0.0), max(high, 0.0)) if significant else (min(low, 0.0), high)


def noise(change: Change, result: ChangeTest) -> Noise | None:
    """Return the uncertainty of a change for reports; None if no query changed."""
    if result.p_value is None:
        return None
    low, high = result.bounds
    return Noise(
        bounds=(low, high) if change.better == "lower" else (0.0 - high, 0.0 - low),
        p_value=result.p_value,
        wins=change.wins,
        ties=change.ties,
        losses=change.losses,
    )


def fewest_changed(alpha: float, tests: int = 1, *, mid_p: bool = False) -> int:
    """Return the number of queries that must change for a drop to be significant in one of so many ``tests``."""
    changed = 1
    while smallest_p_value(changed, mid_p=mid_p) > alpha / tests:
        changed += 1
    return changed


ENOUGH = 1_000_000_000


def queries_needed(
    limit: float,
    mode: Literal["significant", "noninferiority"],
    *,
    alpha: float = ALPHA,
    span: float = 1.0,
    tests: int = 1,
) -> int | None:
    """Return the smallest number of queries with which a limit can do its work; None if no number is enough.

    ``limit`` is in points of a metric, whose scale has the size ``span``. With ``significant``, so many queries prove a
    drop of the limit's size if each that changes loses the whole scale, in one of ``tests`` on different queries. The
    limits on changes of all queries count as one test, and those of each tag as one. With ``noninferiority``, the bound
    is within the limit if a single query got better and one got worse, each by the whole scale.
    """
    if limit <= 0 or not isfinite(span):
        return None
    if mode == "significant":
        return ceil(fewest_changed(alpha, tests, mid_p=True) * span / limit - SAME)
    normal, low, high = exceeded_by(alpha), 2, ENOUGH
    while low < high:
        middle = (low + high) // 2
        weights = Weights.of([(1.0, middle)])
        changed = {0: (1.0, span), 1: (1.0, -span)}
        _, bound = change_bounds(Change(changed=changed, weights=weights, scale=Scale(0.0, span)), normal, normal)
        low, high = (middle + 1, high) if bound > limit + SAME else (low, middle)
    return low
