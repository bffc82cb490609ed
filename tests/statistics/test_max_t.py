"""Several changes tested together, against a reference that turns the signs one by one."""

import random
from collections.abc import Sequence
from itertools import product
from math import fsum, sqrt

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragcontract.statistics import max_t
from ragcontract.statistics.max_t import Adjusted, adjust
from ragcontract.statistics.sign_flips import SignFlips, binomial_p_value

ALPHA = 0.05


def reference(tests: Sequence[SignFlips]) -> list[float]:
    """Return the adjusted p-values of Westfall and Young's step-down max-T, from all assignments of signs."""
    queries = sorted({number for test in tests for number in test.contributions})
    norms = [sqrt(fsum(size * size for size in test.contributions.values())) for test in tests]
    seen = [fsum(test.contributions.values()) / norm for test, norm in zip(tests, norms, strict=True)]
    ordered = sorted(range(len(tests)), key=lambda position: (-round(seen[position], 9), tests[position].mid_p))
    adjusted, highest = [0.0] * len(tests), 0.0
    assignments = [dict(zip(queries, signs, strict=True)) for signs in product((1, -1), repeat=len(queries))]
    for step, position in enumerate(ordered):
        hits = 0.0
        for signs in assignments:
            largest = max(
                fsum(signs[number] * size for number, size in tests[other].contributions.items()) / norms[other]
                for other in ordered[step:]
            )
            tie = abs(largest - seen[position]) < 1e-9
            hits += (0.5 if tests[position].mid_p else 1.0) if tie else largest > seen[position]
        own = tests[position].exact_p_value
        assert own is not None
        highest = max(highest, own, hits / len(assignments))
        adjusted[position] = highest
    return adjusted


def random_tests(dice: random.Random, queries: int, tests: int, chance: float = 0.7) -> list[SignFlips]:
    """Make up tests of some of the queries each; losses are more frequent than gains."""
    found = []
    for _ in range(tests):
        sizes = [1.0, 0.5, 0.25, round(dice.random() + 0.01, 3)]
        numbers = dice.sample(range(queries), dice.randint(1, queries))
        found.append(SignFlips({n: dice.choice(sizes) * (1 if dice.random() < chance else -1) for n in numbers}))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_few_changes_agree_with_all_assignments_of_signs(seed: int) -> None:
    dice = random.Random(seed)
    tests = random_tests(dice, 8, 4)
    binary = SignFlips({n: 1.0 if n else -1.0 for n in range(6)}, mid_p=True)
    for those in (tests, [*tests, binary]):
        assert [one.p_value for one in adjust(those, ALPHA).tests] == pytest.approx(reference(those), abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_sampled_signs_agree_with_all_assignments_within_sampling_error(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = random_tests(random.Random(seed), 9, 4)
    expected = reference(tests)
    monkeypatch.setattr("ragcontract.statistics.max_t.RESULTS", 40_000)  # too few for all, enough for the samples
    monkeypatch.setattr("ragcontract.statistics.max_t.EXACT_UP_TO", 2)
    for found, right in zip(adjust(tests, ALPHA).tests, expected, strict=True):
        assert found.p_value == pytest.approx(right, abs=4 * sqrt(right * (1 - right) / 1_000) + 0.002)


def noisy(dice: random.Random, queries: int, fall: float, start: int = 0) -> SignFlips:
    return SignFlips(
        {start + n: round(dice.random() * (1 if dice.random() < fall else -1), 3) or 0.5 for n in range(queries)}
    )


def test_a_limit_on_a_copy_of_a_metric_changes_no_p_value() -> None:
    dice = random.Random(1)
    one, other = noisy(dice, 60, 0.65), noisy(dice, 60, 0.6)
    doubled = SignFlips(dict(one.contributions))
    alone, both = adjust([one], ALPHA), adjust([one, doubled], ALPHA)
    assert both.tests == alone.tests * 2
    assert both.critical is None
    two, three = adjust([one, other], ALPHA), adjust([one, other, doubled], ALPHA)
    assert three.tests == (*two.tests, two.tests[0])
    assert three.critical == two.critical


def test_one_limit_has_its_exact_p_value() -> None:
    flips = SignFlips({number: 1.0 if number < 20 else -1.0 for number in range(30)})
    assert adjust([flips], ALPHA).tests == (
        Adjusted(binomial_p_value(20, 30), binomial_p_value(20, 30), smallest=2**-30),
    )


def test_nothing_to_test() -> None:
    assert adjust([], ALPHA).tests == ()


def test_metrics_that_agree_cost_less_than_ones_that_do_not() -> None:
    dice = random.Random(3)
    one = noisy(dice, 80, 0.65)
    similar = SignFlips({number: size * (1 + dice.random() / 10) for number, size in one.contributions.items()})
    apart = SignFlips({number + 80: size for number, size in similar.contributions.items()})
    own, with_similar, with_apart = (
        adjust(tests, ALPHA).tests[0].p_value for tests in ([one], [one, similar], [one, apart])
    )
    assert own <= with_similar < with_apart <= 2 * own + 0.01


def test_very_many_changes_share_signs_and_keep_their_spread() -> None:
    dice = random.Random(4)
    many = [noisy(dice, 4 * max_t.SIGNS, 0.512) for _ in range(3)]
    plan, signs = max_t.rounded(many)
    assert signs == max_t.SIGNS
    (batch,) = max_t.sampled_signs(signs, 1)
    for one in plan:
        values = one.statistics(batch)
        mean = fsum(values) / len(values)
        assert mean == pytest.approx(0, abs=0.13)
        assert fsum((value - mean) ** 2 for value in values) / len(values) == pytest.approx(1, abs=0.18)


def test_changes_that_share_a_sign_and_cancel_out_keep_their_spread() -> None:
    everything = SignFlips({n: 1 - n / 10_000 for n in range(2 * max_t.SIGNS)})
    tags = [SignFlips({n: 0.5, n + max_t.SIGNS: -0.5}) for n in range(20)]
    plan, signs = max_t.rounded([everything, *tags])
    (batch,) = max_t.sampled_signs(signs, 1)
    assert {round(abs(value), 6) for one in plan[1:] for value in one.statistics(batch)} == {1.0}
    assert all(one.p_value > ALPHA for one in adjust([everything, *tags], ALPHA).tests[1:])


def test_the_more_tests_there_are_the_fewer_signs_and_samples_they_get() -> None:
    dice = random.Random(5)
    few, many = ([noisy(dice, 1_500, 0.5) for _ in range(number)] for number in (2, 40))
    assert max_t.rounded(few)[1] > max_t.rounded(many)[1] == max_t.FEWEST_SIGNS


def test_too_few_queries_cannot_be_significant_beside_others() -> None:
    several = [SignFlips({10 * tag + n: 1.0 for n in range(5)}) for tag in range(3)]
    alone = adjust(several[:1], ALPHA).tests[0]
    beside = adjust([several[0], *(SignFlips({10 * tag: 1.0, 10 * tag + 1: -0.9}) for tag in (1, 2))], ALPHA).tests[0]
    assert alone.smallest == 2**-5
    assert beside.smallest == beside.p_value > 2**-5 - 1e-12
    five = adjust([SignFlips({10 * tag + n: 1.0 for n in range(5)}) for tag in range(3)], ALPHA).tests
    assert {one.smallest > ALPHA for one in five} == {True}


sizes = st.sampled_from([1.0, 0.5, 0.25, 1 / 3, -1.0, -0.5, -1 / 3])
some_tests = st.lists(
    st.dictionaries(st.integers(0, 30), sizes, min_size=1, max_size=30).map(SignFlips), min_size=1, max_size=4
)


def of_same_changes() -> list[SignFlips]:
    """Return two tests whose changes are the same, but of other queries; they share four."""
    sizes = [1.0, -0.5, 0.25, 1.0, 1 / 3, 1.0, -1.0, 0.5, 1.0, 1.0, -1 / 3]
    return [SignFlips({start + step * n: size for n, size in enumerate(sizes)}) for start, step in ((0, 1), (3, 2))]


@settings(deadline=None, max_examples=60)
@example(of_same_changes(), random.Random(1))
@given(some_tests, st.randoms(use_true_random=False))
def test_neither_the_order_of_the_tests_nor_that_of_the_queries_matters(
    tests: list[SignFlips], dice: random.Random
) -> None:
    found = adjust(tests, ALPHA)
    assert all(0 < one.own <= one.p_value <= 1 and one.smallest <= one.p_value + 1e-9 for one in found.tests)
    assert [one.p_value for one in adjust(tests[::-1], ALPHA).tests] == [one.p_value for one in found.tests][::-1]
    in_another_order = [SignFlips(dict(reversed(list(test.contributions.items())))) for test in tests]
    assert adjust(in_another_order, ALPHA) == found
    if len({tuple(sorted(test.contributions.values())) for test in tests}) < len(tests):
        return  # the numbers of the queries decide, within the noise of sampling
    numbers = list(range(31))
    dice.shuffle(numbers)
    renumbered = [SignFlips({numbers[n]: size for n, size in test.contributions.items()}) for test in tests]
    assert [one.p_value for one in adjust(renumbered, ALPHA).tests] == [one.p_value for one in found.tests]
