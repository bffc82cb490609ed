"""How sure a change of a mean is: a paired comparison of two runs over the same queries. Pure.

The test asks: were it a toss-up which of the two runs gave which of a query's two results, how often would the mean
fall as far as it did? It is the randomization test of Smucker, Allan and Carterette, *A Comparison of Statistical
Significance Tests for Information Retrieval Evaluation* (CIKM 2007), one-sided, with the queries' weights in the mean.
All is deterministic: equal input gives equal output, in whatever order the queries come.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import exp, fsum, sqrt
from operator import getitem

from msgspec import Struct

from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import SAME

ALPHA = 0.05
EXACT_UP_TO = 16  # 65,536 assignments of signs
SAMPLES, FIRST_SAMPLES = 10_000, 1_000
SMALLEST_SAMPLED = 1 / (SAMPLES + 1)
CLEARLY_NOTHING = 0.2  # a p-value of this or more is settled by the first samples
SEED = 20_070_101
SAMPLED_AS_GROUPS, GROUP = 32, 16
SAMPLED_ONE_BY_ONE = 256
BYTE = 8
DIGITS = 12
Z_95 = 1.959963984540054  # the normal distribution's 97.5 % quantile
UNIT = Scale()


class Noise(Struct, frozen=True, kw_only=True):
    """How sure a metric's change is: a paired comparison over the shared queries.

    ``interval`` is the 95 % interval of the change, ``p_value`` that of a one-sided sign-flip test for a change for the
    worse; both are null where too few queries changed to say. ``wins`` and ``losses`` count queries that got better and
    worse.
    """

    interval: tuple[float, float] | None
    p_value: float | None
    wins: int
    ties: int
    losses: int


def paired(before: Sequence[float], now: Sequence[float], weights: Sequence[float]) -> Noise:
    """Compare two runs, query by query; values are from 0 to 1, and weights are above 0.

    The p-value and the interval are None where fewer than five queries changed: had all of them got worse, the
    p-value would still be above 0.05.
    """
    changes = [(weight, b - a) for weight, a, b in zip(weights, before, now, strict=True) if abs(b - a) > SAME]
    return noise(changes, Weights.of(weights))


class Weights(Struct, frozen=True):
    """What a comparison needs of the weights of all queries, changed or not: how many, their sum, that of squares."""

    count: int
    total: float
    squares: float

    @classmethod
    def of(cls, weights: Sequence[float]) -> "Weights":
        """Add up; a billion, the largest weight there is, is far from where the squares would overflow."""
        return cls(len(weights), fsum(weights), fsum(weight * weight for weight in weights))


def noise(
    changes: Sequence[tuple[float, float]], weights: Weights, *, better: Direction = "higher", scale: Scale = UNIT
) -> Noise:
    """Compare as :func:`paired` does, from the weight and the difference of each query that changed.

    Where lower values are ``better``, a rise is what the p-value is about.
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
    """Return how many queries must change for a drop to be significant at all, among so many ``tests`` by Holm.

    If all n changed queries get worse, one of 2^n assignments of signs is as bad: p is 2^-n at the least.
    """
    changed = 1
    while 0.5**changed > alpha / tests:
        changed += 1
    return changed


def holm(p_values: Mapping[str, float], alpha: float) -> dict[str, bool]:
    """Say which are significant if the chance of even one false alarm is to be ``alpha`` at most.

    Holm, *A Simple Sequentially Rejective Multiple Test Procedure*, Scandinavian Journal of Statistics 6 (1979): the
    smallest of m p-values against alpha / m, the next against alpha / (m - 1), up to the first that is above.
    """
    significant = dict.fromkeys(p_values, False)
    for passed, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        if p_values[name] > alpha / (len(p_values) - passed):
            break
        significant[name] = True
    return significant


def benjamini_hochberg(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return adjusted p-values: those up to q are, on average, false alarms in a share of q at most.

    Benjamini and Hochberg, *Controlling the False Discovery Rate*, Journal of the Royal Statistical Society B 57
    (1995): the i-th smallest of m is multiplied by m / i, and is at most what the next larger one comes to.
    """
    adjusted: dict[str, float] = {}
    least = 1.0
    ranked = sorted(p_values, key=p_values.__getitem__)
    for rank in range(len(ranked), 0, -1):
        least = min(least, p_values[ranked[rank - 1]] * len(ranked) / rank)
        adjusted[ranked[rank - 1]] = least
    return {name: adjusted[name] for name in p_values}


def _interval(changed: Sequence[tuple[float, float]], weights: Weights, most: float) -> tuple[float, float]:
    """Return the 95 % interval of the weighted mean difference, which is at ``most`` so far from 0.

    The interval of Bonett and Price, *Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based
    on Paired Data*, Journal of Educational and Behavioral Statistics 37 (2012), carried over from hit or miss to any
    difference and to weights: two queries are added, one that got better and one that got worse, with the root mean
    square of the weights and of the changes there were. Without them it is too narrow where weights differ or few
    queries changed, and has no width at all where all changed alike. It holds the true change in 93 to 98 % of samples
    where weights differ by a factor of six (see ``tests/scoring``), and in fewer where a handful outweigh the others.
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
    """Return the share of sign assignments whose sum is no more than the sum of ``contributions``.

    Turning the signs of some negative is to take twice their sizes from the sum of all sizes, so that a sum is as low
    as the observed one where the sizes turned negative come to as much as those that are. Sizes are taken relative to
    the largest, and rounded, for equal ones to be equal: 1 - 2/3 and 1/3 are not, as floating-point numbers.
    """
    changed = Counter(contributions)  # by the ten thousand, they have a few different sizes
    del changed[0.0]
    largest = max(map(abs, changed), default=1.0)
    rounded = [(round(abs(size) / largest, DIGITS), size < 0, times) for size, times in changed.items()]
    sizes: Counter[float] = Counter()
    for size, _, times in rounded:
        sizes[size] += times
    lost = fsum(size * times for size, is_loss, times in rounded if is_loss)
    enough = lost - SAME * fsum(size * times for size, times in sizes.items())  # equal sums differ in the last digits
    if sizes.total() <= EXACT_UP_TO:
        sums = _subset_sums(sizes.elements())
        return sum(total >= enough for total in sums) / len(sums)
    if _chance_at_most(enough, sizes) < 1 / SAMPLES**2:
        return SMALLEST_SAMPLED  # as no sample would have been as low
    samples = _sampled_sums(sizes, random.Random(SEED))  # noqa: S311
    hits, sampled = sum(total >= enough for total in islice(samples, FIRST_SAMPLES)), FIRST_SAMPLES
    if hits < CLEARLY_NOTHING * FIRST_SAMPLES:
        hits += sum(total >= enough for total in islice(samples, SAMPLES - FIRST_SAMPLES))
        sampled = SAMPLES
    # The observed assignment is one of them. Phipson and Smyth, "Permutation P-values Should Never Be Zero", 2010.
    return (hits + 1) / (sampled + 1)


def _chance_at_most(enough: float, sizes: Counter[float]) -> float:
    """Bound the chance that a random subset comes to ``enough``.

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
    """Yield sums of random subsets of ``sizes``, each of which is in or out by the toss of a coin.

    Of many equal sizes, the number that is in is binomial: the ones among so many random bits. Of the others, eight at
    a time are a random byte and a table of its 256 sums. Where more than 256 are left, the smallest are sampled as one
    normal number of their mean and variance. None of them being larger than any of the 256, the fourth cumulant of
    the sum is off by 0.002 of the squared variance at the most (and the odd ones by nothing), which at a p-value of
    0.05 comes to 0.00002 by Edgeworth's expansion; 10,000 samples have a standard error of 0.002 there.
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
