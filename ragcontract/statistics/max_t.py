"""P-values of several changes of the same runs, adjusted so that together they raise no more false alarms than one.

This is the step-down max-T of Westfall and Young, *Resampling-Based Multiple Testing* (1993). The largest statistic is
compared with the largest of all tests under random signs, the next with the largest of the other tests, and so on. A
query has one sign for all tests, so tests that agree cost little, and a limit on a copy of a metric changes nothing.

The random signs of a query in 1,000 samples are one large integer with a bit in each of 1,000 fields of 64 bits.
Multiplied by a query's contribution, rounded to a whole number, and summed over the queries, it gives the sums of all
samples at once. If very many queries changed, several share a sign, and half of them, at random, have the opposite
sign. Each test's statistic is divided by the spread that results, so its variance remains exact. All functions are
pure.
"""

import random
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from math import exp, fsum, sqrt

from msgspec import Struct

from ragcontract.statistics.sign_flips import EXACT_UP_TO, TIE, SignFlips, signed_sums

SEED = 20_070_101
SAMPLES = 1_000  # at once
FIELD = 64
ONES = int.from_bytes((1).to_bytes(FIELD // 8, "little") * SAMPLES, "little")
UNIT = (1 << 30) - 1  # of a rounded contribution: a digit of Python's integers, so that multiplication is fast
SIGNS, FEWEST_SIGNS = 1_024, 128
PRODUCTS = 8_192

BATCHES = 10
SMALLEST_SAMPLED = 1 / (BATCHES * SAMPLES + 1)
CLEARLY_NOTHING = 0.2  # if no p-value is lower, the first batch is enough
RESULTS = 4_000_000  # statistics, of all tests and samples


class Adjusted(Struct, frozen=True):
    """The p-values of a change."""

    own: float  # of the change alone
    p_value: float  # adjusted
    smallest: float  # adjusted, if all queries that changed had got worse


class AdjustedTests(Struct, frozen=True):
    """The results of all tests."""

    tests: tuple[Adjusted, ...]  # in the order of the tests
    # The statistic that the largest exceeds with a probability of alpha; None for one test, and for several equal ones.
    critical: float | None


def adjust(tests: Sequence[SignFlips], alpha: float) -> AdjustedTests:
    """Return the p-values of changes, each of which has at least one changed query."""
    keys = [(test.mid_p, frozenset(test.contributions.items())) for test in tests]
    distinct = sorted(dict(zip(keys, tests, strict=True)).items(), key=lambda item: _order(item[1]))
    results = _results([test for _, test in distinct], alpha)
    by_key = {key: result for (key, _), result in zip(distinct, results.tests, strict=True)}
    return AdjustedTests(tuple(by_key[key] for key in keys), results.critical)


def _order(test: SignFlips) -> tuple[float, bool, list[float], list[tuple[int, float]]]:
    """Return the sort key of tests: the largest statistic first, and among equal ones those whose ties count whole.

    Only where two tests have the same contributions of other queries do the numbers of the queries decide.
    """
    contributions = test.contributions
    return -round(test.statistic / TIE), test.mid_p, sorted(contributions.values()), sorted(contributions.items())


def _results(tests: Sequence[SignFlips], alpha: float) -> AdjustedTests:
    exact = [test.exact_p_value for test in tests]
    if len(tests) == 1 and exact[0] is not None:
        return AdjustedTests((Adjusted(exact[0], exact[0], tests[0].smallest_p_value),), None)
    if not tests:
        return AdjustedTests((), None)
    tally = _Tally(tests, exact)
    queries = sorted({number for test in tests for number in test.contributions})
    if len(queries) <= EXACT_UP_TO and len(tests) << len(queries) <= RESULTS:
        tally.add(lambda position: _all_statistics(tests[position], queries))
        return tally.results(alpha, observed=0)
    plan, signs = rounded(tests)
    for batch in sampled_signs(signs, max(1, min(BATCHES, RESULTS // (len(tests) * SAMPLES)))):
        tally.add(lambda position, batch=batch: plan[position].statistics(batch))  # type: ignore[misc]
        if tally.settled(above=max(CLEARLY_NOTHING, 2 * alpha)):
            break
    # The observed assignment counts as a sample: Phipson and Smyth, "Permutation P-values Should Never Be Zero", 2010.
    return tally.results(alpha, observed=1)


def _all_statistics(test: SignFlips, queries: Sequence[int]) -> list[float]:
    norm = test.norm
    return signed_sums([test.contributions.get(number, 0.0) / norm for number in queries])


class _Tally:
    """Counts how often statistics are as large as the observed ones; tests are ordered, the largest first."""

    def __init__(self, tests: Sequence[SignFlips], exact: Sequence[float | None]) -> None:
        self._tests, self._exact = tests, exact
        self._observed = [test.statistic for test in tests]
        self._certain = [_never_sampled(seen, len(tests)) for seen in self._observed]
        self._own = [0.0] * len(tests)
        self._hits = [0.0] * len(tests)
        self._hits_at_best = [0.0] * len(tests)
        self._largest: list[float] = []
        # The position that each test would have if all its queries had got worse.
        rising = [-seen for seen in self._observed]
        self._would_be = [bisect_left(rising, -test.largest_statistic - TIE) for test in tests]
        self._there: dict[int, list[int]] = {}
        for position, would_be in enumerate(self._would_be):
            self._there.setdefault(would_be, []).append(position)

    def add(self, statistics: Callable[[int], list[float]]) -> None:
        """Count one batch of samples; ``statistics`` returns those of the test at a position."""
        largest: list[float] = []
        for position in reversed(range(len(self._tests))):
            values = statistics(position)
            largest = list(map(max, largest, values)) if largest else values
            test, seen = self._tests[position], self._observed[position]
            if self._exact[position] is None:
                self._own[position] += _hits(values, seen, mid_p=test.mid_p)
            self._hits[position] += _hits(largest, seen, mid_p=test.mid_p)
            for other in self._there.get(position, ()):
                best = self._tests[other]
                self._hits_at_best[other] += _hits(largest, best.largest_statistic, mid_p=best.mid_p)
        self._largest += largest

    def settled(self, above: float) -> bool:
        """Return whether more samples would change little, because all p-values are high or too small to be sampled."""
        adjusted = self._adjusted(1)
        return all(result.p_value >= above or certain for result, certain in zip(adjusted, self._certain, strict=True))

    def results(self, alpha: float, observed: int) -> AdjustedTests:
        """Return the p-values; ``observed`` is the number of samples that are the observed change itself."""
        several = len(self._tests) > 1
        rank = min(len(self._largest) - 1, int((1 - alpha) * len(self._largest)))
        critical = sorted(self._largest)[rank] if several else None
        return AdjustedTests(tuple(self._adjusted(observed)), critical)

    def _adjusted(self, observed: int) -> Iterator[Adjusted]:
        samples = len(self._largest) + observed
        highest = [0.0]  # of the adjusted p-values of the first tests
        for position, test in enumerate(self._tests):
            exact = self._exact[position]
            sampled = [(hits + observed) / samples for hits in (self._own[position], self._hits[position])]
            if observed and self._certain[position]:
                sampled = [SMALLEST_SAMPLED] * 2
            own = sampled[0] if exact is None else exact
            highest.append(max(highest[-1], own, sampled[1]))
            at_best = (self._hits_at_best[position] + observed) / samples
            smallest = max(highest[self._would_be[position]], test.smallest_p_value, at_best)
            yield Adjusted(own, highest[-1], smallest)


def _never_sampled(observed: float, tests: int) -> bool:
    """Return whether a statistic is so large that no sample of any test would reach it.

    Hoeffding, *Probability Inequalities for Sums of Bounded Random Variables*, Journal of the American Statistical
    Association 58 (1963), theorem 2.
    """
    return observed > 0 and tests * exp(-observed * observed / 2) < SMALLEST_SAMPLED**2


def _hits(statistics: Sequence[float], observed: float, *, mid_p: bool) -> float:
    """Return how many statistics are at least the observed one; equal ones count half for a mid-p-value."""
    least = sum(map((observed - TIE).__le__, statistics))
    return (least + sum(map((observed + TIE).__lt__, statistics))) / 2 if mid_p else least


class Rounded(Struct, frozen=True):
    """A test's contributions as whole numbers."""

    sizes: tuple[tuple[int, int], ...]  # a sign's number, and the contribution of the queries that share it
    offset: int  # the sum of the negative contributions, as a positive number
    total: int
    factor: float  # makes a statistic of a sum

    @classmethod
    def of(cls, contributions: dict[int, float]) -> "Rounded":
        """Round the contributions, the largest of which is not 0."""
        largest = max(map(abs, contributions.values()))
        sizes = tuple((sign, round(size / largest * UNIT)) for sign, size in contributions.items())
        norm = sqrt(fsum(size * size for size in contributions.values())) / largest
        offset = -sum(size for _, size in sizes if size < 0)
        return cls(sizes, offset, sum(size for _, size in sizes), 1 / (norm * UNIT))

    def statistics(self, signs: Sequence[int]) -> list[float]:
        """Return the statistic of each sample. A bit of 1 is a plus; a field must not fall below 0."""
        total = ONES * self.offset
        for sign, size in self.sizes:
            total += signs[sign] * size
        sums = array("Q", total.to_bytes(FIELD // 8 * SAMPLES, sys.byteorder))
        double, less = 2 * self.factor, (2 * self.offset + self.total) * self.factor
        return [double * sampled - less for sampled in sums]


def rounded(tests: Sequence[SignFlips]) -> tuple[list[Rounded], int]:
    """Return the tests with their queries dealt to signs, and the number of signs.

    The result depends on the tests' order and on the queries' contributions, not on the order of the queries.
    """
    vectors: dict[int, list[tuple[int, float]]] = {}
    for number, test in enumerate(tests):
        for query, size in test.contributions.items():
            vectors.setdefault(query, []).append((number, size))
    ordered = sorted(vectors.values(), key=lambda vector: (-max(abs(size) for _, size in vector), vector))
    most = _number_of_signs(tests)
    dice = random.Random(SEED)  # noqa: S311
    parts: list[dict[int, list[float]]] = [{} for _ in tests]
    for index, vector in enumerate(ordered):
        opposite = index >= most and dice.getrandbits(1)
        for number, size in vector:
            parts[number].setdefault(index % most, []).append(-size if opposite else size)
    return [Rounded.of(_sums(part)) for part in parts], min(most, len(ordered))


def _sums(part: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """Return the contributions of one test by sign; if all of them cancel out, they get one direction instead."""
    sums = {sign: fsum(sizes) for sign, sizes in part.items()}
    return sums if any(sums.values()) else {sign: fsum(map(abs, sizes)) for sign, sizes in part.items()}


def _number_of_signs(tests: Sequence[SignFlips]) -> int:
    most = SIGNS
    while most > FEWEST_SIGNS and sum(min(len(test.contributions), most) for test in tests) > PRODUCTS:
        most //= 2
    return most


def sampled_signs(number: int, batches: int) -> Iterator[list[int]]:
    """Yield batches of 1,000 samples of ``number`` random signs, which are always the same."""
    dice = random.Random(SEED)  # noqa: S311
    for _ in range(batches):
        yield list(islice(_signs(dice), number))


def _signs(dice: random.Random) -> Iterator[int]:
    while True:
        bits = dice.getrandbits(FIELD * SAMPLES)
        for bit in range(FIELD):
            yield bits >> bit & ONES
