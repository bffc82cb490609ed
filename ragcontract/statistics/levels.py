"""The level of a series of runs, and how much the mean of a run varies without a change.

A series is the values of a metric in consecutive runs, the oldest first, in the metric's own unit. All functions are
pure. They raise ValueError if a value is not a number that a score can have (:func:`checked`).

The level is the best mean of five consecutive runs, not the best run. The best of thirty runs is a lucky one, so a
limit below it would fail good runs. ``benchmarks/history.py`` shows how often each of them would.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from itertools import pairwise
from math import fsum, sqrt
from operator import mul

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Direction
from ragcontract.core.numbers import SAME

LEVEL_RUNS = 5  # consecutive ones
LEAST_SIGMAS = 3  # of a limit; below, a level is wrong more often than a comparison with the last run


class Level(Struct, frozen=True, kw_only=True):
    """The best mean of consecutive runs of a series."""

    value: float
    start: int  # the position of the first of its runs
    runs: int  # how many they are

    @property
    def stop(self) -> int:
        """The position after the last of its runs."""
        return self.start + self.runs


def checked(values: Sequence[float]) -> list[float]:
    """Return the values of a series as a list.

    Raises ValueError for a value that is not a number, or is beyond what the scale of a score may end at, so that
    squares and sums of them are finite.
    """
    for position, value in enumerate(values):
        if not abs(value) <= bounds.SCORE:  # also of NaN
            raise ValueError(f"run {position} of the series has the value {value}")
    return list(values)


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value, between the smallest and the largest.

    The mean of equal values is exactly their value, so a retriever without noise is never below its own level.
    """
    return min(max(fsum(values) / len(values), min(values)), max(values))


def level(values: Sequence[float], better: Direction = "higher", runs: int = LEVEL_RUNS) -> Level | None:
    """Return the best mean of ``runs`` consecutive values; None if there are fewer values.

    Of equally good ones, it is the last, because its runs are those that readers remember. Means are equally good if
    they differ by rounding only.
    """
    series = checked(values)
    if runs < 1:
        raise ValueError(f"a level of {runs} runs")
    sign = 1 if better == "higher" else -1
    means = [sign * mean(series[start : start + runs]) for start in range(len(series) - runs + 1)]
    if not means:
        return None
    best = max(means)
    start = max(start for start, value in enumerate(means) if value >= best - SAME)
    return Level(value=sign * means[start], start=start, runs=runs)


def since_when(
    days: Sequence[date],
    values: Sequence[float],
    now: float,
    allowed: Callable[[float], float],
    better: Direction = "higher",
) -> date:
    """Return the day from which on runs must count so that the loss since the level is ``allowed``.

    It is the day of the first of the last runs that are all too low, or else the earliest day that is enough, which may
    be the day after the last run. Each value is that of a run, with its day, the oldest first; there is at least one.
    The level is also that of further runs with the value ``now``, so that the limit does not fail as soon as there are
    enough runs for a level.
    """
    best, low = level([*values, now], better), len(values)
    while best and low and abs(best.value - values[low - 1]) > allowed(best.value) + SAME:
        low -= 1
    for day in [*days[low : low + 1], *sorted({*days})]:
        counted = [value for at, value in zip(days, values, strict=True) if at >= day]
        best = level([*counted, *[now] * LEVEL_RUNS], better)
        if best and abs(best.value - now) <= allowed(best.value) + SAME:
            return day
    return min(max(days), date.max - timedelta(days=1)) + timedelta(days=1)


def sigma(values: Sequence[float], splits: Sequence[int] = ()) -> float | None:
    """Return the standard deviation of a run's mean; None if there are too few values to estimate it.

    It is the pooled one of the parts between the change points, whose positions are ``splits``, so that a change of the
    retriever does not count as noise. It is estimated from at least ``LEVEL_RUNS`` - 1 degrees of freedom, of which
    each part takes one; its relative standard error is about 1/sqrt(2·degrees), that is a third with five runs and an
    eighth with thirty. Equal values have a deviation of exactly 0. Raises ValueError if ``splits`` are not increasing
    positions inside the series.
    """
    around = residuals(checked(values), splits)
    degrees = len(around) - len(splits) - 1
    return sqrt(fsum(map(mul, around, around)) / degrees) if degrees >= LEVEL_RUNS - 1 else None


def residuals(series: Sequence[float], splits: Sequence[int]) -> list[float]:
    """Return how much each value differs from the mean of its part of the series.

    Raises ValueError if ``splits`` are not increasing positions inside the series.
    """
    parts = list(pairwise([0, *splits, len(series)]))
    if splits and any(stop <= start for start, stop in parts):
        raise ValueError(f"a series of {len(series)} runs cannot be split at {list(splits)}")
    means = [mean(series[start:stop]) if stop else 0.0 for start, stop in parts]
    return [value - center for (start, stop), center in zip(parts, means, strict=True) for value in series[start:stop]]
