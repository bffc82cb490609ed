"""Change points, against an exhaustive search and an independent simulation; tests/oracles asks ruptures as well."""

import random
from collections.abc import Sequence
from math import comb, inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.statistics.change_points import (
    ALPHA,
    LEAST_RUNS,
    PERMUTATIONS,
    autocorrelation,
    best_split,
    block_length,
    change_points,
    noise_splits,
    permutation_p_value,
    steps_without_noise,
)


def steps(seed: object, *levels: tuple[float, int], noise: float = 1.0) -> list[float]:
    """Make up runs at each of the levels, in this order."""
    dice = random.Random(f"{seed}")
    return [dice.gauss(center, noise) if noise else center for center, runs in levels for _ in range(runs)]


def positions(values: Sequence[float]) -> list[int]:
    return [point.position for point in change_points(values)]


def squares(values: Sequence[float]) -> float:
    """Return the sum of squared differences from the mean."""
    return float(np.var(values) * len(values))


@given(st.lists(st.floats(0, 1).map(lambda value: round(value, 3)), min_size=6, max_size=40))
def test_the_best_split_leaves_the_smallest_squares(values: list[float]) -> None:
    left = {t: squares(values[:t]) + squares(values[t:]) for t in range(3, len(values) - 2)}
    split = best_split(values)
    if split is None:
        assert len(set(values)) == 1
    else:
        assert left[split.position] == pytest.approx(min(left.values()), abs=1e-9)
        assert split.statistic**2 == pytest.approx(squares(values) - min(left.values()), abs=1e-9)


def gains(rows: np.ndarray) -> np.ndarray:
    """Return what the best split of each row takes off its squares, from sums of squares, as in textbooks."""
    n = rows.shape[1]
    sums, sides = np.cumsum(rows, axis=1)[:, 2 : n - 3], np.arange(3, n - 2)
    rest, whole = rows.sum(axis=1, keepdims=True) - sums, rows.sum(axis=1) ** 2 / n
    gain: np.ndarray = (sums**2 / sides + rest**2 / (n - sides)).max(axis=1) - whole
    return gain


def p_value_by_numpy(values: Sequence[float], orders: int) -> float:
    """Simulate the p-value of the best split of independent values."""
    shuffled = np.random.default_rng(1).permuted(np.tile(np.asarray(values), (orders, 1)), axis=1)
    return float((gains(shuffled) >= gains(np.asarray([values]))[0] - 1e-9).mean())


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(steps(1, (0, 40)), id="noise"),
        pytest.param(steps(22, (0, 20), (0.8, 20)), id="half visible"),
        pytest.param(steps(3, (0, 15), (1.2, 7)), id="short"),
        pytest.param([round(value) / 25 for value in steps(44, (20, 15), (21, 15))], id="ties"),
        pytest.param([0.8] * 20 + [0.9] * 3, id="two values"),
    ],
)
def test_the_p_value_is_that_of_an_independent_simulation(values: list[float]) -> None:
    split = best_split(values)
    assert split is not None
    assert block_length(autocorrelation(values, noise_splits(values, split.position))) == 1
    theirs = p_value_by_numpy(values, 40_000)
    error = (theirs * (1 - theirs) / PERMUTATIONS) ** 0.5
    # Four standard errors, and the observed order, which counts as a hit.
    assert permutation_p_value(values, alpha=1) == pytest.approx(theirs, abs=4 * error + 1 / PERMUTATIONS)


def test_the_p_value_of_a_step_of_two_values_is_that_of_counting() -> None:
    # Of all places that three low runs may have, only the first three and the last three are as good.
    values = [0.8] * 20 + [0.7] * 3
    exact = 2 / comb(23, 3)
    error = (exact / PERMUTATIONS) ** 0.5
    assert permutation_p_value(values, alpha=1) == pytest.approx(exact, abs=4 * error + 1 / PERMUTATIONS)


def test_stopping_early_changes_no_decision() -> None:
    for seed in range(30):
        values = steps(seed, (0, 20), (seed / 10, 10))
        whole = permutation_p_value(values, alpha=1)
        assert whole is not None
        for alpha in (0.001, 0.01, 0.1):
            assert permutation_p_value(values, alpha=alpha) == (whole if whole <= alpha else None)


def test_planted_steps_are_found_with_the_levels_on_both_sides() -> None:
    values = steps(5, (0.84, 60), (0.80, 60), (0.74, 60), noise=0.004)
    points = change_points(values)
    assert [point.position for point in points] == [60, 120]
    assert [point.before for point in points] == pytest.approx([np.mean(values[:60]), np.mean(values[60:120])])
    assert [point.after for point in points] == pytest.approx([np.mean(values[60:120]), np.mean(values[120:])])
    assert all(point.p_value and 1 / (PERMUTATIONS + 1) <= point.p_value <= ALPHA for point in points)


@pytest.mark.parametrize("levels", [(0.84, 0.80, 0.70), (0.84, 0.74, 0.70), (0.60, 0.70, 0.74), (0.60, 0.64, 0.74)])
def test_both_sides_of_the_largest_step_are_searched(levels: tuple[float, ...]) -> None:
    assert positions(steps(9, *((level, 30) for level in levels), noise=0.004)) == [30, 60]


def test_parts_of_fewer_than_twelve_runs_are_not_split() -> None:
    short, long = steps(10, (0, 40), (20, 5), (24, 5), noise=0.5), steps(10, (0, 40), (20, 7), (24, 7), noise=0.5)
    assert [point.position for point in change_points(short, alpha=0.05)] == [40]
    assert [point.position for point in change_points(long, alpha=0.05)] == [40, 47]


def test_the_same_values_have_the_same_points_in_any_unit() -> None:
    values = steps(6, (0, 30), (2, 30))
    assert positions(values) == positions([100 * value - 7 for value in values]) != []
    assert change_points(values) == change_points(tuple(values))


@pytest.mark.parametrize("runs", [0, 1, 5, LEAST_RUNS - 1])
def test_short_series_have_no_points(runs: int) -> None:
    assert change_points([0.0] * (runs // 2) + [1.0] * (runs - runs // 2)) == ()


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e6])
def test_equal_values_have_no_points(value: float) -> None:
    assert change_points([value] * 100) == ()
    assert best_split([value] * 100) is None


def test_values_that_differ_by_rounding_have_no_points() -> None:
    assert change_points([0.3] * 20 + [0.1 + 0.2] * 20) == ()


@pytest.mark.parametrize("after", [1, 2])
def test_fewer_than_three_runs_after_a_step_are_no_change_yet(after: int) -> None:
    assert change_points([0.8] * 40 + [0.5] * after) == ()


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        pytest.param([0.8] * 9 + [0.7] * 3, [9], id="three runs after the step"),
        pytest.param([0.8] * 50 + [0.7999] * 3, [50], id="a small step"),
        pytest.param([0.8] * 25 + [0.7] * 10 + [0.8] * 25, [25, 35], id="a drop that was repaired"),
        pytest.param(([0.8] * 15 + [0.7] * 15) * 2, [15, 30, 45], id="again and again"),
        pytest.param([0.8] * 10 + [0.7] * 10 + [0.8] * 2, [10], id="two runs after the last step"),
        pytest.param([0.8] * 10 + [0.7] + [0.8] * 10, [], id="a single bad run"),
        pytest.param([0.8] * 2 + [0.7] * 20, [], id="two runs before the step"),
        pytest.param([0.8] * 6 + [0.7] * 5, [], id="eleven runs"),
    ],
)
def test_a_series_without_noise_changes_where_its_values_do(values: list[float], changes: list[int]) -> None:
    assert positions(values) == changes
    assert all(point.p_value is None for point in change_points(values))


def test_a_step_with_a_single_bad_run_before_it_is_tested() -> None:
    (point,) = change_points([0.8] * 20 + [0.75] + [0.8] * 20 + [0.7] * 20)
    assert point.position == 41
    assert point.p_value is not None


@pytest.mark.parametrize("bad", [nan, inf, -inf, 1e308, -1e10])
def test_a_value_that_no_score_has_is_refused(bad: float) -> None:
    for ask in (change_points, best_split, permutation_p_value, steps_without_noise):
        with pytest.raises(ValueError, match="run 20 of the series"):
            ask([0.5] * 20 + [bad])


@pytest.mark.parametrize("splits", [[30], [10, 30]])
def test_autocorrelation_is_that_of_residuals_with_the_bias_of_each_mean_added(splits: list[int]) -> None:
    values = steps(7, (0, 30), (5, 20))
    parts = np.split(np.asarray(values), splits)
    residuals = np.concatenate([part - np.mean(part) for part in parts])
    plain = (residuals[1:] * residuals[:-1]).sum() / (residuals**2).sum()
    assert autocorrelation(values, splits) == pytest.approx(plain + len(parts) * (1 + 3 * max(plain, 0)) / 50)
    assert autocorrelation([0.8] * 10 + [0.7] * 10, [10]) == 0


@pytest.mark.parametrize(("correlation", "length"), [(-0.5, 1), (0.09, 1), (0.1, 3), (0.34, 3), (0.35, 5), (0.9, 5)])
def test_blocks_grow_with_the_correlation(correlation: float, length: int) -> None:
    assert block_length(correlation) == length


def test_a_series_with_fewer_than_eight_of_its_blocks_is_not_tested() -> None:
    # Each run has the value of the one before in every pair, so the residuals are correlated.
    long = [value for pair in steps(3, (0, 12), (9, 12)) for value in (pair, pair)]
    short = long[10:38]
    tested = [permutation_p_value(values, alpha=1) is not None for values in (long, short)]
    blocks = [
        block_length(autocorrelation(values, noise_splits(values, split.position)))
        for values in (long, short)
        if (split := best_split(values))
    ]
    assert blocks == [5, 5]
    assert tested == [True, False]


def test_steps_are_not_taken_for_autocorrelation() -> None:
    values = steps(3, (0, 30), (-6, 30), (0, 30), (-6, 30))
    split = best_split(values)
    assert split is not None
    splits = noise_splits(values, split.position)
    assert splits == [30, 60, 90]
    assert autocorrelation(values, [split.position]) > 0.5
    assert block_length(autocorrelation(values, splits)) == 1
    assert positions(values) == [30, 60, 90]


def test_a_short_series_is_noise_around_one_split() -> None:
    values = steps(3, (0, 8), (-6, 6), (0, 6))
    split = best_split(values)
    assert split is not None
    assert noise_splits(values, split.position) == [split.position]


@pytest.mark.parametrize("seed", range(5))
def test_slow_drift_is_noise_around_one_split(seed: int) -> None:
    values = drift(seed, 0.6)
    split = best_split(values)
    assert split is not None
    assert noise_splits(values, split.position) == [split.position]


def p_value_by_blocks(values: Sequence[float], block: int, orders: int) -> float:
    """Simulate the p-value of the best split from orders of blocks that start anywhere."""
    dice, rows = np.random.default_rng(1), []
    for cut in dice.integers(block, size=orders):
        blocks = np.split(np.asarray(values), range(cut or block, len(values), block))
        rows.append(np.concatenate([blocks[number] for number in dice.permutation(len(blocks))]))
    best = gains(np.asarray([values]))[0]
    return float((gains(np.asarray(rows)) >= best - 1e-9).mean())


def drift(seed: int, correlation: float) -> list[float]:
    dice, values = random.Random(seed), [0.0]
    for _ in range(59):
        values.append(correlation * values[-1] + dice.gauss(0, 1))
    return values


@pytest.mark.parametrize(("seed", "correlation", "block"), [(0, 0.8, 5), (8, 0.8, 5), (34, 0.4, 3)])
def test_neighbours_that_resemble_each_other_stay_together(seed: int, correlation: float, block: int) -> None:
    values = drift(seed, correlation)
    split = best_split(values)
    assert split is not None
    assert block_length(autocorrelation(values, noise_splits(values, split.position))) == block
    theirs = p_value_by_blocks(values, block, 10_000)
    error = (theirs * (1 - theirs) * (1 / PERMUTATIONS + 1 / 10_000)) ** 0.5
    assert permutation_p_value(values, alpha=1) == pytest.approx(theirs, abs=4 * error + 1 / PERMUTATIONS)
    assert theirs > 2 * p_value_by_numpy(values, 10_000)
