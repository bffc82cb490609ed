"""The p-value of one change, against scipy."""

import random
from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest
import scipy.stats

from ragcontract.core.metric import Scale
from ragcontract.statistics.max_t import adjust
from ragcontract.statistics.sign_flips import EXACT_COUNTS, SignFlips, binomial_p_value
from tests.statistics.paired_runs import change_of, paired

VALUES = (0.0, 0.2, 0.25, 1 / 3, 0.5, 2 / 3, 1.0)
THEIRS = 20_000
Columns = tuple[list[float], list[float], list[float]]


def columns(seed: int, queries: int, changed: int, *, weighted: bool, fine: bool = False) -> Columns:
    """Make up the values of ``queries`` on both sides, of which so many differ, and their weights."""
    dice = random.Random(seed)

    def value() -> float:
        return dice.random() if fine else dice.choice(VALUES)

    before = [value() for _ in range(queries)]
    now = list(before)
    for location in dice.sample(range(queries), changed):
        while now[location] == before[location]:
            now[location] = value()
    return before, now, [dice.choice([0.5, 1.0, 3.0]) if weighted else 1.0 for _ in range(queries)]


def p_value_by_scipy(before: Sequence[float], now: Sequence[float], weights: Sequence[float]) -> float:
    """Return scipy's: of one sample of weighted differences, whose signs are turned, exactly if it can."""
    share = np.asarray(weights) / sum(weights)
    differences = (np.asarray(now) - np.asarray(before)) * share
    changed = differences[np.abs(differences) > 1e-12]

    def total(x: np.ndarray, axis: int) -> np.ndarray:
        result: np.ndarray = np.sum(x, axis=axis)
        return result

    tested = scipy.stats.permutation_test(
        (changed,),
        total,
        permutation_type="samples",
        alternative="less",
        vectorized=True,
        n_resamples=1 << 16 if len(changed) <= 16 else THEIRS,
        batch=1000,
        rng=np.random.default_rng(1),
    )
    return float(tested.pvalue)


def fallen(losses: int, wins: int, size: float = 1.0, ties: int = 0) -> tuple[list[float], list[float]]:
    """Return values before and now of which some fell and some rose by the same size."""
    return [size] * losses + [0.0] * wins + [0.0] * ties, [0.0] * losses + [size] * wins + [0.0] * ties


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("changed", [2, 3, 5, 8, 12, 16])
@pytest.mark.parametrize("seed", range(4))
def test_few_changes_are_tested_exactly_as_scipy_does(seed: int, changed: int, weighted: bool) -> None:
    data = columns(seed, 40, changed, weighted=weighted)
    if not change_of(*data).whole:
        assert paired(*data).p_value == pytest.approx(p_value_by_scipy(*data), abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize(("queries", "changed"), [(17, 17), (60, 40), (900, 300), (2500, 1500)])
@pytest.mark.parametrize("seed", range(2))
def test_many_changes_agree_with_scipy_within_sampling_error(
    seed: int, queries: int, changed: int, fine: bool, weighted: bool
) -> None:
    before, now, weights = columns(10 + seed, queries, changed, weighted=weighted, fine=fine)
    for index in random.Random(seed).sample(range(queries), int(0.8 * sqrt(changed))):
        now[index] = min(before[index], now[index], 0.1)  # a drop, so that p-values are small, where they matter
    ours, theirs = paired(before, now, weights).p_value, p_value_by_scipy(before, now, weights)
    assert ours is not None
    samples = 10_000 if ours < 0.2 else 1_000
    error = sqrt(max(theirs, 1 / THEIRS) * (1 - theirs) * (1 / samples + 1 / THEIRS))
    assert ours == pytest.approx(theirs, abs=4 * error + 2 / samples)


@pytest.mark.parametrize(
    ("losses", "wins"), [(65, 35), (30, 10), (10, 30), (900, 800), (1200, 1100), (1100, 1200), (40, 0)]
)
def test_changes_of_one_size_are_binomial(losses: int, wins: int) -> None:
    expected = scipy.stats.binomtest(losses, losses + wins, alternative="greater").pvalue
    assert paired(*fallen(losses, wins, 0.5)).p_value == pytest.approx(expected, rel=1e-9)


def test_equal_changes_whose_exact_p_is_just_below_5_percent_are_significant() -> None:
    assert paired(*fallen(20, 10, 0.5, 70)).p_value == 53_009_102 / 2**30  # 0.0494


def test_thirds_that_differ_in_floating_point_are_of_one_size() -> None:
    before, now = [1.0] * 9 + [1 / 3] * 9, [2 / 3] * 9 + [0.0] * 9
    assert paired(before, now).p_value == 2**-18


@pytest.mark.parametrize(("losses", "wins"), [(4, 0), (10, 4), (30, 15), (1500, 1400), (1400, 1500)])
def test_a_result_that_is_right_or_wrong_has_a_mid_p(losses: int, wins: int) -> None:
    both = losses + wins
    beyond = scipy.stats.binom.sf(losses, both, 0.5)
    expected = beyond + scipy.stats.binom.pmf(losses, both, 0.5) / 2
    assert paired(*fallen(losses, wins)).p_value == pytest.approx(expected, rel=1e-9)


def test_a_mid_p_is_for_changes_across_the_whole_scale_with_equal_weights() -> None:
    before, now = fallen(6, 2)
    assert SignFlips.of(change_of(before, now)).mid_p
    assert not SignFlips.of(change_of(before, now, scale=Scale(0, 2))).mid_p
    assert not SignFlips.of(change_of(before, now, scale=Scale(0, float("inf")))).mid_p
    assert not SignFlips.of(change_of(before, now, [1.0] * 7 + [2.0])).mid_p


def test_as_many_heads_as_tails_of_very_many_coins() -> None:
    half = EXACT_COUNTS
    assert binomial_p_value(half, 2 * half, mid_p=True) == pytest.approx(0.5)
    assert binomial_p_value(half, 2 * half) == pytest.approx(scipy.stats.binom.sf(half - 1, 2 * half, 0.5))


@pytest.mark.parametrize("queries", [600, 5000])
def test_changes_of_very_many_sizes_have_the_tail_of_a_normal_sum(queries: int) -> None:
    dice = random.Random(queries)
    weights = [dice.lognormvariate(0, 1.0) for _ in range(queries)]
    differences = [dice.choice([-1, 1]) * dice.random() - 0.02 for _ in range(queries)]
    flips = SignFlips({number: -w * d for number, (w, d) in enumerate(zip(weights, differences, strict=True))})
    expected = float(scipy.stats.norm.sf(flips.statistic))
    found = adjust([flips], 0.05).tests[0].own
    assert found == pytest.approx(expected, abs=0.06 if expected > 0.2 else 0.012)


def test_where_lower_is_better_the_p_value_is_about_a_rise() -> None:
    before, now = [0.0] * 8 + [0.5], [0.5] * 8 + [0.25]
    rise, drop = (SignFlips.of(change_of(before, now, better=better)).exact_p_value for better in ("lower", "higher"))
    assert (rise, drop) == (2 / 2**9, 1.0 - 1 / 2**9)


def test_one_weight_that_outweighs_all_others_is_one_query() -> None:
    found = paired([1.0] * 20, [0.0] + [0.5] * 19, [1e9, *[1e-9] * 19])
    assert found.p_value == pytest.approx(0.5, abs=0.05)
