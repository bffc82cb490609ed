"""Means over queries."""

import random
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.metric import Metric, Scale
from ragcontract.statistics.means import Comparison, Group, Row, by_tag, compare, group, means

METRICS = [Metric(key="mrr_at_5", label="MRR@5"), Metric(key="recall_at_5", label="Recall@5")]
SECONDS = Metric(key="seconds", label="Seconds", better="lower", scale=Scale(0, 10))
weights = st.floats(min_value=1e-9, max_value=1e9)  # what a golden row may have
scores = st.tuples(weights, st.floats(min_value=0, max_value=1))


def row(value: float, weight: float = 1.0, *tags: str, before: float | None = None) -> Row:
    return tags, weight, (value, 1.0), None if before is None else (before, 1.0)


def build(pairs: list[tuple[float, float]]) -> list[Row]:
    """Return a row for each weight and value."""
    return [row(value, weight) for weight, value in pairs]


def test_a_mean_is_weighted() -> None:
    found = means(group(build([(3.0, 1.0), (1.0, 0.0), (1.0, 0.5)])), METRICS)
    assert found == pytest.approx({"mrr_at_5": 3.5 / 5, "recall_at_5": 1.0})


def test_small_whole_weights_are_as_exact_as_no_weights() -> None:
    assert means(group(build([(3.0, 1.0), (1.0, 0.5)])), METRICS)["mrr_at_5"] == 0.875


def test_queries_without_a_part_in_the_metrics_are_left_out() -> None:
    rows: list[Row] = [((), 9.0, (), None), row(0.5)]
    assert means(group(rows), METRICS) == {"mrr_at_5": 0.5, "recall_at_5": 1.0}


def test_where_no_query_has_the_metrics_there_is_no_mean() -> None:
    assert means(group([((), 1.0, (), None)]), METRICS) == {"mrr_at_5": None, "recall_at_5": None}
    assert means([], METRICS) == {"mrr_at_5": None, "recall_at_5": None}


@given(st.lists(scores, min_size=1, max_size=30))
def test_a_mean_is_what_exact_arithmetic_gives(rows: list[tuple[float, float]]) -> None:
    exact = sum(Fraction(weight) * Fraction(value) for weight, value in rows) / sum(Fraction(w) for w, _ in rows)
    assert means(group(build(rows)), METRICS)["mrr_at_5"] == pytest.approx(float(exact), abs=1e-12)


@given(st.lists(scores, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_queries_changes_nothing(rows: list[tuple[float, float]], random: random.Random) -> None:
    shuffled = build(rows)
    random.shuffle(shuffled)
    assert means(group(shuffled), METRICS) == means(group(build(rows)), METRICS)


@given(st.lists(scores, min_size=1, max_size=30))
def test_a_mean_lies_between_the_smallest_and_the_largest(rows: list[tuple[float, float]]) -> None:
    found = means(group(build(rows)), METRICS)["mrr_at_5"]
    assert found is not None
    assert min(value for _, value in rows) - 1e-12 <= found <= max(value for _, value in rows) + 1e-12
    assert 0 <= found <= 1


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=30), st.floats(min_value=1e-5, max_value=1e5))
def test_equal_weights_of_any_size_are_no_weights(values: list[float], weight: float) -> None:
    weighted = means(group(build([(weight, value) for value in values])), METRICS)
    assert weighted == pytest.approx(means(group(build([(1.0, value) for value in values])), METRICS), abs=1e-12)


def test_queries_with_the_same_tags_weight_and_values_are_counted() -> None:
    same = row(0.5, 1.0, "t", before=1.0)
    assert group([same, same, row(0.25, 1.0, "t", before=1.0), row(0.5, 2.0), same]) == [
        Group(("t",), 1.0, (0.5, 1.0), (1.0, 1.0), 3),
        Group(("t",), 1.0, (0.25, 1.0), (1.0, 1.0), 1),
        Group((), 2.0, (0.5, 1.0), None, 1),
    ]


def test_groups_are_sorted_by_each_of_their_tags() -> None:
    both, one_tag, _ = groups = group([row(0.5, 1.0, "z", "a"), row(0.5, 1.0, "a"), row(0.5)])
    assert list(by_tag(groups).items()) == [("a", [both, one_tag]), ("z", [both])]


def test_a_change_is_taken_over_the_shared_queries() -> None:
    assert Comparison(current=0.9, current_shared=0.5, baseline=0.75).delta == -0.25
    assert Comparison(current=0.9, current_shared=None, baseline=0.75).delta is None
    assert Comparison(current=0.9).delta is None


@pytest.mark.parametrize("shares", [(6, 14), (1, 2), (3, 100), (7, 7)])
def test_means_that_are_equal_are_equal_to_the_last_digit_however_queries_are_counted(shares: tuple[int, int]) -> None:
    moved, still = shares
    now = [0.5] * moved + [1.0] * moved + [0.5] * still
    before = [1.0] * moved + [0.5] * moved + [0.5] * still
    rows = [row(one, 0.1, before=other) for one, other in zip(now, before, strict=True)]
    compared = compare(group(rows), METRICS)["mrr_at_5"]
    assert compared.baseline is not None
    assert compared.current_shared == compared.baseline


@given(st.lists(scores, min_size=1, max_size=10), st.integers(1, 100))
def test_a_count_is_so_many_queries_to_the_last_digit(rows: list[tuple[float, float]], times: int) -> None:
    groups = group(build(rows))
    counted = [msgspec.structs.replace(one, count=one.count * times) for one in groups]
    each = [msgspec.structs.replace(one, count=1) for one in groups for _ in range(one.count * times)]
    assert means(counted, METRICS) == means(each, METRICS)


def test_each_side_is_averaged_over_the_queries_that_both_have() -> None:
    compared = compare(group([row(0.5, before=1.0), row(1.0), row(0.25, before=0.5)]), METRICS)
    assert compared["mrr_at_5"] == Comparison(current=1.75 / 3, current_shared=0.375, baseline=0.75)
    assert compare(group([row(0.5)]), METRICS)["mrr_at_5"] == Comparison(current=0.5)


def test_a_query_that_has_a_metric_on_one_side_only_is_not_compared() -> None:
    rows: list[Row] = [((), 1.0, (1.0,), ()), ((), 1.0, (0.5,), (0.25,)), ((), 1.0, (), (0.75,))]
    compared = compare(group(rows), METRICS[:1])["mrr_at_5"]
    assert compared == Comparison(current=0.75, current_shared=0.5, baseline=0.25)
