"""The interval of a mean: it contains the mean, is never without width, and covers what it promises to."""

import random
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.metric import Scale
from ragcontract.statistics.significance import mean_interval

UNIT = Scale()
queries = st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 1), st.integers(1, 50)), min_size=1, max_size=30)


@given(queries)
def test_the_mean_is_in_its_interval_which_has_a_width_and_is_on_the_scale(
    found: list[tuple[float, float, int]],
) -> None:
    interval = mean_interval(found, UNIT)
    assert interval
    mean = sum(weight * value * count for weight, value, count in found) / sum(
        weight * count for weight, _, count in found
    )
    low, high = interval
    assert 0 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1
    assert high > low


def test_more_queries_make_it_narrower() -> None:
    few, many = mean_interval([(1, 0.0, 5), (1, 1.0, 5)], UNIT), mean_interval([(1, 0.0, 500), (1, 1.0, 500)], UNIT)
    assert few
    assert many
    assert many[1] - many[0] < (few[1] - few[0]) / 5


def test_it_is_that_of_agresti_and_coull_for_values_of_0_and_1() -> None:
    interval = mean_interval([(1, 1.0, 8), (1, 0.0, 2)], UNIT)  # their (8 + 1) / (10 + 2)
    assert interval
    middle, error = 9 / 12, 1.959963984540054 * (9 / 12 * 3 / 12 / 12) ** 0.5
    assert interval == (middle - error, middle + error)


def test_another_scale_only_stretches_it() -> None:
    unit = mean_interval([(1, 0.25, 3), (2, 0.5, 4)], UNIT)
    other = mean_interval([(1, 1.5, 3), (2, 2.0, 4)], Scale(1.0, 3.0))
    assert unit
    assert other == pytest.approx([1 + 2 * end for end in unit])


def test_without_queries_or_ends_of_the_scale_there_is_none() -> None:
    assert mean_interval([], UNIT) is None
    assert mean_interval([(1, 5.0, 3)], Scale(0.0, inf)) is None


def test_it_covers_the_true_mean_in_about_95_of_100_samples() -> None:
    dice = random.Random(5)
    covered, samples = 0, 2000
    for _ in range(samples):
        drawn = [(1.0, dice.choice((0.0, 0.5, 1.0, 1.0)), 1) for _ in range(25)]
        interval = mean_interval(drawn, UNIT)
        assert interval
        covered += interval[0] <= 0.625 <= interval[1]
    assert 0.93 <= covered / samples <= 0.98
