"""Kappa, its error, score intervals, and the estimate of what people would say."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ragcontract.core.config_sections import LabelCounts
from ragcontract.judgments.calibration import Kappa, cohen_kappa, rogan_gladen, wilson

COUNT = st.integers(min_value=0, max_value=200)
POSITIVE = st.integers(min_value=1, max_value=200)
COUNTS = st.builds(LabelCounts, tp=COUNT, fp=COUNT, fn=COUNT, tn=COUNT).filter(lambda one: one.yes and one.no)


def counts(tp: int, fp: int, fn: int, tn: int) -> LabelCounts:
    return LabelCounts(tp=tp, fp=fp, fn=fn, tn=tn)


def kappa(tp: int, fp: int, fn: int, tn: int) -> Kappa:
    found = cohen_kappa(counts(tp, fp, fn, tn))
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("table", "value", "error"),
    [
        ((45, 5, 5, 45), 0.8, 0.06),  # by hand: every marginal is a half, so that the error is sqrt(0.36 / 100)
        ((50, 0, 0, 50), 1.0, 0.0),
        ((25, 25, 25, 25), 0.0, 0.1),
        ((0, 50, 50, 0), -1.0, 0.0),
    ],
)
def test_kappa_and_its_error_are_as_computed_by_hand(
    table: tuple[int, int, int, int], value: float, error: float
) -> None:
    found = kappa(*table)
    assert found.value == pytest.approx(value)
    assert found.error == pytest.approx(error, abs=1e-6)
    assert found.low == pytest.approx(value - 1.6448536 * error, abs=1e-6)


@given(st.builds(LabelCounts, tp=POSITIVE, fp=POSITIVE, fn=POSITIVE, tn=POSITIVE))
def test_the_error_is_that_of_the_delta_method(one: LabelCounts) -> None:
    """Kappa is a function of four shares: its variance follows from its slopes and the shares' own covariance."""
    shares = [cell / one.n for cell in (one.tp, one.fp, one.fn, one.tn)]

    def kappa_of(tp: float, fp: float, fn: float, tn: float) -> float:
        total = tp + fp + fn + tn
        chance = ((tp + fp) * (tp + fn) + (fn + tn) * (fp + tn)) / total**2
        return ((tp + tn) / total - chance) / (1 - chance)

    step = 1e-6
    slopes = []
    for at in range(4):
        up, down = (
            [share + (step * side if at == other else 0) for other, share in enumerate(shares)] for side in (1, -1)
        )
        slopes.append((kappa_of(*up) - kappa_of(*down)) / (2 * step))
    mean = sum(share * slope for share, slope in zip(shares, slopes, strict=True))
    squares = sum(share * slope**2 for share, slope in zip(shares, slopes, strict=True))
    found = cohen_kappa(one)
    assert found is not None
    assert found.error == pytest.approx(math.sqrt(max(0, squares - mean**2) / one.n), rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("table", [(50, 0, 0, 0), (30, 0, 20, 0), (0, 3, 0, 50), (0, 0, 0, 0)])
def test_kappa_says_nothing_if_people_say_the_same_of_everything(table: tuple[int, int, int, int]) -> None:
    assert cohen_kappa(counts(*table)) is None


@pytest.mark.parametrize("table", [(40, 10, 0, 0), (0, 0, 30, 20)])
def test_a_judge_that_says_the_same_of_everything_agrees_by_chance(table: tuple[int, int, int, int]) -> None:
    assert kappa(*table).value == 0


@given(COUNTS)
def test_kappa_does_not_depend_on_what_is_called_yes(one: LabelCounts) -> None:
    swapped = cohen_kappa(counts(one.tn, one.fn, one.fp, one.tp))
    found = cohen_kappa(one)
    assert found is not None
    assert swapped is not None
    assert found.value == pytest.approx(swapped.value)
    assert found.error == pytest.approx(swapped.error, abs=1e-9)
    assert -1 <= found.value <= 1 + 1e-12
    assert math.isfinite(found.error)


@given(st.integers(min_value=0, max_value=300), st.integers(min_value=1, max_value=300))
def test_the_interval_of_a_share_is_that_of_scipy(successes: int, of: int) -> None:
    successes = min(successes, of)
    found = wilson(successes, of)
    expected = stats.binomtest(successes, of).proportion_ci(confidence_level=0.9, method="wilson")
    assert found is not None
    assert [found.low, found.high] == pytest.approx([expected.low, expected.high])
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_a_share_of_nothing_has_no_interval() -> None:
    assert wilson(0, 0) is None


@given(st.floats(min_value=0, max_value=1), COUNTS)
def test_what_people_would_say_is_found_again_through_the_errors_of_the_judge(share: float, one: LabelCounts) -> None:
    right_yes, right_no = one.tp / one.yes, one.tn / one.no
    observed = share * right_yes + (1 - share) * (1 - right_no)
    if right_yes + right_no > 1.01:
        assert rogan_gladen(observed, one) == pytest.approx(share, abs=1e-9)
    elif right_yes + right_no <= 1:
        assert rogan_gladen(observed, one) is None


def test_an_estimate_stays_within_0_and_1() -> None:
    table = counts(tp=45, fp=5, fn=5, tn=45)
    assert rogan_gladen(0.05, table) == 0
    assert rogan_gladen(0.99, table) == 1
    assert rogan_gladen(0.5, counts(tp=5, fp=0, fn=0, tn=0)) is None
