"""The change of a metric's mean between two runs over the same queries, and its sign-flip test.

The null hypothesis of the test is that each of a query's two results is equally likely to be from either run. The
p-value is the probability of a change for the worse that is at least as large as the observed one. It is exact where
that is possible. This is the randomization test of Smucker, Allan and Carterette, *A Comparison of Statistical
Significance Tests for Information Retrieval Evaluation* (CIKM 2007), one-sided, with a weighted mean. All functions are
pure.
"""

from collections.abc import Iterable, Mapping
from math import comb, exp, fsum, isfinite, lgamma, log, sqrt

from msgspec import Struct

from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import SAME

UNIT = Scale()


class Weights(Struct, frozen=True):
    """The number and the sums of powers of the weights of all queries, changed or not."""

    count: int
    total: float
    squares: float
    cubes: float

    @classmethod
    def of(cls, weights: Iterable[tuple[float, int]]) -> "Weights":
        """Compute the sums of weights, each with the number of queries that have it.

        Weights are at most a billion, so their cubes cannot overflow.
        """
        counted = list(weights)
        sums = [fsum(weight**power * count for weight, count in counted) for power in (1, 2, 3)]
        return cls(sum(count for _, count in counted), *sums)


class Change(Struct, frozen=True, kw_only=True):
    """The change of the weighted mean of a metric over the queries that both runs have."""

    # The weight and the difference (now minus before) of each query whose value changed, by the query's number. A query
    # has one number for all metrics.
    changed: Mapping[int, tuple[float, float]]
    weights: Weights  # of all queries
    better: Direction = "higher"
    scale: Scale = UNIT
    identical: bool = False  # whether no value of the metric's whole family changed

    @property
    def sign(self) -> float:
        """The factor that makes a difference for the worse positive."""
        return -1.0 if self.better == "higher" else 1.0

    @property
    def span(self) -> float:
        """The size of the scale; may be infinite."""
        return self.scale.high - self.scale.low

    @property
    def whole(self) -> bool:
        """Whether every changed value moved from one end of the scale to the other."""
        return isfinite(self.span) and all(
            abs(abs(difference) - self.span) <= SAME * self.span for _, difference in self.changed.values()
        )

    @property
    def amount(self) -> float:
        """The loss of the mean; negative if it got better."""
        return fsum(self.sign * weight * moved for weight, moved in self.changed.values()) / self.weights.total

    @property
    def losses(self) -> int:
        return sum(self.sign * difference > 0 for _, difference in self.changed.values())

    @property
    def wins(self) -> int:
        return len(self.changed) - self.losses

    @property
    def ties(self) -> int:
        return self.weights.count - len(self.changed)


EXACT_UP_TO = 16  # 65,536 assignments of signs
EXACT_COUNTS = 2_000
DIGITS = 12
TIE = 1e-6  # differences of the statistic up to this size count as none
NEGLIGIBLE = 1e-18


class SignFlips(Struct, frozen=True):
    """A test whether a mean got worse."""

    # Of the changed queries, by number, positive for the worse. They are relative to the largest and rounded, so that
    # equal ones compare equal. In floating point, 1 - 2/3 and 1/3 do not.
    contributions: Mapping[int, float]
    mid_p: bool = False  # whether only half of the probability of the observed change itself counts

    @classmethod
    def of(cls, change: Change) -> "SignFlips":
        """Return the test of a change.

        With changes of equal size from one end of the scale to the other, it is McNemar's test. The mid-p-value is then
        better, because the true error rate of the exact one is far below its level: Fagerland, Lydersen and Laake, *The
        McNemar test for binary matched-pairs data*, BMC Medical Research Methodology 13 (2013).
        """
        sizes = {number: change.sign * weight * moved for number, (weight, moved) in change.changed.items()}
        largest = max(map(abs, sizes.values()), default=1.0)
        rounded = {number: round(size / largest, DIGITS) for number, size in sizes.items()}
        contributions = {number: size for number, size in rounded.items() if size}
        return cls(contributions, mid_p=_of_one_size(contributions.values()) and change.whole)

    @property
    def statistic(self) -> float:
        """The sum of the contributions over the root of the sum of their squares, which no sign changes."""
        return fsum(self.contributions.values()) / self.norm

    @property
    def largest_statistic(self) -> float:
        """The statistic if all queries that changed had got worse."""
        return fsum(map(abs, self.contributions.values())) / self.norm

    @property
    def norm(self) -> float:
        """The root of the sum of the squared contributions."""
        return sqrt(fsum(size * size for size in self.contributions.values()))

    @property
    def smallest_p_value(self) -> float:
        """The p-value if all queries that changed had got worse."""
        return smallest_p_value(len(self.contributions), mid_p=self.mid_p)

    @property
    def exact_p_value(self) -> float | None:
        """The p-value, or None if there are too many sign assignments for all of them to be computed."""
        sizes = list(self.contributions.values())
        if _of_one_size(sizes):
            return binomial_p_value(sum(size > 0 for size in sizes), len(sizes), mid_p=self.mid_p)
        if len(sizes) > EXACT_UP_TO:
            return None
        least = self.statistic * self.norm - TIE * self.norm
        sums = signed_sums(sizes)
        return sum(map(least.__le__, sums)) / len(sums)


def smallest_p_value(changed: int, *, mid_p: bool = False) -> float:
    """Return the smallest p-value that so many changed queries can have; one of 2^n assignments is as extreme."""
    return 0.5**changed * (0.5 if mid_p else 1.0)


def signed_sums(sizes: Iterable[float]) -> list[float]:
    """Return the sums of some numbers with every assignment of signs."""
    sums = [0.0]
    for size in sizes:
        sums = [total + size for total in sums] + [total - size for total in sums]
    return sums


def binomial_p_value(losses: int, changed: int, *, mid_p: bool = False) -> float:
    """Return the probability of at least ``losses`` heads among ``changed`` coins.

    With ``mid_p``, half of the probability of exactly so many counts.

    For up to 2,000 coins it is computed in whole numbers, for more from logarithms, to about ten digits.
    """
    if changed <= EXACT_COUNTS:
        ways = comb(changed, losses)
        doubled = ways if mid_p else 2 * ways
        whole: int = 2 ** (changed + 1)
        for number in range(losses + 1, changed + 1):
            ways = ways * (changed - number + 1) // number
            doubled += 2 * ways
        return doubled / whole
    if 2 * losses < changed:  # the shorter tail has the smaller rounding error
        return 1.0 - binomial_p_value(changed - losses + (not mid_p), changed, mid_p=mid_p)
    chance = exp(lgamma(changed + 1) - lgamma(losses + 1) - lgamma(changed - losses + 1) - changed * log(2))
    terms = [chance / 2 if mid_p else chance]
    for number in range(losses + 1, changed + 1):
        chance *= (changed - number + 1) / number
        terms.append(chance)
        if chance < NEGLIGIBLE:
            break
    return fsum(terms)


def _of_one_size(sizes: Iterable[float]) -> bool:
    return all(abs(size) == 1.0 for size in sizes)
