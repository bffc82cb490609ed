"""The test of a change and its bounds, which say the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcontract.core.metric import Scale
from ragcontract.statistics.significance import assess, fewest_changed, noise
from tests.statistics.paired_runs import change_of, paired

VALUES = (0.0, 0.2, 0.25, 1 / 3, 0.5, 2 / 3, 1.0)
values = st.sampled_from(VALUES)
sides = st.lists(st.tuples(values, values), min_size=1, max_size=60)
worse = st.lists(st.tuples(st.sampled_from([0.5, 1.0]), st.sampled_from([0.0, 0.5, 1.0])), min_size=4, max_size=25)


@settings(deadline=None)
@given(sides | worse, st.sampled_from([0.01, 0.05, 0.2]))
def test_a_change_is_significant_exactly_if_its_bound_excludes_none(
    data: list[tuple[float, float]], alpha: float
) -> None:
    before, now = (list(side) for side in zip(*data, strict=True))
    (found,) = assess([change_of(before, now)], alpha)
    if found.p_value is not None and found.p_value <= alpha:
        assert 0 <= found.bounds[0] <= found.bounds[1]
        assert found.could_be
    else:
        assert found.bounds[0] <= 0
    assert found.bounds[0] <= found.bounds[1]


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(values, values, values, values), min_size=5, max_size=30))
def test_beside_another_limit_a_drop_is_never_surer_and_its_upper_bound_stays(data: list[tuple[float, ...]]) -> None:
    first, second, third, fourth = (list(column) for column in zip(*data, strict=True))
    changes = [change_of(first, second), change_of(third, fourth)]
    for alone, beside in zip((assess([one])[0] for one in changes), assess(changes), strict=True):
        assert beside.bounds[0] <= alone.bounds[0]
        assert (beside.p_value or 1) >= (alone.p_value or 1) - 1e-12
        if alone.p_value is not None and alone.p_value > 0.05:
            assert beside.bounds[1] == alone.bounds[1]


def test_a_drop_that_could_not_be_significant_with_all_its_changes_worse_says_so() -> None:
    few, enough = ([1.0] * 20, [0.5] * 4 + [1.0] * 16), ([1.0] * 20, [0.5] * 5 + [1.0] * 15)
    assert [paired(*sides).could_be for sides in (few, enough)] == [False, True]
    undecided = paired([1.0] * 10 + [0.5] * 10, [0.5] * 10 + [1.0] * 10)
    assert (undecided.p_value or 0) > 0.5
    assert undecided.could_be


def test_four_lost_documents_are_enough_where_a_result_is_right_or_wrong() -> None:
    assert paired([1.0] * 20, [0.0] * 4 + [1.0] * 16).p_value == 2**-5
    assert paired([1.0] * 20, [0.5] * 4 + [1.0] * 16).p_value == 2**-4


def test_nothing_changed() -> None:
    found = paired([1.0] * 9, [1.0] * 9)
    assert (found.p_value, found.could_be, found.bounds, found.queries) == (None, False, (0.0, 0.0), 9)
    same = change_of([1.0] * 9, [1.0] * 9)
    assert noise(same, found) is None


def test_noise_is_of_now_minus_before() -> None:
    before, now = [2.0] * 9 + [4.0, 3.0], [8.0] * 9 + [3.0, 3.0]
    for better, p_value in (("lower", 2 / 2**10), ("higher", 1 - 1 / 2**10)):
        change = change_of(before, now, better=better, scale=Scale(0, 10))
        found = noise(change, assess([change])[0])
        assert found is not None
        assert found.p_value == p_value
        assert 0 < found.bounds[0] < 53 / 11 < found.bounds[1]
        assert (found.wins, found.ties, found.losses) == ((1, 1, 9) if better == "lower" else (9, 1, 1))


@pytest.mark.parametrize(
    ("alpha", "tests", "mid_p", "changed"),
    [(0.05, 1, False, 5), (0.05, 1, True, 4), (0.05, 4, False, 7), (0.0625, 1, False, 4), (0.01, 1, False, 7)],
)
def test_the_fewest_changes_that_can_be_significant(alpha: float, tests: int, mid_p: bool, changed: int) -> None:
    assert fewest_changed(alpha, tests, mid_p=mid_p) == changed
