"""Sensitivity of a golden set: how much a metric varies by chance, and which drop can be detected.

The quantiles of the normal distribution are those for a one-sided test at 0.05 with a power of 0.8. Pure functions.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from math import ceil, floor, fsum, log10, sqrt
from operator import mul

from msgspec import Struct

from ragcontract.core.metric import Metric, Scale
from ragcontract.statistics.significance import ALPHA, fewest_changed

# Quantiles of the normal distribution: what chance exceeds once in twenty times, and falls short of 4 times in 5.
Z_ALPHA, Z_POWER = 1.6448536269514722, 0.8416212335729143
DIGITS = 2
LARGE = 1000
LENIENCE = 0.6


class Detectable(Struct, frozen=True, kw_only=True):
    """What a golden set can detect for one metric, in the metric's own unit.

    ``queries`` is the number of queries that have the metric, and ``mean`` the mean over all runs. ``other_queries`` is
    the mean that another sample of queries of the same kind would fall below once in twenty times. A change for the
    worse of up to ``noise`` may be chance; a change of ``found`` exceeds the noise in four of five cases, if such a
    change is possible at all (``can_be_found``).

    ``bound`` is a minimum (or maximum) that known-good runs meet. ``change_limit`` is the limit on a change for ``mode:
    significant``, three fifths of the noise. If at least five queries changed, the test decides whether a change above
    the limit is chance. With fewer, any change above it counts: the noise is at least the loss of five queries, so it
    takes four worse queries, with none better, to exceed three fifths of it.
    """

    queries: int
    mean: float
    other_queries: float
    noise: float
    found: float
    can_be_found: bool
    bound: float
    change_limit: float


def detectable(runs: Sequence[Sequence[float]], weights: Sequence[float], metric: Metric | None = None) -> Detectable:
    """Estimate what a golden set can detect, from a metric's value for each of its queries in known-good ``runs``.

    A real change for the worse is modelled as some queries getting worse, in addition to the variation between
    known-good runs (none if there is only one run). A change counts as noise if it is smaller than the loss of five
    queries, the fewest that can be significant; or smaller than ``Z_ALPHA`` standard errors; or no larger than the
    range of the known-good runs. Without a ``metric``, values are from 0 to 1 and higher is better. Raises ValueError
    if there are no queries.
    """
    if not weights:
        raise ValueError("nothing to average")
    scale = metric.scale if metric else Scale()
    start, span = scale.low, scale.high - scale.low
    if metric and metric.better == "lower":
        start, span = scale.high, -span
    share = _of_shares([[(value - start) / span for value in run] for run in runs], weights)
    size = abs(span)
    digits = DIGITS + (len(weights) >= LARGE)
    towards_worse = floor if span > 0 else ceil
    bound = start + span * share.least
    return Detectable(
        queries=len(weights),
        mean=start + span * share.mean,
        other_queries=start + span * max(0.0, share.mean - share.resampled),
        noise=size * share.noise,
        found=size * min(1.0, share.found),
        can_be_found=share.found < share.mean,
        bound=towards_worse(bound * 10**digits + (1e-9 if span > 0 else -1e-9)) / 10**digits,
        change_limit=size * min(1.0, round_up(max(LENIENCE * share.noise, share.apart))),
    )


class _Shares(Struct, frozen=True, kw_only=True):
    """The estimates as fractions of the scale, with 0 as the worst; ``apart`` is the range of the means of all runs."""

    mean: float
    resampled: float
    noise: float
    found: float
    least: float
    apart: float


def _of_shares(runs: Sequence[Sequence[float]], weights: Sequence[float]) -> _Shares:
    largest = max(weights)
    shares = [weight / largest for weight in weights]
    total = fsum(shares)
    means: list[float] = [fsum(map(mul, shares, run)) / total for run in runs]
    mean = fsum(means) / len(means)
    typical = [fsum(values) / len(values) for values in zip(*runs, strict=True)]

    loss = _loss(chain(*runs), shares)
    variance = _variance_between(runs, typical, shares)
    by_test = _beyond(0.0, Z_ALPHA, variance, loss)
    apart = max(means) - min(means)
    noise = min(1.0, max(fewest_changed(ALPHA) * loss, by_test, apart))
    resampled = Z_ALPHA * _standard_error(typical, shares)
    return _Shares(
        mean=mean,
        resampled=resampled,
        noise=noise,
        found=_beyond(noise, Z_POWER, variance, loss),
        least=max(0.0, min(mean - resampled, *means)),
        apart=apart,
    )


def round_up(value: float) -> float:
    """Round up to two significant digits, with at most four decimals: 0.0712 becomes 0.072."""
    if value <= 0:
        return 0.0
    digits = min(4, DIGITS - 1 - floor(log10(value)))
    return round(ceil(value * 10.0**digits - 1e-9) / 10.0**digits, digits)


def _loss(values: Iterable[float], weights: Sequence[float]) -> float:
    """Return the expected loss of the mean when one query gets worse, with larger losses weighted more.

    A query is assumed to fall to the value of another query, or to 0: the result is the sum of d squared over the sum
    of d, for the differences d of all pairs. The variance of a sum of such independent losses is this value times the
    sum.
    """
    ranked = [0.0, *sorted(values)]
    number, total = len(ranked), fsum(ranked)
    squares = number * fsum(value * value for value in ranked) - total * total
    apart = fsum(value * (2 * index + 1 - number) for index, value in enumerate(ranked))
    share = fsum(weight * weight for weight in weights) / fsum(weights) ** 2
    return squares / apart * share if apart > 0 else 0.0


def _variance_between(runs: Sequence[Sequence[float]], typical: Sequence[float], weights: Sequence[float]) -> float:
    """Return the variance of the difference of the means of two runs, from the variance of each query between runs."""
    if len(runs) < 2:  # noqa: PLR2004
        return 0.0
    squares = (
        (weight * (value - middle)) ** 2
        for run in runs
        for value, middle, weight in zip(run, typical, weights, strict=True)
    )
    return 2 * fsum(squares) / (len(runs) - 1) / fsum(weights) ** 2


def _beyond(start: float, z: float, variance: float, loss: float) -> float:
    """Return the drop that exceeds ``start`` by ``z`` of its own standard errors.

    It is the larger root d of (d - start)² = z² (variance + d loss).
    """
    half = start + z * z * loss / 2
    return half + sqrt(half * half - start * start + z * z * variance)


def _standard_error(values: Sequence[float], weights: Sequence[float]) -> float:
    """Return the standard error of the weighted mean over queries, after adding one query with 0 and one with 1.

    Without these two (after Agresti and Coull, 1998), a golden set with only perfect scores would appear to have no
    noise.
    """
    added = sqrt(fsum(weight * weight for weight in weights) / len(weights))
    weights, values = [*weights, added, added], [*values, 0.0, 1.0]
    total = fsum(weights)
    mean = fsum(weight * value for weight, value in zip(weights, values, strict=True)) / total
    return sqrt(fsum((weight * (value - mean)) ** 2 for weight, value in zip(weights, values, strict=True))) / total
