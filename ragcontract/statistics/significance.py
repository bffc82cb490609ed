"""Significance of the change of a mean: a paired comparison of two runs over the same queries.

The null hypothesis is that each of a query's two results is equally likely to be from either run. The p-value is the
probability of a fall of the mean at least as large as the observed one. This is the randomization test of Smucker,
Allan and Carterette, *A Comparison of Statistical Significance Tests for Information Retrieval Evaluation* (CIKM 2007),
one-sided, with a weighted mean. All functions are pure and deterministic, and independent of the order of the queries.
"""

import random
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from math import exp, fsum, sqrt
from operator import getitem

from msgspec import Struct

from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import SAME

ALPHA = 0.05
EXACT_UP_TO = 16  # 65,536 assignments of signs
SAMPLES, FIRST_SAMPLES = 10_000, 1_000
SMALLEST_SAMPLED = 1 / (SAMPLES + 1)
CLEARLY_NOTHING = 0.2  # from this p-value on, the first samples are enough
SEED = 20_070_101
SAMPLED_AS_GROUPS, GROUP = 32, 16
SAMPLED_ONE_BY_ONE = 256
BYTE = 8
REMEMBERED = 100  # p-values, with the sizes they are of: 16 bytes for each distinct one
DIGITS = 12
Z_95 = 1.959963984540054  # the normal distribution's 97.5 % quantile
UNIT = Scale()


class Noise(Struct, frozen=True, kw_only=True):
    """The uncertainty of a metric's change, from a paired comparison over the shared queries.

    ``interval`` is the 95 % confidence interval of the change, ``p_value`` that of a one-sided sign-flip test for a
    change for the worse; both are null if too few queries changed. ``wins`` and ``losses`` count the queries that got
    better and worse.
    """

    interval: tuple[float, float] | None
    p_value: float | None
    wins: int
    ties: int
    losses: int


class Weights(Struct, frozen=True):
    """The statistics of the weights of all queries, changed or not: their number, sum and sum of squares."""

    count: int
    total: float
    squares: float

    @classmethod
    def of(cls, weights: Sequence[float]) -> "Weights":
        """Compute the sums; weights are at most a billion, so their squares cannot overflow."""
        return cls(len(weights), fsum(weights), fsum(weight * weight for weight in weights))


def noise(
    changes: Sequence[tuple[float, float]], weights: Weights, *, better: Direction = "higher", scale: Scale = UNIT
) -> Noise:
    """Compare as :func:`paired` does, given the weight and the difference of each query that changed.

    If ``better`` is "lower", the p-value is that of a rise.
    """
    sign = 1.0 if better == "higher" else -1.0
    wins = sum(sign * difference > 0 for _, difference in changes)
    losses = len(changes) - wins
    interval = p_value = None
    if len(changes) >= fewest_changed(ALPHA):
        interval = _interval(changes, weights, scale.high - scale.low)
        p_value = _p_value([sign * weight * difference for weight, difference in changes])
    return Noise(interval=interval, p_value=p_value, wins=wins, ties=weights.count - len(changes), losses=losses)


def fewest_changed(alpha: float, tests: int = 1) -> int:
    """Return how many queries must change for a drop to be significant in one of so many ``tests`` by Holm's method.

    If all n changed queries get worse, one of 2^n sign assignments is as extreme, so p is at least 2^-n.
    """
    changed = 1
    while 0.5**changed > alpha / tests:
        changed += 1
    return changed


def holm(p_values: Mapping[str, float], alpha: float) -> dict[str, bool]:
    """Return which tests are significant with a family-wise error rate of at most ``alpha``.

    Holm, *A Simple Sequentially Rejective Multiple Test Procedure*, Scandinavian Journal of Statistics 6 (1979): the
    smallest of m p-values is compared with alpha / m, the next with alpha / (m - 1), and so on until one is larger.
    """
    significant = dict.fromkeys(p_values, False)
    for passed, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        if p_values[name] > alpha / (len(p_values) - passed):
            break
        significant[name] = True
    return significant


def benjamini_hochberg(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return adjusted p-values; selecting those of at most q limits the expected share of false positives to q.

    Benjamini and Hochberg, *Controlling the False Discovery Rate*, Journal of the Royal Statistical Society B 57
    (1995): the i-th smallest of m p-values is multiplied by m / i and capped at the adjusted value of the next larger
    one.
    """
    adjusted: dict[str, float] = {}
    least = 1.0
    ranked = sorted(p_values, key=p_values.__getitem__)
    for rank in range(len(ranked), 0, -1):
        least = min(least, p_values[ranked[rank - 1]] * len(ranked) / rank)
        adjusted[ranked[rank - 1]] = least
    return {name: adjusted[name] for name in p_values}


def _interval(changed: Sequence[tuple[float, float]], weights: Weights, most: float) -> tuple[float, float]:
    """Return the 95 % interval of the weighted mean difference, limited to ``most`` in either direction.

    The interval of Bonett and Price, *Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based
    on Paired Data*, Journal of Educational and Behavioral Statistics 37 (2012), generalized from binary results to any
    difference and to weights: two queries are added, one that got better and one that got worse, with the root mean
    square of the weights and of the observed changes. Without them, the interval is too narrow if weights differ or few
    queries changed, and has no width if all changes are equal. It covers the true change in 93 to 98 % of samples if
    weights differ by a factor of six (see ``tests/scoring``), and in fewer if a handful of queries outweigh the others.
    """
    size = sqrt(fsum(w * d * d for w, d in changed) / fsum(w for w, _ in changed))
    typical = sqrt(weights.squares / weights.count)
    total = weights.total + 2 * typical
    mean = fsum(w * d for w, d in changed) / total
    added = [(typical, size), (typical, -size)]
    unchanged = max(weights.squares - fsum(w * w for w, _ in changed), 0.0) * mean * mean
    error = sqrt(fsum((w * (d - mean)) ** 2 for w, d in [*changed, *added]) + unchanged) / total
    return max(-most, mean - Z_95 * error), min(most, mean + Z_95 * error)


def _p_value(contributions: Iterable[float]) -> float:
    """Return the share of sign assignments whose sum is at most the sum of ``contributions``.

    Making some signs negative subtracts twice their sizes from the sum of all sizes. A sum is therefore as low as the
    observed one if the sizes made negative add up to at least those that are negative. Sizes are divided by the largest
    and rounded, so that equal ones compare equal: in floating point, 1 - 2/3 and 1/3 do not.
    """
    changed = Counter(contributions)  # tens of thousands of contributions have few distinct sizes
    del changed[0.0]
    largest = max(map(abs, changed), default=1.0)
    rounded = [(round(abs(size) / largest, DIGITS), size < 0, times) for size, times in changed.items()]
    sizes: Counter[float] = Counter()
    for size, _, times in rounded:
        sizes[size] += times
    lost = fsum(size * times for size, is_loss, times in rounded if is_loss)
    enough = lost - SAME * fsum(size * times for size, times in sizes.items())  # tolerance for rounding errors
    return _share_of(enough, array("d", chain.from_iterable(sorted(sizes.items()))).tobytes())


@lru_cache(maxsize=REMEMBERED)
def _share_of(enough: float, packed: bytes) -> float:
    """Return the share of the subsets of some sizes whose sum is at least ``enough``.

    ``packed`` has each size and its number as doubles: the same for all tags on the same queries, for which it is worth
    remembering, because sampling takes tens of milliseconds.
    """
    numbers = array("d", packed)
    sizes = Counter({size: int(times) for size, times in zip(numbers[::2], numbers[1::2], strict=True)})
    if sizes.total() <= EXACT_UP_TO:
        sums = _subset_sums(sizes.elements())
        return sum(total >= enough for total in sums) / len(sums)
    if _chance_at_most(enough, sizes) < 1 / SAMPLES**2:
        return SMALLEST_SAMPLED  # no sample would be as low
    samples = _sampled_sums(sizes, random.Random(SEED))  # noqa: S311
    hits, sampled = sum(total >= enough for total in islice(samples, FIRST_SAMPLES)), FIRST_SAMPLES
    if hits < CLEARLY_NOTHING * FIRST_SAMPLES:
        hits += sum(total >= enough for total in islice(samples, SAMPLES - FIRST_SAMPLES))
        sampled = SAMPLES
    # The observed assignment counts as a sample: Phipson and Smyth, "Permutation P-values Should Never Be Zero", 2010.
    return (hits + 1) / (sampled + 1)


def _chance_at_most(enough: float, sizes: Counter[float]) -> float:
    """Return an upper bound of the probability that a random subset sums up to ``enough`` or more.

    Hoeffding, *Probability Inequalities for Sums of Bounded Random Variables*, Journal of the American Statistical
    Association 58 (1963), theorem 2.
    """
    above = enough - fsum(size * times for size, times in sizes.items()) / 2
    return exp(-2 * above * above / fsum(size * size * times for size, times in sizes.items())) if above > 0 else 1.0


def _subset_sums(sizes: Iterable[float]) -> list[float]:
    sums = [0.0]
    for size in sizes:
        sums += [total + size for total in sums]
    return sums


def _sampled_sums(sizes: Counter[float], dice: random.Random) -> Iterator[float]:
    """Yield sums of random subsets of ``sizes``, each of which is included with probability 1/2.

    For many equal sizes, the number included is binomial: the number of ones among as many random bits. The other sizes
    are sampled in groups of eight, with a random byte as index into a table of the 256 subset sums. If more than 256
    sizes are left, the smallest are sampled together as one normal variable with their mean and variance. Because none
    of them is larger than any of the 256, the error in the fourth cumulant of the sum is at most 0.002 of the squared
    variance (odd cumulants have none). By the Edgeworth expansion, this changes a p-value of 0.05 by 0.00002; 10,000
    samples have a standard error of 0.002 there.
    """
    ordered = sorted(sizes.items(), reverse=True)
    groups = sorted(ordered, key=lambda group: -group[1])[:SAMPLED_AS_GROUPS]
    groups = [group for group in groups if group[1] >= GROUP]
    grouped = {size for size, _ in groups}
    single = [size for size, times in ordered if size not in grouped for _ in range(times)]
    one_by_one, rest = single[:SAMPLED_ONE_BY_ONE], single[SAMPLED_ONE_BY_ONE:]
    tables = [_subset_sums(one_by_one[at : at + BYTE]) for at in range(0, len(one_by_one), BYTE)]
    tables = [table * (256 // len(table)) for table in tables]
    mean, deviation = fsum(rest) / 2, sqrt(fsum(size * size for size in rest)) / 2
    while True:
        total = sum(map(getitem, tables, dice.randbytes(len(tables))))
        for size, members in groups:
            total += size * dice.getrandbits(members).bit_count()
        if rest:
            total += dice.gauss(mean, deviation)
        yield total
