import random
import time
from collections.abc import Sequence
from math import sqrt

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcontract.core.metric import Scale
from ragcontract.statistics.significance import (
    SAMPLES,
    Noise,
    Weights,
    _interval,
    benjamini_hochberg,
    fewest_changed,
    holm,
    noise,
)
from tests.statistics.paired_runs import paired
from tests.work import work

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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("changed", [5, 8, 12, 16])
@pytest.mark.parametrize("seed", range(5))
def test_few_changes_are_tested_exactly_as_scipy_does(seed: int, changed: int, weighted: bool) -> None:
    data = columns(seed, 40, changed, weighted=weighted)
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
    samples = SAMPLES if ours < 0.2 else SAMPLES / 10
    error = sqrt(max(theirs, 1 / THEIRS) * (1 - theirs) * (1 / samples + 1 / THEIRS))
    assert ours == pytest.approx(theirs, abs=4 * error + 2 / samples)


@pytest.mark.parametrize(("losses", "wins"), [(65, 35), (30, 10), (900, 800), (40, 0)])
def test_changes_of_one_size_are_a_sign_test(losses: int, wins: int) -> None:
    before, now = [1.0] * losses + [0.0] * wins, [0.0] * losses + [1.0] * wins
    expected = scipy.stats.binomtest(losses, losses + wins, alternative="greater").pvalue
    ours = paired(before, now, [1.0] * len(now)).p_value
    assert ours == pytest.approx(expected, abs=4 * sqrt(expected / SAMPLES) + 2 / SAMPLES)


@pytest.mark.parametrize("queries", [600, 5000])
def test_a_sum_that_is_partly_sampled_as_normal_has_the_right_tail(queries: int) -> None:
    dice = random.Random(queries)
    weights = [dice.lognormvariate(0, 1.5) for _ in range(queries)]
    differences = [dice.choice([-1, 1]) * dice.random() for _ in range(queries)]
    # Shifted to where the exact tail of the sum is known well: by the normal distribution, for it has many like terms.
    contributions = np.asarray(weights) * differences
    spread = sqrt(float(np.sum(contributions**2)))
    before = [max(0.0, -d) for d in differences]
    now = [max(0.0, d) for d in differences]
    expected = float(scipy.stats.norm.cdf(contributions.sum() / spread))
    assert paired(before, now, weights).p_value == pytest.approx(expected, abs=0.06 if expected > 0.2 else 0.012)


def test_a_hundred_thousand_queries_take_little_time() -> None:
    data = columns(3, 100_000, 10_000, weighted=True, fine=True)
    start = time.process_time()
    paired(*data)
    assert time.process_time() - start < 1  # 0.15 s on an ordinary machine


def test_queries_that_got_better_and_worse_are_counted() -> None:
    found = paired([0.5, 0.5, 0.5, 1 - 2 / 3], [1.0, 0.0, 0.25, 1 / 3], [1.0, 1.0, 1.0, 1.0])
    assert (found.wins, found.ties, found.losses) == (1, 1, 2)


@pytest.mark.parametrize("changed", range(8))
def test_fewer_than_five_changes_are_too_few_to_say(changed: int) -> None:
    found = paired([1.0] * 50, [0.0] * changed + [1.0] * (50 - changed), [1.0] * 50)
    assert found.losses == changed
    assert found.p_value == (None if changed < 5 else 0.5**changed)
    assert (found.interval is None) == (changed < 5)


def test_no_queries_are_too_few_too() -> None:
    assert paired([], [], []).p_value is None


@pytest.mark.parametrize(("alpha", "tests", "changed"), [(0.05, 1, 5), (0.05, 4, 7), (0.0625, 1, 4), (0.01, 1, 7)])
def test_the_fewest_changes_that_can_be_significant(alpha: float, tests: int, changed: int) -> None:
    assert fewest_changed(alpha, tests) == changed
    p_values = dict.fromkeys(map(str, range(tests)), 0.5**changed)
    assert all(holm(p_values, alpha).values())
    assert not any(holm(dict.fromkeys(p_values, 0.5 ** (changed - 1)), alpha).values())


rows = st.lists(
    st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES), st.sampled_from([0.25, 1.0, 1.5, 7.0])),
    min_size=1,
    max_size=40,
)


def unzipped(data: Sequence[tuple[float, float, float]]) -> Columns:
    before, now, weights = (list(column) for column in zip(*data, strict=True))
    return before, now, weights


@settings(deadline=None)
@given(rows)
def test_a_p_value_is_a_probability_and_an_interval_holds_the_change(data: list[tuple[float, float, float]]) -> None:
    before, now, weights = unzipped(data)
    found = paired(before, now, weights)
    assert found.wins + found.ties + found.losses == len(data)
    if found.p_value is None or found.interval is None:
        assert found.wins + found.losses < 5
        return
    assert 0 < found.p_value <= 1
    low, high = found.interval
    change = sum(w * (b - a) for a, b, w in data) / sum(weights)
    assert -1 <= low <= change + 1e-12
    assert change - 1e-12 <= high <= 1


@settings(deadline=None)
@given(rows)
def test_swapping_the_runs_mirrors_everything(data: list[tuple[float, float, float]]) -> None:
    before, now, weights = unzipped(data)
    there, back = paired(before, now, weights), paired(now, before, weights)
    assert (there.wins, there.losses) == (back.losses, back.wins)
    if there.interval is None or back.interval is None or there.p_value is None or back.p_value is None:
        assert there.p_value is back.p_value is None
        return
    assert there.interval == pytest.approx((-back.interval[1], -back.interval[0]))
    assert there.p_value + back.p_value > (1 if there.wins + there.losses <= 16 else 0.9)


@settings(deadline=None)
@given(rows, st.sampled_from([1e-9, 0.1, 3.0, 1e9]), st.randoms(use_true_random=False))
def test_neither_the_scale_of_the_weights_nor_the_order_of_the_queries_matters(
    data: list[tuple[float, float, float]], scale: float, dice: random.Random
) -> None:
    expected = paired(*unzipped(data))
    dice.shuffle(data)
    before, now, weights = unzipped(data)
    got = paired(before, now, [weight * scale for weight in weights])
    assert got.p_value == expected.p_value
    assert got.interval == (expected.interval and pytest.approx(expected.interval))


def test_one_weight_that_outweighs_all_others_is_one_query() -> None:
    found = paired([1.0] * 20, [0.0] + [0.5] * 19, [1e9, *[1e-9] * 19])
    assert found.p_value == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("queries", "churn", "worse"), [(30, 0.3, 0.5), (50, 0.3, 0.8), (200, 0.1, 0.7)])
def test_the_interval_covers_the_true_change(queries: int, churn: float, worse: float, weighted: bool) -> None:
    dice, repeats = random.Random(queries), 2000
    steps = (0.25, 0.5, 0.5, 1.0)
    truth = churn * (1 - 2 * worse) * sum(steps) / len(steps)
    covered = 0
    for _ in range(repeats):
        differences = [0.0] * queries
        for location in range(queries):
            if dice.random() < churn:
                differences[location] = dice.choice(steps) * (-1 if dice.random() < worse else 1)
        weights = [dice.choice([0.5, 1.0, 3.0]) if weighted else 1.0 for _ in range(queries)]
        changed = [(w, d) for w, d in zip(weights, differences, strict=True) if d]
        low, high = _interval(changed, Weights.of(weights), 1.0)
        covered += low <= truth <= high
    assert 0.93 <= covered / repeats <= 0.98


def test_an_interval_has_a_width_where_all_queries_changed_by_the_same() -> None:
    interval = paired([1.0] * 5, [0.0] * 5, [1.0] * 5).interval
    assert interval is not None
    # By hand: of six losses and a win, the mean is -5/7 and the mean square 1.
    assert interval[0] == -1.0
    assert interval[1] == pytest.approx(-5 / 7 + 1.959964 * sqrt((1 - (5 / 7) ** 2) / 7))


def test_where_lower_is_better_a_rise_is_what_the_p_value_is_about() -> None:
    weights, changes = Weights.of([1.0] * 20), [(1.0, 0.5)] * 8 + [(1.0, -0.25)]
    rise, drop = noise(changes, weights, better="lower"), noise(changes, weights)
    assert (rise.wins, rise.ties, rise.losses) == (1, 11, 8)
    assert (drop.wins, drop.ties, drop.losses) == (8, 11, 1)
    assert rise.interval == drop.interval
    assert (rise.p_value, drop.p_value) == (2 / 2**9, 1.0 - 1 / 2**9)
    mirrored = noise([(weight, -change) for weight, change in changes], weights)
    assert mirrored.p_value == rise.p_value


def test_an_interval_ends_where_the_scale_does() -> None:
    weights, changes = Weights.of([1.0] * 6), [(1.0, -1.0)] * 6
    one, ten = noise(changes, weights).interval, noise(changes, weights, scale=Scale(0, 10)).interval
    assert one is not None
    assert ten is not None
    assert (one[0], one[1]) == (-1.0, ten[1])
    assert -10 < ten[0] < -1


def test_holm_steps_down_until_one_is_not_significant() -> None:
    # Limits 0.05/4, 0.05/3, 0.05/2, 0.05: the third is above, and so the fourth does not count.
    assert holm({"d": 0.04, "a": 0.0125, "c": 0.026, "b": 0.0166}, 0.05) == {
        "d": False,
        "a": True,
        "c": False,
        "b": True,
    }
    assert holm({}, 0.05) == {}
    assert holm({"a": 0.05}, 0.05) == {"a": True}


def test_benjamini_hochberg_by_hand() -> None:
    # 0.01 * 4/1, 0.02 * 4/2, 0.04 * 4/3 and 0.05 * 4/4; the third comes to more than the fourth.
    adjusted = benjamini_hochberg({"w": 0.05, "x": 0.01, "y": 0.04, "z": 0.02})
    assert adjusted == pytest.approx({"w": 0.05, "x": 0.04, "y": 0.05, "z": 0.04})
    assert list(adjusted) == ["w", "x", "y", "z"]
    assert benjamini_hochberg({}) == {}


@given(st.lists(st.floats(1e-5, 1), min_size=1, max_size=30))
def test_benjamini_hochberg_agrees_with_scipy(values: list[float]) -> None:
    ours = benjamini_hochberg({str(location): value for location, value in enumerate(values)})
    assert list(ours.values()) == pytest.approx(list(scipy.stats.false_discovery_control(values)))


def test_the_same_changes_are_sampled_once() -> None:
    changes = [(1.0 + number / 997, 0.5 if number % 100 < 47 else -0.5) for number in range(300)]
    weights = Weights.of([weight for weight, _ in changes])
    found: list[Noise] = []
    first, second = (work(lambda: found.append(noise(changes, weights))) for _ in range(2))
    assert found[0] == found[1]
    assert found[0].p_value is not None
    assert second < first / 5
