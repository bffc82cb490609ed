"""Percentiles by nearest rank."""

from array import array
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.run import Latency
from ragcontract.statistics.means import nearest_rank, summary


@pytest.mark.parametrize(
    ("percent", "rank"), [(1, 1), (5, 1), (6, 2), (50, 10), (51, 11), (94, 19), (95, 19), (96, 20), (100, 20)]
)
def test_of_20_values_the_95th_percentile_is_the_19th(percent: int, rank: int) -> None:
    assert nearest_rank(range(1, 21), percent) == rank


@given(st.lists(st.floats(min_value=0, max_value=1e308), min_size=1), st.integers(min_value=1, max_value=100))
def test_a_percentile_is_the_smallest_value_that_so_many_are_no_larger_than(values: list[float], percent: int) -> None:
    found = nearest_rank(sorted(values), percent)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)
    assert sum(value < found for value in values) * 100 < percent * len(values)
    assert found == sorted(values)[ceil(percent * len(values) / 100) - 1]


def test_a_summary_counts_what_was_measured_in_whatever_order() -> None:
    assert summary(array("d", [30, 10, 20])) == Latency(rows=3, p50_ms=20, p95_ms=30, max_ms=30)
    assert summary(array("d", [0.0])) == Latency(rows=1, p50_ms=0, p95_ms=0, max_ms=0)
    assert summary(array("d")) is None
