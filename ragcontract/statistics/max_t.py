"""P-values of several changes of the same runs, adjusted so that all together raise no more false alarms than one.

Step-down max-T of Westfall and Young, *Resampling-Based Multiple Testing* (1993): the largest statistic is compared
with the largest of all tests under random signs, the next with the largest of the other tests, and so on. A query has
one sign for all tests, so tests that agree cost little: a limit on a copy of a metric changes nothing. Pure functions.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from math import exp

from msgspec import Struct

from ragcontract.statistics.joint_signs import SAMPLES, rounded, sampled_signs
from ragcontract.statistics.sign_flips import EXACT_UP_TO, TIE, SignFlips, signed_sums

BATCHES = 10
SMALLEST_SAMPLED = 1 / (BATCHES * SAMPLES + 1)
CLEARLY_NOTHING = 0.2  # if no p-value is lower, the first batch is enough
RESULTS = 4_000_000  # statistics, of all tests and samples


class Adjusted(Struct, frozen=True):
    """The ``own`` p-value of a change, the adjusted one, and the smallest that the same queries could have."""

    own: float
    p_value: float
    smallest: float


class AdjustedTests(Struct, frozen=True):
    """The results in the order of the tests, and the statistic that the largest exceeds with a probability of alpha.

    ``critical`` is None for a single test, and for several that are the same.
    """

    tests: tuple[Adjusted, ...]
    critical: float | None


def adjust(tests: Sequence[SignFlips], alpha: float) -> AdjustedTests:
    """Return the p-values of changes, each of which has at least one changed query."""
    keys = [(test.mid_p, frozenset(test.contributions.items())) for test in tests]
    distinct = sorted(dict(zip(keys, tests, strict=True)).items(), key=lambda item: _order(item[1]))
    found = _results([test for _, test in distinct], alpha)
    by_key = {key: one for (key, _), one in zip(distinct, found.tests, strict=True)}
    return AdjustedTests(tuple(by_key[key] for key in keys), found.critical)


def _order(test: SignFlips) -> tuple[float, bool, list[float]]:
    """Return what tests are ordered by: the largest first, of equal ones those whose ties count whole."""
    return -round(test.statistic / TIE), test.mid_p, sorted(test.contributions.values())


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
        """Return whether more samples would tell little: all p-values are high, or too small to be sampled."""
        found = self._adjusted(1)
        return all(one.p_value >= above or certain for one, certain in zip(found, self._certain, strict=True))

    def results(self, alpha: float, observed: int) -> AdjustedTests:
        """Return the p-values; ``observed`` is how many of the samples are the observed change itself."""
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
    """Return whether none of the samples would have a statistic as large as this one, of any of the tests.

    Hoeffding, *Probability Inequalities for Sums of Bounded Random Variables*, Journal of the American Statistical
    Association 58 (1963), theorem 2.
    """
    return observed > 0 and tests * exp(-observed * observed / 2) < SMALLEST_SAMPLED**2


def _hits(statistics: Sequence[float], observed: float, *, mid_p: bool) -> float:
    """Return how many statistics are at least the observed one; equal ones count half for a mid-p-value."""
    least = sum(map((observed - TIE).__le__, statistics))
    return (least + sum(map((observed + TIE).__lt__, statistics))) / 2 if mid_p else least
