"""Equality of JSON values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.answers.json_answer import TooDeepError, comparable
from ragcontract.core import bounds

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
)


@pytest.mark.parametrize(
    ("one", "other", "equal", "leniently"),
    [
        (1, 1.0, True, True),
        (1, "1", False, True),
        (1, True, False, False),
        (0, False, False, False),
        (True, "true", False, True),
        (None, "null", False, True),
        (2.5, "25e-1", False, True),
        (10, "010", False, False),
        (1, "1 ", False, False),
        (1, "٠١", False, False),
        ("1", "1.0", False, True),
        ("a", "A", False, False),
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2.0}, "a": 1}, True, True),
        ({"a": None}, {}, False, False),
        ([1, 2], [2, 1], False, False),
        ([[1]], [["1"]], False, True),
        ([], {}, False, False),
        ("object", {}, False, False),
        (10**30, 1e30, False, False),
        (2**53, float(2**53), True, True),
        (float("1e300"), "1e300", False, True),
        ("1e999", "2e999", False, False),
    ],
)
def test_values_are_equal_as_json_is(one: object, other: object, equal: bool, leniently: bool) -> None:
    assert (comparable(one) == comparable(other)) is equal
    assert (comparable(one, lenient=True) == comparable(other, lenient=True)) is leniently
    assert (hash(comparable(one)) == hash(comparable(other))) or not equal


@given(values)
def test_a_value_is_itself(value: object) -> None:
    assert comparable(value) == comparable(value)
    assert comparable([value]) != comparable(value)
    assert comparable({"a": value}) != comparable([value])


def test_values_are_compared_to_a_depth() -> None:
    deepest: object = 1
    for _ in range(bounds.ARGUMENT_LEVELS):
        deepest = [deepest]
    comparable(deepest)
    with pytest.raises(TooDeepError, match="is nested more than 100 levels deep"):
        comparable([deepest])
