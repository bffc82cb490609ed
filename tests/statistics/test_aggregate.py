"""Means over queries."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.metrics.formulas import metrics_at
from ragcontract.model import GoldenQuery, QueryScore
from ragcontract.statistics.aggregate import Comparison, Group, by_tag, compare, groups_of, means
from tests.records import query

METRICS = metrics_at(5)[:2]
weights = st.floats(min_value=1e-9, max_value=1e9)  # what a golden row may have
scores = st.tuples(weights, st.floats(min_value=0, max_value=1))


def one(value: float) -> QueryScore:
    return QueryScore(ranks=(), forbidden_ranks=(), values=(value, 1.0))


def build(rows: list[tuple[float, float]]) -> tuple[list[GoldenQuery], dict[str, QueryScore]]:
    queries = [query(str(number), "A", weight=weight) for number, (weight, _) in enumerate(rows)]
    return queries, {str(number): one(value) for number, (_, value) in enumerate(rows)}


def test_a_mean_is_weighted() -> None:
    found = means(groups_of(*build([(3.0, 1.0), (1.0, 0.0), (1.0, 0.5)])), METRICS)
    assert found == pytest.approx({"mrr_at_5": 3.5 / 5, "recall_at_5": 1.0})


def test_small_whole_weights_are_as_exact_as_no_weights() -> None:
    assert means(groups_of(*build([(3.0, 1.0), (1.0, 0.5)])), METRICS)["mrr_at_5"] == 0.875


def test_unanswerable_queries_are_left_out() -> None:
    queries, found = build([(1.0, 0.5)])
    unanswerable = query("none", weight=9.0)
    found["none"] = QueryScore(ranks=(), forbidden_ranks=(), values=())
    assert means(groups_of([unanswerable, *queries], found), METRICS) == {"mrr_at_5": 0.5, "recall_at_5": 1.0}


def test_without_an_answerable_query_there_is_no_mean() -> None:
    scores = {"none": QueryScore(ranks=(), forbidden_ranks=(), values=())}
    assert means(groups_of([query("none")], scores), METRICS) == {
        "mrr_at_5": None,
        "recall_at_5": None,
    }


@given(st.lists(scores, min_size=1, max_size=30))
def test_a_mean_is_what_exact_arithmetic_gives(rows: list[tuple[float, float]]) -> None:
    exact = sum(Fraction(weight) * Fraction(value) for weight, value in rows) / sum(Fraction(w) for w, _ in rows)
    assert means(groups_of(*build(rows)), METRICS)["mrr_at_5"] == pytest.approx(float(exact), abs=1e-12)


@given(st.lists(scores, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_order_of_the_queries_changes_nothing(rows: list[tuple[float, float]], random: object) -> None:
    queries, found = build(rows)
    shuffled = list(queries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert means(groups_of(shuffled, found), METRICS) == means(groups_of(queries, found), METRICS)


@given(st.lists(scores, min_size=1, max_size=30))
def test_a_mean_lies_between_the_smallest_and_the_largest(rows: list[tuple[float, float]]) -> None:
    found = means(groups_of(*build(rows)), METRICS)["mrr_at_5"]
    assert found is not None
    assert min(value for _, value in rows) - 1e-12 <= found <= max(value for _, value in rows) + 1e-12
    assert 0 <= found <= 1


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=30), st.floats(min_value=1e-5, max_value=1e5))
def test_equal_weights_of_any_size_are_no_weights(values: list[float], weight: float) -> None:
    weighted = means(groups_of(*build([(weight, value) for value in values])), METRICS)
    assert weighted == pytest.approx(means(groups_of(*build([(1.0, value) for value in values])), METRICS), abs=1e-12)


def test_queries_that_fared_alike_are_counted_whether_they_share_a_score_or_not() -> None:
    queries = [query(name, "A", tags=("t",)) for name in "abcd"] + [query("e", "A", weight=2.0)]
    shared = one(0.5)
    now = {"a": shared, "b": shared, "c": one(0.5), "d": one(0.25), "e": shared}
    before = {"a": one(1.0), "b": one(1.0), "c": one(1.0), "d": one(1.0)}
    assert groups_of(queries, now, before) == [
        Group(("t",), 1.0, (0.5, 1.0), (1.0, 1.0), 3),
        Group(("t",), 1.0, (0.25, 1.0), (1.0, 1.0), 1),
        Group((), 2.0, (0.5, 1.0), None, 1),
    ]


def test_kinds_are_grouped_by_each_of_their_tags_in_the_tags_order() -> None:
    queries = [query("q1", "A", tags=("z", "a")), query("q2", "A", tags=("a",)), query("q3", "A")]
    both, one_tag, _ = groups = groups_of(queries, dict.fromkeys(["q1", "q2", "q3"], one(0.5)))
    assert list(by_tag(groups).items()) == [("a", [both, one_tag]), ("z", [both])]


def test_a_change_is_taken_over_the_shared_queries() -> None:
    assert Comparison(current=0.9, current_shared=0.5, baseline=0.75).delta == -0.25
    assert Comparison(current=0.9, current_shared=None, baseline=0.75).delta is None
    assert Comparison(current=0.9).delta is None


@pytest.mark.parametrize("shares", [(6, 14), (1, 2), (3, 100), (7, 7)])
def test_means_that_are_equal_are_equal_to_the_last_digit_however_queries_are_counted(shares: tuple[int, int]) -> None:
    moved, still = shares
    queries = [query(str(number), "A", weight=0.1) for number in range(2 * moved + still)]
    now = [0.5] * moved + [1.0] * moved + [0.5] * still
    before = [1.0] * moved + [0.5] * moved + [0.5] * still
    sides = [{str(number): one(value) for number, value in enumerate(side)} for side in (now, before)]
    compared = compare(groups_of(queries, sides[0], sides[1]), METRICS)["mrr_at_5"]
    assert compared.current_shared == compared.baseline


@given(st.lists(scores, min_size=1, max_size=10), st.integers(1, 100))
def test_a_count_is_so_many_queries_to_the_last_digit(rows: list[tuple[float, float]], times: int) -> None:
    groups = groups_of(*build(rows))
    counted = [msgspec.structs.replace(kind, count=kind.count * times) for kind in groups]
    one_by_one = [kind for kind in groups for _ in range(kind.count * times)]
    each = [msgspec.structs.replace(kind, count=1) for kind in one_by_one]
    assert means(counted, METRICS) == means(each, METRICS)
