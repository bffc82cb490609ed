"""The runs of a series since which its values are different: binary segmentation with a permutation test.

A series is the values of a metric in consecutive runs, the oldest first. It is split where its sum of squared errors
falls most (A. J. Scott and M. Knott, "A Cluster Analysis Method for Grouping Means in the Analysis of Variance",
Biometrics, 1974), if runs in random order could hardly be split as well; then each side is split in the same way.
Of series whose neighbours resemble each other, blocks of runs are put into random order, so that slow drift is not
taken for a change (H. R. Künsch, "The Jackknife and the Bootstrap for General Stationary Observations", Annals of
Statistics, 1989).

A point is wrong in some of a hundred histories; ``benchmarks/history.py`` shows how often, and what is missed. All
functions are pure: the same values have the same points, because the random orders are seeded for each part. They raise
ValueError if a value is not a number that a score can have (:func:`~ragcontract.statistics.levels.checked`).
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import fsum, sqrt
from operator import mul
from random import Random

from msgspec import Struct

from ragcontract.core.numbers import SAME
from ragcontract.statistics.levels import checked, mean, residuals

ALPHA = 0.001  # the test is repeated after every run
PERMUTATIONS = 1_999
SEED = 19_740_930
LEAST_RUNS, LEAST_RUNS_A_SIDE = 12, 3
BLOCKS = ((0.35, 5), (0.1, 3))  # from which corrected autocorrelation of neighbours on, and the runs of a block
LEAST_BLOCKS = 8  # fewer have too few orders, and a series that is shorter is not tested
NOISE_PARTS = 4  # into which a series is split to see its noise
TIE = 1e-9  # relative; statistics that differ by rounding are equal
# For readers of change points; docs/background/history.md has the measured shares.
HOW_OFTEN_WRONG = (
    "Without a change, 1.2% of histories of 100 runs ever show a change point; with correlated noise, up to 18% do."
)


class Split(Struct, frozen=True, kw_only=True):
    """Where a series is split best."""

    position: int  # of the first run after the split
    statistic: float  # in the unit of the values; its square is what the split takes off the sum of squared errors


class ChangePoint(Struct, frozen=True, kw_only=True):
    """A run since which the values are different."""

    position: int  # of the first run after the change
    before: float  # the mean of the runs since the change point before
    after: float  # the mean of the runs until the next change point
    # The share of random orders that can be split as well, an estimate, at least 1/2,000. None if values do not vary
    # without a change, so that nothing is left to chance.
    p_value: float | None


def best_split(values: Sequence[float]) -> Split | None:
    """Return the split with the largest statistic; None if the series is too short, or if all values are the same.

    The statistic of a split after t of n runs is |S|·sqrt(n/(t(n-t))), where S is the sum of the first t deviations
    from the mean. Each side has at least ``LEAST_RUNS_A_SIDE`` runs. The earliest of equally good splits is taken.
    """
    series = checked(values)
    if len(series) < 2 * LEAST_RUNS_A_SIDE or max(series) - min(series) <= SAME:
        return None
    statistics = list(map(abs, _statistics(_deviations(series), _weights(len(series)))))
    largest = max(statistics)
    first = next(number for number, statistic in enumerate(statistics) if statistic >= largest * (1 - TIE))
    return Split(position=first + LEAST_RUNS_A_SIDE, statistic=statistics[first])


def permutation_p_value(values: Sequence[float], *, alpha: float = ALPHA) -> float | None:
    """Return the p-value of the best split, or None if it is above ``alpha`` or the series cannot be tested.

    It cannot be if all values are the same, or if it has fewer than ``LEAST_BLOCKS`` of the blocks that its
    autocorrelation needs.

    It is the share of random orders whose best split is at least as good, where the observed order counts as one of
    them (B. Phipson and G. K. Smyth, "Permutation P-values Should Never Be Zero", 2010). It stops as soon as the result
    cannot be as low as ``alpha``, so a series without a change costs a few dozen orders. A series of n runs takes about
    0.2 µs·n an order.
    """
    split = best_split(values)
    if split is None:
        return None
    series = list(values)
    block = block_length(autocorrelation(series, noise_splits(series, split.position)))
    if block > 1 and len(series) < block * LEAST_BLOCKS:
        return None
    deviations, weights = _deviations(series), _weights(len(series))
    as_good = split.statistic * (1 - TIE)
    hits = 1
    for order in _orders(deviations, block):
        statistics = list(_statistics(order, weights))
        hits += max(statistics) >= as_good or -min(statistics) >= as_good
        if hits > alpha * (PERMUTATIONS + 1):
            return None
    return hits / (PERMUTATIONS + 1)


def noise_splits(series: Sequence[float], first: int) -> list[int]:
    """Return the positions between which a series is taken for noise: its best split, the ``first``, or up to three.

    Several steps would look like autocorrelation if only one were taken out. So the series is split further, where that
    helps most, into ``NOISE_PARTS`` at most, and never a part with fewer than two times ``LEAST_RUNS``. These splits
    count if they halve the squares that the first leaves: slow drift, which is noise, can hardly be split as well.
    """
    edges = [0, first, len(series)]
    while len(edges) <= NOISE_PARTS:
        longer = [(start, series[start:stop]) for start, stop in pairwise(edges) if stop - start >= 2 * LEAST_RUNS]
        splits = [(split.statistic, start + split.position) for start, part in longer if (split := best_split(part))]
        if not splits:
            break
        edges = sorted([*edges, max(splits)[1]])
    few, many = residuals(series, [first]), residuals(series, edges[1:-1])
    return edges[1:-1] if 2 * fsum(map(mul, many, many)) <= fsum(map(mul, few, few)) else [first]


def autocorrelation(values: Sequence[float], splits: Sequence[int]) -> float:
    """Return the correlation of neighbouring residuals, from -1 to 1, corrected for its bias; 0 if all are 0.

    Residuals are the differences from the mean of their part between the ``splits``, so that changes do not count as
    correlation. The plain estimate from n values around one mean is about (1 + 3r)/n too low (M. G. Kendall, "Note on
    Bias in the Estimation of Autocorrelation", Biometrika, 1954), around the means of several parts that many times.
    """
    around = residuals(values, splits)
    if max(map(abs, around)) <= SAME:
        return 0.0
    plain = fsum(map(mul, around, around[1:])) / fsum(map(mul, around, around))
    return min(plain + (len(splits) + 1) * (1 + 3 * max(plain, 0.0)) / len(around), 1.0)


def block_length(correlation: float) -> int:
    """Return how many consecutive runs stay together in a random order."""
    return next((length for least, length in BLOCKS if correlation >= least), 1)


def change_points(values: Sequence[float], *, alpha: float = ALPHA) -> tuple[ChangePoint, ...]:
    """Return the change points of a series, the oldest first; none if it has fewer than ``LEAST_RUNS`` runs.

    A series without noise changes where its values do (:func:`steps_without_noise`). Otherwise the best split is tested
    (:func:`permutation_p_value`), then that of each side, unless it has fewer runs than ``LEAST_RUNS``. A series of 200
    runs takes a quarter of a second at most, a longer one with changes proportionally longer.
    """
    series = checked(values)
    if len(series) < LEAST_RUNS:
        return ()
    p_values: dict[int, float | None] = dict.fromkeys(steps_without_noise(series))
    if not p_values:
        p_values.update(_significant_splits(series, alpha))
    edges = [0, *sorted(p_values), len(series)]
    means = [mean(series[start:stop]) for start, stop in pairwise(edges)]
    return tuple(
        ChangePoint(position=position, before=before, after=after, p_value=p_values[position])
        for position, (before, after) in zip(edges[1:-1], pairwise(means), strict=True)
    )


def steps_without_noise(values: Sequence[float]) -> tuple[int, ...]:
    """Return where a series changes that consists of equal values on both sides of each change, by position.

    It consists of stretches of at least ``LEAST_RUNS_A_SIDE`` equal values; only the last may be shorter, because it
    may still grow, and is part of the stretch before. Otherwise, or if all values are equal, the result is empty. Such
    changes need no test, which would miss a drop that was repaired, because the mean of the whole moves little.
    """
    series = checked(values)
    starts = [0, *(after for after in range(1, len(series)) if abs(series[after] - series[after - 1]) > SAME)]
    *lengths, last = [stop - start for start, stop in pairwise([*starts, len(series)])]
    if any(length < LEAST_RUNS_A_SIDE for length in lengths):
        return ()
    return tuple(starts[1:] if last >= LEAST_RUNS_A_SIDE else starts[1:-1])


def _significant_splits(series: Sequence[float], alpha: float) -> dict[int, float]:
    """Return the p-values of significant splits, by position."""
    parts, p_values = [(0, len(series))], {}
    while parts:
        start, stop = parts.pop()
        part = series[start:stop]
        split = best_split(part) if len(part) >= LEAST_RUNS else None
        p_value = permutation_p_value(part, alpha=alpha) if split else None
        if split is not None and p_value is not None:
            middle = start + split.position
            p_values[middle] = p_value
            parts += [(start, middle), (middle, stop)]
    return p_values


def _deviations(series: Sequence[float]) -> list[float]:
    center = mean(series)
    return [value - center for value in series]


def _weights(runs: int) -> list[float]:
    """Return sqrt(n/(t(n-t))) for each t at which a series may be split; 0 before, so that sums start at the first."""
    least = LEAST_RUNS_A_SIDE
    return [sqrt(runs / (first * (runs - first))) for first in range(least, runs - least + 1)]


def _statistics(deviations: Sequence[float], weights: Sequence[float]) -> Iterator[float]:
    """Return the statistics of all allowed splits, with the sign of the sum."""
    sums = list(accumulate(deviations))
    return map(mul, sums[LEAST_RUNS_A_SIDE - 1 :], weights)


def _orders(deviations: Sequence[float], block: int) -> Iterator[list[float]]:
    """Yield random orders of blocks. The first block is cut at random, so that blocks start anywhere.

    Random numbers are sorted instead of ``Random.shuffle``, whose results may differ between versions of Python.
    """
    random = Random(SEED).random  # noqa: S311 (not for secrets)
    for _ in range(PERMUTATIONS):
        if block == 1:
            keys = [random() for _ in deviations]
            yield list(map(deviations.__getitem__, sorted(range(len(keys)), key=keys.__getitem__)))
            continue
        cut = int(random() * block)
        starts = range(cut - block if cut else 0, len(deviations), block)
        blocks = [deviations[max(start, 0) : start + block] for start in starts]
        keys = [random() for _ in blocks]
        yield [value for number in sorted(range(len(keys)), key=keys.__getitem__) for value in blocks[number]]
