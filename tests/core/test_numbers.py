"""Numbers as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core.gate import written
from ragcontract.core.numbers import (
    SAME,
    as_written,
    count,
    digits_beside,
    digits_for,
    fixed,
    milliseconds,
    percent,
    signed,
)

fractions = st.floats(min_value=0, max_value=1)


@pytest.mark.parametrize(
    ("pairs", "digits"),
    [
        ([], 2),
        ([(0.82, 0.68)], 2),
        ([(0.1, 0.1)], 2),
        ([(0.1, 0.1 + 1e-10)], 2),
        ([(0.1004, 0.1)], 4),
        ([(0.1, 0.1004)], 4),
        ([(0.82, 0.68), (0.101, 0.1)], 3),
        ([(-0.0035, 0.0)], 3),
        ([(0.0035, 0.0)], 3),
        ([(0.1000001, 0.1)], 7),
        ([(0.100000002, 0.1)], 9),
    ],
)
def test_what_differs_is_shown_to_differ(pairs: list[tuple[float, float]], digits: int) -> None:
    assert digits_for(pairs) == digits


@given(fractions, fractions)
def test_no_pair_that_differs_reads_the_same(a: float, b: float) -> None:
    digits = digits_for([(a, b)])
    assert 2 <= digits <= 10
    if abs(a - b) <= SAME:
        assert digits == 2
    else:
        assert fixed(a, digits) != fixed(b, digits)


@pytest.mark.parametrize(
    ("value", "limit", "digits"),
    [
        (0.16, 0.084, 2),
        (0.085, 0.084, 2),  # 0.09
        (0.0846, 0.084, 3),  # 0.08 would read as within the limit
        (0.0876, 0.088, 4),  # 0.088 would read as at it
        (0.084, 0.084, 3),  # at the limit, and to be read so
        (0.1, 0.1, 2),
    ],
)
def test_a_value_stays_on_its_side_of_a_limit(value: float, limit: float, digits: int) -> None:
    assert digits_beside(value, limit) == digits


@given(fractions, st.decimals(0, 1, places=4).map(float))
def test_no_value_reads_as_beyond_a_limit_that_it_keeps(value: float, limit: float) -> None:
    shown = float(fixed(value, digits_beside(value, limit)))
    if abs(value - limit) > SAME:
        assert (shown > float(as_written(limit))) == (value > limit)


def test_limits_are_shown_as_they_were_written() -> None:
    assert [as_written(limit) for limit in (0.084, 0.1, 0.12345, 1, 20.0)] == [
        "0.084",
        "0.10",
        "0.12345",
        "1.00",
        "20.00",
    ]
    assert [written(limit / 100, relative=True) for limit in (10, 12.5, 8.125)] == ["10%", "12.5%", "8.125%"]
    assert [written(limit, "ms") for limit in (150, 179.5, 0.0625)] == ["150 ms", "179.5 ms", "0.0625 ms"]


@pytest.mark.parametrize(
    ("value", "digits", "plain", "with_sign"),
    [
        (None, 2, "-", "-"),
        (0.0, 2, "0.00", "0.00"),
        (-0.0, 2, "0.00", "0.00"),
        (-0.001, 2, "0.00", "0.00"),
        (0.004, 2, "0.00", "0.00"),
        (-0.14, 2, "-0.14", "-0.14"),
        (0.02, 2, "0.02", "+0.02"),
        (1.0, 3, "1.000", "+1.000"),
        (-0.006, 2, "-0.01", "-0.01"),
    ],
)
def test_numbers_with_and_without_a_sign(value: float | None, digits: int, plain: str, with_sign: str) -> None:
    assert fixed(value, digits) == plain
    assert signed(value, digits) == with_sign


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.1, "10%"), (0.125, "12.5%"), (0.12345, "12.35%"), (0.0, "0%"), (1.0, "100%"), (-0.1, "-10%"), (-1e-6, "0%")],
)
def test_percentages_have_no_more_decimals_than_it_takes(value: float, expected: str) -> None:
    assert percent(value) == expected


def test_what_no_report_has_room_for_is_written_short() -> None:
    assert [milliseconds(value, 0) for value in (1e9, 1e308)] == ["1000000000 ms", "1e+308 ms"]
    assert [milliseconds(value, 0, sign=True) for value in (1e9, -1e308)] == ["+1000000000 ms", "-1e+308 ms"]
    assert percent(1e9) == "100000000000%"
    assert percent(1.7e308) == "over 100,000,000,000%"


def test_a_percentage_can_be_written_finer() -> None:
    assert percent(0.100002, 4) == "10.0002%"


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (0, "query", "0 queries"),
        (1, "query", "1 query"),
        (2, "gate", "2 gates"),
        (1, "golden query", "1 golden query"),
        (1234567, "query", "1,234,567 queries"),
    ],
)
def test_things_are_counted(number: int, noun: str, expected: str) -> None:
    assert count(number, noun) == expected
