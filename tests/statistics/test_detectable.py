import random
from collections.abc import Sequence
from itertools import pairwise
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.metric import Metric, Scale
from ragcontract.statistics.detectable import detectable, round_up
from tests.statistics.paired_runs import paired

HIT = ([1.0, 0.0], [0.85, 0.15])
RANKS = ([1.0, 0.5, 1 / 3, 0.25, 0.2, 0.0], [0.6, 0.12, 0.06, 0.04, 0.03, 0.15])
Model = tuple[list[float], list[float]]


class Retriever:
    """Gives a share of its queries a new value each time it is asked, and loses some where it got worse."""

    def __init__(self, model: Model, *, queries: int, churn: float, seed: int) -> None:
        self._model, self._churn, self._dice = model, churn, random.Random(seed)
        self._usual = self._dice.choices(*model, k=queries)

    def run(self) -> list[float]:
        return [
            self._dice.choices(*self._model)[0] if self._dice.random() < self._churn else value for value in self._usual
        ]

    def worse_run(self, drop: float) -> list[float]:
        run = self.run()
        lower = [[0.0, *(other for other in run if other < value)] for value in sorted(set(run))]
        below = dict(zip(sorted(set(run)), lower, strict=True))
        rate = drop * len(run) / sum(value - sum(below[value]) / len(below[value]) for value in run)
        return [self._dice.choice(below[value]) if self._dice.random() < rate else value for value in run]


def drop_of(before: Sequence[float], now: Sequence[float]) -> float:
    return (sum(before) - sum(now)) / len(before)


@pytest.mark.parametrize("churn", [0.0, 0.05])
@pytest.mark.parametrize(("model", "queries"), [(HIT, 100), (HIT, 300), (RANKS, 40), (RANKS, 300)])
def test_noise_and_power_are_as_said(model: Model, queries: int, churn: float) -> None:
    retriever, weights, repeats = Retriever(model, queries=queries, churn=churn, seed=queries), [1.0] * queries, 200
    said = detectable([retriever.run() for _ in range(6)], weights)
    innocent = [drop_of(retriever.run(), retriever.run()) for _ in range(repeats)]
    assert sum(drop > said.noise for drop in innocent) / repeats <= 0.09
    pairs = [(retriever.run(), retriever.worse_run(said.found)) for _ in range(repeats)]
    assert 0.68 <= sum(drop_of(*pair) >= said.noise - 1e-9 for pair in pairs) / repeats <= 0.95
    failed = 0
    for before, now in pairs:
        p_value = paired(before, now, weights).p_value
        failed += drop_of(before, now) > said.change_limit and (p_value is None or p_value <= 0.05)
    assert failed / repeats >= 0.65


def test_one_run_in_which_all_is_found_by_hand() -> None:
    said = detectable([[1.0] * 40], [1.0] * 40)
    assert said.mean == 1
    assert said.noise == pytest.approx(5 / 40)  # five queries that lose all they have
    x = 5 + 0.8416**2 / 2
    assert said.found * 40 == pytest.approx(x + (x * x - 25) ** 0.5, abs=1e-3)
    # One of 42 queries found nothing: the variance is 41/42², and the standard error its root over 42's.
    assert said.mean - said.other_queries == pytest.approx(1.644854 * (41 / 42**3) ** 0.5)
    assert said.can_be_found
    assert said.bound == 0.96
    assert said.change_limit == 0.075


def test_known_good_runs_keep_what_is_proposed_for_them() -> None:
    runs = [[1.0] * 100, [1.0] * 80 + [0.0] * 20]
    said = detectable(runs, [1.0] * 100)
    assert said.bound <= 0.8
    assert said.change_limit == 0.2
    assert said.noise == pytest.approx(0.2)


def test_more_queries_tell_smaller_drops() -> None:
    found = [detectable([[1.0, 1.0, 0.5, 0.0] * n], [1.0] * 4 * n) for n in (5, 50, 500)]
    for fewer, more in pairwise(found):
        assert more.noise < fewer.noise
        assert more.found < fewer.found
        assert more.mean - more.other_queries < fewer.mean - fewer.other_queries


def test_unequal_weights_tell_less() -> None:
    values = [1.0, 1.0, 0.5, 0.0] * 10
    even, uneven = detectable([values], [1.0] * 40), detectable([values], [1.0] * 39 + [20.0])
    assert uneven.noise > even.noise


def test_nothing_found_has_nothing_to_lose() -> None:
    said = detectable([[0.0] * 10], [1.0] * 10)
    assert (said.mean, said.other_queries, said.noise, said.bound, said.change_limit) == (0, 0, 0, 0, 0)
    assert not said.can_be_found


def test_a_few_queries_cannot_show_even_the_loss_of_all() -> None:
    assert not detectable([[1.0] * 5], [1.0] * 5).can_be_found
    assert not detectable([[1.0, *[0.0] * 39]], [1.0] * 40).can_be_found
    assert detectable([[1.0] * 20], [1.0] * 20).can_be_found


def test_without_queries_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="nothing to average"):
        detectable([[]], [])


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=7, max_size=7), min_size=1, max_size=4),
    st.lists(st.sampled_from([1e-3, 1.0, 2.5]), min_size=7, max_size=7),
    st.sampled_from([1e-6, 3.0, 1e300]),
)
def test_what_is_said_is_in_range_whatever_the_weights_scale(
    runs: list[list[float]], weights: list[float], scale: float
) -> None:
    said = detectable(runs, weights)
    assert 0 <= said.bound <= said.mean + 1e-9
    assert 0 <= said.other_queries <= said.mean
    assert 0 <= said.noise <= 1
    assert said.noise <= said.found <= 1
    assert 0 <= said.change_limit <= 1
    scaled = detectable(runs, [weight * scale for weight in weights])
    assert (scaled.noise, scaled.found) == pytest.approx((said.noise, said.found))


SECONDS = Metric(key="seconds", label="Seconds", better="lower", scale=Scale(0, 20))


@given(st.lists(st.lists(st.sampled_from([n / 16 for n in range(17)]), min_size=7, max_size=7), min_size=1, max_size=4))
def test_a_metric_of_which_lower_is_better_is_mirrored_in_its_own_units(runs: list[list[float]]) -> None:
    weights = [1.0, 2.5, 1.0, 0.5, 1.0, 1.0, 3.0]
    points, seconds = (
        detectable(runs, weights),
        detectable([[20 - 20 * value for value in run] for run in runs], weights, SECONDS),
    )
    assert (seconds.mean, seconds.other_queries) == pytest.approx(
        (20 - 20 * points.mean, 20 - 20 * points.other_queries)
    )
    assert (seconds.noise, seconds.found) == pytest.approx((20 * points.noise, 20 * points.found), abs=1e-6)
    assert seconds.can_be_found == points.can_be_found
    assert seconds.bound >= max(sum(map(mul, weights, [20 - 20 * value for value in run])) / 10 for run in runs) - 1e-6
    assert seconds.mean - 1e-9 <= seconds.other_queries <= seconds.bound + 1e-9
    assert seconds.bound <= 20


def test_a_maximum_is_rounded_up_and_a_limit_on_a_rise_is_in_the_metrics_units() -> None:
    said = detectable([[0.0] * 40], [1.0] * 40, SECONDS)
    assert said.mean == 0
    assert said.noise == pytest.approx(20 * 5 / 40)
    # As above, one of 42 queries took as long as can be: 20 * 1.644854 * sqrt(41 / 42**3) is 0.77388.
    assert said.other_queries == pytest.approx(0.77388, abs=1e-5)
    assert said.bound == 0.78
    assert said.change_limit == 1.5


def test_a_scale_that_does_not_start_at_0_moves_the_mean_and_no_change() -> None:
    metric = Metric(key="score", label="Score", scale=Scale(-1, 1))
    shares = detectable([[1.0, 0.5, 0.5, 0.0] * 10], [1.0] * 40)
    said = detectable([[1.0, 0.0, 0.0, -1.0] * 10], [1.0] * 40, metric)
    assert (said.mean, said.noise, said.found) == pytest.approx((0.0, 2 * shares.noise, 2 * shares.found))
    assert said.change_limit == pytest.approx(2 * shares.change_limit)
    assert said.bound == pytest.approx(2 * shares.bound - 1, abs=0.02)


@pytest.mark.parametrize(
    ("value", "rounded"), [(0.0712, 0.072), (0.07, 0.07), (0.2, 0.2), (0.00331, 0.0034), (0.00001, 0.0001), (0, 0)]
)
def test_rounding_up_keeps_two_digits(value: float, rounded: float) -> None:
    assert round_up(value) == rounded
