"""The level of a series and the deviation of a run's mean, against numpy."""

import random
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.statistics.levels import LEVEL_RUNS, level, sigma

series = st.lists(st.floats(0, 1), min_size=LEVEL_RUNS, max_size=40)


def means_by_numpy(values: list[float], runs: int = LEVEL_RUNS) -> np.ndarray:
    """Return the means of all consecutive runs."""
    means: np.ndarray = np.lib.stride_tricks.sliding_window_view(np.asarray(values), runs).mean(axis=1)
    return means


@given(series, st.integers(1, LEVEL_RUNS))
def test_a_level_is_the_largest_moving_mean(values: list[float], runs: int) -> None:
    best = level(values, "higher", runs)
    assert best is not None
    assert best.value == pytest.approx(means_by_numpy(values, runs).max(), abs=1e-9)
    assert best.value == pytest.approx(np.mean(values[best.start : best.stop]), abs=1e-12)
    assert best.runs == runs


@given(series)
def test_where_lower_is_better_it_is_the_smallest_moving_mean(values: list[float]) -> None:
    best = level(values, "lower")
    assert best is not None
    assert best.value == pytest.approx(means_by_numpy(values).min(), abs=1e-9)


def test_of_equally_good_levels_the_last_is_taken_even_if_rounding_differs() -> None:
    for values in ([0.3, 0.1, 0.2, 0.0, 0.2, 0.1, 0.3], [0.3, 0.3, 0.3, 0.0, *[0.3 - 1e-12] * 3]):
        best = level(values, runs=3)
        assert best is not None
        assert (best.start, best.stop) == (4, 7)
        assert best.value == pytest.approx(np.mean(values[:3]))


@pytest.mark.parametrize("value", [0.1, 0.7, 1 / 3, 0.8437, 123.456])
def test_a_retriever_without_noise_is_exactly_at_its_level(value: float) -> None:
    best = level([value] * 30)
    assert best is not None
    assert best.value == value
    assert sigma([value] * 30) == 0


@given(st.floats(0, 1), st.integers(LEVEL_RUNS, 100))
def test_the_level_of_equal_runs_is_their_value(value: float, runs: int) -> None:
    best = level([value] * runs)
    assert best is not None
    assert best.value == value


def test_four_runs_have_no_level() -> None:
    assert level([0.8] * 4) is None
    assert level([]) is None


@pytest.mark.parametrize("bad", [nan, inf, -inf, 1e308, -1e10])
def test_a_value_that_no_score_has_is_refused_with_its_position(bad: float) -> None:
    values = [0.5] * 6 + [bad]
    with pytest.raises(ValueError, match="run 6 of the series"):
        level(values)
    with pytest.raises(ValueError, match="run 6 of the series"):
        sigma(values)


def test_a_level_of_no_runs_is_refused() -> None:
    with pytest.raises(ValueError, match="a level of 0 runs"):
        level([0.5], runs=0)


@given(series)
def test_sigma_is_the_deviation_of_a_sample(values: list[float]) -> None:
    assert sigma(values) == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_sigma_is_pooled_over_the_parts_between_change_points() -> None:
    dice = random.Random(1)
    parts = [[dice.gauss(center, 1) for _ in range(runs)] for center, runs in ((0, 10), (-8, 20), (3, 5))]
    squares = sum(((np.asarray(part) - np.mean(part)) ** 2).sum() for part in parts)
    values = [value for part in parts for value in part]
    assert sigma(values, [10, 30]) == pytest.approx((squares / (35 - 3)) ** 0.5)
    plain = sigma(values)
    assert plain is not None
    assert plain > 4


def test_a_step_without_noise_leaves_a_sigma_of_0() -> None:
    assert sigma([0.8] * 10 + [0.7] * 10, [10]) == 0


@pytest.mark.parametrize(
    ("runs", "splits", "known"), [(4, (), False), (5, (), True), (6, (3,), True), (5, (3,), False)]
)
def test_too_few_runs_have_no_sigma(runs: int, splits: tuple[int, ...], known: bool) -> None:
    assert (sigma([0.1 * run for run in range(runs)], splits) is not None) == known


@pytest.mark.parametrize("splits", [(0,), (10,), (11,), (-1,), (4, 4), (5, 3)])
def test_splits_outside_the_series_or_out_of_order_are_refused(splits: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cannot be split at"):
        sigma([0.1] * 10, splits)
