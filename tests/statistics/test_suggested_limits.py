import random
from itertools import pairwise
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.promises import kept
from benchmarks.retriever import NOISES
from ragcontract.core.metric import Metric, Scale
from ragcontract.statistics.suggested_limits import round_up, suggested

EVEN = [1.0] * 40


@pytest.mark.parametrize(("queries", "runs"), [(30, 2), (30, 3), (100, 5)])
@pytest.mark.parametrize("noise", NOISES)
def test_what_is_suggested_keeps_its_promises(noise: str, queries: int, runs: int) -> None:
    counted = kept((noise, queries, runs), trials=300)
    assert counted.failed / 300 <= 0.09  # promised are 0.05; three standard errors of 300 trials are 0.04
    assert counted.found / counted.could_be_found >= 0.73  # promised are 0.8
    assert counted.met / 600 >= 0.92  # promised are 0.95


def test_two_runs_by_hand() -> None:
    # Two of 40 queries differ by 1 between the runs: each has the variance 1/2 and the share 1/40.
    said = suggested([[1.0] * 40, [1.0] * 38 + [0.0] * 2], EVEN)
    assert said.mean == pytest.approx(1 - 1 / 40)
    assert said.deviation == pytest.approx((2 * 0.5) ** 0.5 / 40)
    # Two queries with one degree of freedom each: t of 2 degrees, and the error of a new run minus the mean of two.
    assert said.limit == round_up(2.919986 / 40 * 1.5**0.5)
    assert said.detectable == pytest.approx(said.limit + 0.8416 / 40 * 1.5**0.5, abs=1e-5)


def test_several_limits_share_the_one_in_twenty() -> None:
    runs = [[1.0] * 40, [1.0] * 38 + [0.0] * 2]
    alone, both = suggested(runs, EVEN), suggested(runs, EVEN, limits=2)
    assert both.limit == round_up(4.302653 / 40 * 1.5**0.5)
    assert alone.limit == round_up(2.919986 / 40 * 1.5**0.5)


def test_one_run_says_nothing_of_how_runs_vary() -> None:
    said = suggested([[1.0] * 40], EVEN)
    assert (said.mean, said.runs, said.deviation, said.detectable) == (1, 1, None, None)
    assert said.limit == 5 / 40 + 0.005  # the change of five queries, rounded up
    # Two of 42 queries are added, of which one found nothing: √2 times the root of 41/42³, and t of 39 degrees.
    unrounded = 1 - 2**0.5 * 1.684875 * (41 / 42**3) ** 0.5
    assert said.bound == 0.94 <= unrounded < 0.95


def test_runs_that_do_not_differ_may_lose_the_query_that_weighs_most() -> None:
    said = suggested([[1.0] * 40] * 3, EVEN)
    assert (said.deviation, said.limit) == (0, 0.025)
    said = suggested([[1.0] * 40] * 3, [1.0] * 39 + [11.0])
    assert said.limit == pytest.approx(11 / 50)


def test_known_good_runs_keep_the_minimum() -> None:
    assert suggested([[1.0] * 100, [1.0] * 80 + [0.0] * 20], [1.0] * 100).bound <= 0.8


def test_a_minimum_is_never_above_what_the_limit_on_a_drop_allows() -> None:
    runs = [[float(n % 2)] * 40 for n in range(2)]
    said = suggested(runs, EVEN)
    assert said.limit is None or said.bound <= said.mean - said.limit + 0.01


def test_more_queries_and_more_runs_allow_smaller_limits() -> None:
    def limit(queries: int, runs: int) -> float:
        dice = random.Random(f"{queries} {runs}")
        drawn = [[float(dice.random() < 0.95) for _ in range(queries)] for _ in range(runs)]
        return suggested(drawn, [1.0] * queries).limit or 1.0

    by_queries = [limit(queries, 3) for queries in (40, 400, 4000)]
    assert all(more < fewer for fewer, more in pairwise(by_queries))
    assert limit(100, 5) < limit(100, 2)


@pytest.mark.parametrize("runs", [[[0.0] * 10], [[0.0] * 10] * 2, [[1.0] * 4], [[1.0], [1.0]]])
def test_a_drop_that_no_run_can_reach_is_no_limit(runs: list[list[float]]) -> None:
    assert suggested(runs, [1.0] * len(runs[0])).limit is None


def test_without_queries_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="nothing to average"):
        suggested([[]], [])


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=7, max_size=7), min_size=1, max_size=4),
    st.lists(st.sampled_from([1e-3, 1.0, 2.5]), min_size=7, max_size=7),
    st.sampled_from([1e-6, 3.0, 1e300]),
)
def test_what_is_said_is_in_range_whatever_the_weights_scale(
    runs: list[list[float]], weights: list[float], scale: float
) -> None:
    said = suggested(runs, weights)
    assert 0 <= said.bound <= said.mean + 1e-9
    assert said.limit is None or 0 < said.limit <= 1
    assert said.detectable is None or said.limit is None or said.detectable >= said.limit
    scaled = suggested(runs, [weight * scale for weight in weights])
    assert (scaled.bound, scaled.deviation) == pytest.approx((said.bound, said.deviation))


SECONDS = Metric(key="seconds", label="Seconds", better="lower", scale=Scale(0, 20))


@given(st.lists(st.lists(st.sampled_from([n / 16 for n in range(17)]), min_size=7, max_size=7), min_size=2, max_size=4))
def test_a_metric_of_which_lower_is_better_is_mirrored_in_its_own_units(runs: list[list[float]]) -> None:
    weights = [1.0, 2.5, 1.0, 0.5, 1.0, 1.0, 3.0]
    points = suggested(runs, weights)
    in_seconds = [[20 - 20 * value for value in run] for run in runs]
    seconds = suggested(in_seconds, weights, SECONDS)
    assert seconds.mean == pytest.approx(20 - 20 * points.mean)
    assert seconds.deviation == pytest.approx(20 * (points.deviation or 0), abs=1e-6)
    if (seconds.limit is None) != (points.limit is None):  # one of them is as large as any drop once it is rounded up
        assert points.mean < 1.1 * (points.limit or (seconds.limit or 0) / 20)
    assert seconds.bound >= max(sum(map(mul, weights, run)) / 10 for run in in_seconds) - 1e-6
    assert seconds.bound <= 20


def test_a_maximum_is_rounded_up_and_a_limit_on_a_rise_is_in_the_metrics_units() -> None:
    said = suggested([[0.0] * 40], EVEN, SECONDS)
    # As with points, where it was 1 - 0.943947: 20 times as much, rounded up.
    assert (said.mean, said.bound, said.limit) == (0, 1.13, 2.5)


def test_a_scale_that_does_not_start_at_0_moves_the_mean_and_no_change() -> None:
    metric = Metric(key="score", label="Score", scale=Scale(-1, 1))
    values = [[1.0, 0.5, 0.5, 0.0] * 10, [1.0, 0.5, 0.5, 0.5] * 10]
    shares = suggested(values, EVEN)
    said = suggested([[2 * value - 1 for value in run] for run in values], EVEN, metric)
    assert (said.mean, said.deviation) == pytest.approx((2 * shares.mean - 1, 2 * (shares.deviation or 0)))
    assert said.limit == pytest.approx(2 * (shares.limit or 0), abs=0.01)
    assert said.bound == pytest.approx(2 * shares.bound - 1, abs=0.02)


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.0712, 0.072), (0.07, 0.07), (0.2, 0.2), (0.00331, 0.0034), (0.00001, 0.0001), (0, 0)]
)
def test_rounding_up_keeps_two_digits(value: float, rounded: float) -> None:
    assert round_up(value) == rounded
