"""The bounds of a change: how often they hold, and what they are at the edges."""

import random
from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from benchmarks import coverage
from ragcontract.core.metric import Scale
from ragcontract.statistics.sign_flips import Change, Weights
from ragcontract.statistics.significance import change_bounds, exceeded_by
from tests.statistics.paired_runs import change_of

Z = exceeded_by(0.05)


def bounds_of(change: Change) -> tuple[float, float]:
    return change_bounds(change, Z, Z)


@pytest.mark.parametrize("weights", coverage.WEIGHTS)
@pytest.mark.parametrize(
    ("metric", "queries", "churn", "lost"),
    [("MRR", 30, 0.3, 0.12), ("Recall", 100, 0.1, 0.06), ("nDCG", 100, 0.3, 0.0)],
)
def test_each_bound_holds_as_often_as_it_says(
    metric: str, queries: int, churn: float, lost: float, weights: str
) -> None:
    case = coverage.Case(queries=queries, weights=weights, metric=metric, churn=churn, lost=lost)
    held = coverage.measure(case, 1_500)
    assert held.lower == pytest.approx(0.95, abs=0.03)
    assert held.upper == pytest.approx(0.95, abs=0.03)


def test_the_true_change_of_the_model_is_what_it_says() -> None:
    for metric in coverage.METRICS:
        case = coverage.Case(queries=20_000, weights="equal", metric=metric, churn=0.1, lost=0.12)
        before, now, true = coverage.pair(case, random.Random(1))
        assert (sum(before) - sum(now)) / 20_000 == pytest.approx(true, abs=0.008)


def test_an_identical_run_has_no_bounds_but_0() -> None:
    assert bounds_of(change_of([0.5] * 20, [0.5] * 20)) == (0.0, 0.0)


def test_a_metric_that_stood_still_while_others_changed_is_as_sure_as_one_query_better_and_one_worse() -> None:
    still = replace(change_of([0.5] * 48, [0.5] * 48), identical=False)
    assert bounds_of(still) == pytest.approx((-Z * sqrt(2) / 50, Z * sqrt(2) / 50))
    assert bounds_of(replace(still, scale=Scale(0, 10)))[1] == pytest.approx(10 * Z * sqrt(2) / 50)
    assert bounds_of(replace(still, scale=Scale(0, inf))) == (0.0, 0.0)


def test_where_all_queries_changed_by_the_same_the_bounds_have_a_width() -> None:
    low, high = bounds_of(change_of([1.0] * 5, [0.5] * 5))
    # By hand: of six losses of 0.5 and a win, the mean is 2.5/7 and the mean square 0.25.
    error = sqrt((0.25 - (2.5 / 7) ** 2) / 7)
    assert (low, high) == pytest.approx((2.5 / 7 - Z * error, 2.5 / 7 + Z * error))


def test_losses_that_are_rare_and_large_leave_more_room_for_a_larger_drop_than_for_none() -> None:
    low, high = bounds_of(change_of([1.0] * 100, [0.0] * 8 + [1.0] * 92))
    assert high - 0.08 > 0.08 - low > 0


def test_bounds_end_where_the_scale_does() -> None:
    changed = change_of([1.0] * 3, [0.0] * 3)
    assert bounds_of(changed)[1] == 1.0
    assert bounds_of(replace(changed, scale=Scale(0, 2)))[1] > 1.0


def test_no_queries_have_no_change() -> None:
    assert bounds_of(Change(changed={}, weights=Weights.of([]))) == (0.0, 0.0)


def test_a_few_heavy_queries_that_did_not_change_do_not_make_a_change_sure() -> None:
    before, now = [1.0] * 40, [1.0] * 30 + [0.5] * 10
    equal, heavy = (bounds_of(change_of(before, now, weights)) for weights in ([1.0] * 40, [30.0] * 3 + [1.0] * 37))
    share = 10 * 0.5 / 127
    assert heavy[1] - share > equal[1] - 0.125


values = st.sampled_from([0.0, 0.2, 0.25, 1 / 3, 0.5, 2 / 3, 1.0])
rows = st.lists(st.tuples(values, values, st.sampled_from([0.25, 1.0, 1.5, 7.0, 1e6])), min_size=1, max_size=40)


@given(rows, st.sampled_from([1e-9, 3.0, 1e3]), st.randoms(use_true_random=False))
def test_bounds_hold_the_observed_change_mirror_it_and_ignore_order_and_scale_of_weights(
    data: list[tuple[float, float, float]], factor: float, dice: random.Random
) -> None:
    before, now, weights = (list(column) for column in zip(*data, strict=True))
    low, high = bounds_of(change_of(before, now, weights))
    drop = sum(w * (b - a) for b, a, w in data) / sum(weights)
    assert -1 <= low <= drop + 1e-9
    assert drop - 1e-9 <= high <= 1
    assert bounds_of(change_of(now, before, weights)) == pytest.approx((-high, -low), abs=1e-9)
    dice.shuffle(data)
    before, now, weights = (list(column) for column in zip(*data, strict=True))
    assert bounds_of(change_of(before, now, [w * factor for w in weights])) == pytest.approx((low, high), abs=1e-9)
