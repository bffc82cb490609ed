"""How long a server asks to be left alone, in every form that servers write."""

import math
import random
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.net.pacing import asked_pause, backoff, number, seconds_in

NOW = 1_800_000_000.0  # in January 2027


def after(seconds: float) -> datetime:
    return datetime.fromtimestamp(NOW + seconds, UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7),
        (" 7 ", 7),
        ("0", 0),
        ("1.5", 1.5),
        (str(int(NOW) + 30), 30),
        (str((int(NOW) + 30) * 1000), 30),
        ("1m30s", 90),
        ("6m0s", 360),
        ("350ms", 0.35),
        ("1h", 3600),
        ("1d2h", 93_600),
        ("2.5s", 2.5),
        ("20µs", 20e-6),
        (format_datetime(after(42), usegmt=True), 42),
        (after(42).isoformat(), 42),
        (after(42).isoformat().replace("+00:00", "Z"), 42),
        (after(42).replace(tzinfo=None).isoformat(), 42),
    ],
)
def test_every_form_is_understood(text: str, seconds: float) -> None:
    assert seconds_in(text, NOW) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        None, "", "soon", "nan", "inf", "-inf", "-5", "-1m", "1e999", "9" * 5000, "1x", "m", "5 5",
        "Wed, 21 Oct 2020 07:28:00 GMT", "Wed, 99 Oct 2026 07:28:00 GMT", "2020-01-01T00:00:00Z", "9999-99-99",
        "Mon, 01 Jan 99999 00:00:00 GMT",
    ],
)  # fmt: skip
def test_what_is_no_time_or_past_is_none(text: str | None) -> None:
    assert seconds_in(text, NOW) is None


@given(st.text() | st.from_regex(r"[0-9a-zA-Z ,:+.-]{0,40}", fullmatch=True))
def test_no_text_does_harm(text: str) -> None:
    found = seconds_in(text, NOW)
    assert found is None or 0 <= found < math.inf


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "nan", "x-ratelimit-reset": "5"}, 5),
        ({"x-ratelimit-reset": str(int(NOW) + 9)}, 9),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360),
        (
            {
                "x-ratelimit-reset-requests": "1s",
                "x-ratelimit-remaining-requests": "0",
                "x-ratelimit-reset-tokens": "6m0s",
                "x-ratelimit-remaining-tokens": "900",
            },
            1,
        ),
        ({"anthropic-ratelimit-tokens-reset": after(8).isoformat()}, 8),
        ({"ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-limit": "30", "x-reset": "9"}, None),
        ({"x-ratelimit-reset": "-1"}, None),
    ],
)
def test_the_headers_that_say_it(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_pause(headers, NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(("text", "found"), [("5", 5), ("-5", None), ("nan", None), ("inf", None), (None, None)])
def test_a_number_is_finite_and_not_negative(text: str | None, found: float | None) -> None:
    assert number(text) == found


def test_pauses_double() -> None:
    for attempt, most in ((1, 1), (2, 2), (3, 4)):
        assert most / 2 <= backoff(attempt) <= most


def test_each_further_attempt_waits_longer_up_to_a_limit() -> None:
    chance = random.Random(7)
    waits = [backoff(attempt, first=0.5, longest=30, chance=chance) for attempt in range(1, 12)]
    assert all(0.25 * 2**number <= wait <= 0.5 * 2**number for number, wait in enumerate(waits[:6]))
    assert all(15 <= wait <= 30 for wait in waits[7:])
    assert len(set(waits)) == len(waits)
