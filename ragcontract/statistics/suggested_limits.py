"""Limits that known-good runs suggest, and what they promise; `python -m benchmarks.promises` measures that.

- A limit on a change: if several good runs are the baseline, equally good runs break the limits at most once in twenty
  times, all limits together.
- A minimum (or maximum): 19 times in 20, a run with as many other questions of the same kind meets it.
"""

from collections.abc import Sequence
from math import ceil, floor, fsum, log10, sqrt
from operator import mul

from msgspec import Struct

from ragcontract.core.metric import Metric, Scale
from ragcontract.core.numbers import SAME
from ragcontract.statistics.significance import ALPHA, exceeded_by, fewest_changed, t_quantile

Z_ALPHA, Z_POWER = exceeded_by(ALPHA), exceeded_by(0.2)  # a break by chance, and a real change that breaks no limit
DIGITS = 2
LARGE = 1000  # queries; with so many or more, minimums have three decimals
ROUNDING = 1e-9


class Suggested(Struct, frozen=True, kw_only=True):
    """The limits that known-good runs suggest for one metric, in its own unit.

    With several runs, the limit on changes is for ``mode: strict``. With one run, it is for ``mode: significant``, and
    it is the change of as many queries as it takes to show that a change is real.
    """

    queries: int  # the number that have the metric
    runs: int
    mean: float  # over all runs
    bound: float  # the minimum (or maximum), met by runs with other questions 19 times in 20, rounded to the worse
    deviation: float | None  # the standard deviation of the mean from run to run; None with one run
    limit: float | None  # on a change for the worse, rounded up; None if there are too few queries or runs for one
    detectable: float | None  # a real change that breaks the limit 4 times in 5; None with one run


def suggested(
    runs: Sequence[Sequence[float]], weights: Sequence[float], metric: Metric | None = None, *, limits: int = 1
) -> Suggested:
    """Suggest limits from a metric's value for each of its queries in known-good ``runs``.

    ``limits`` is the number of metrics that get a limit on their change. Each may be broken by an equally good run in
    one of 20 × ``limits`` cases, which holds however the metrics depend on each other (Bonferroni). Without a
    ``metric``, values are from 0 to 1 and higher is better. Raises ValueError if there are no queries.
    """
    if not weights:
        raise ValueError("nothing to average")
    scale = metric.scale if metric else Scale()
    sign = -1.0 if metric and metric.better == "lower" else 1.0
    worst, span = scale.low if sign > 0 else scale.high, scale.high - scale.low
    qualities = [[sign * (value - worst) / span for value in run] for run in runs]  # from 0, the worst, to 1
    largest = max(weights)
    total = fsum(weight / largest for weight in weights)
    of = _of_qualities(qualities, [weight / largest / total for weight in weights], limits)
    change = round_up(span * of.change)
    beyond = 0.0 if of.noise is None else max(Z_POWER * of.noise, of.step)
    # The largest possible change keeps to a limit that is as large, and no change exceeds the whole scale.
    possible = 0 < change < span * of.most - SAME and not (of.noise and of.change + beyond > 1 + SAME)
    digits = DIGITS + (len(weights) >= LARGE)
    return Suggested(
        queries=len(weights),
        runs=len(runs),
        mean=worst + sign * span * of.mean,
        bound=sign * floor((sign * worst + span * of.least) * 10**digits + ROUNDING) / 10**digits,
        deviation=None if of.deviation is None else span * of.deviation,
        limit=change if possible else None,
        detectable=None if of.noise is None or not possible else change + span * beyond,
    )


class _OfQualities(Struct, frozen=True, kw_only=True):
    """The same as fractions of the scale, with 0 as the worst."""

    mean: float
    least: float
    change: float
    most: float  # the largest possible change
    step: float  # the loss of the query with the largest weight
    deviation: float | None = None
    noise: float | None = None  # the standard deviation of the change from the mean of the runs to another run


def _of_qualities(runs: Sequence[Sequence[float]], shares: Sequence[float], limits: int) -> _OfQualities:
    """Estimate the limits from values from 0 to 1 and weights that add up to 1."""
    means = [fsum(map(mul, shares, run)) for run in runs]
    mean = fsum(means) / len(means)
    typical = [fsum(values) / len(values) for values in zip(*runs, strict=True)]
    step = max(shares)
    if len(runs) == 1:
        least = mean - _other_questions(typical, shares)
        return _OfQualities(
            mean=mean, least=max(0.0, least), change=fewest_changed(ALPHA) / len(shares), most=mean, step=step
        )
    variance, freedom = _between(runs, typical, shares)
    noise = sqrt(variance * (1 + 1 / len(runs)))
    change = max(step, t_quantile(ALPHA / limits, freedom) * noise)
    margin = sqrt(_other_questions(typical, shares) ** 2 + Z_ALPHA**2 * variance * (1 - 1 / len(runs)))
    least = min(mean - max(margin, change), *means)
    return _OfQualities(
        mean=mean, least=max(0.0, least), change=change, most=mean, step=step, deviation=sqrt(variance), noise=noise
    )


def _between(runs: Sequence[Sequence[float]], typical: Sequence[float], shares: Sequence[float]) -> tuple[float, float]:
    """Return the variance of a run's mean between runs of the same questions, and its degrees of freedom.

    It is the sum of the queries' variances, which are independent given the questions. Its degrees of freedom are those
    of Satterthwaite, *An Approximate Distribution of Estimates of Variance Components*, Biometrics Bulletin 2 (1946):
    one less than there are runs for each query, fewer if few queries make up most of the variance.
    """
    more = len(runs) - 1
    parts = [
        share * share * fsum((value - middle) ** 2 for value in values) / more
        for share, middle, values in zip(shares, typical, zip(*runs, strict=True), strict=True)
    ]
    variance, squares = fsum(parts), fsum(part * part for part in parts)
    return variance, more * variance * variance / squares if squares else float(more)


def _other_questions(values: Sequence[float], shares: Sequence[float]) -> float:
    """Return how far the mean over as many other questions falls below this one at most once in twenty times.

    Both means vary with their questions, so their difference has twice the variance of one. Two queries are added, one
    with 0 and one with 1 (after Agresti and Coull, 1998). Otherwise, a golden set with only perfect scores would appear
    not to vary. If weights differ, there are fewer degrees of freedom than queries.
    """
    squares = fsum(share * share for share in shares)
    added = sqrt(squares / len(shares))
    weights = [*shares, added, added]
    total = fsum(weights)
    mean = (fsum(map(mul, shares, values)) + added) / total
    error = sqrt(fsum((w * (value - mean)) ** 2 for w, value in zip(weights, [*values, 0.0, 1.0], strict=True))) / total
    return t_quantile(ALPHA, 1 / squares - 1) * sqrt(2) * error


def round_up(value: float) -> float:
    """Round up to two significant digits, with at most four decimals: 0.0712 becomes 0.072."""
    if value <= 0:
        return 0.0
    digits = min(4, DIGITS - 1 - floor(log10(value)))
    return round(ceil(value * 10.0**digits - ROUNDING) / 10.0**digits, digits)
