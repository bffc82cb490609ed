"""The token is taken out of whatever a server says, and nothing else is."""

from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.http.redaction import REDACTED, Redaction

SECRET = "ghs_16C7e42F292c6912E7710c838347Ae178B4a"
LONGEST_LEFT = 12


@pytest.mark.parametrize("around", ["", "a", "ab", "abc", "x-access-token:"])
@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize("secret", [SECRET, "a+/?b~" * 8])
def test_it_is_found_in_base_64_whatever_stands_around_it(around: str, encode: object, secret: str) -> None:
    assert callable(encode)
    text = encode(f"{around}{secret}{around}".encode()).decode()
    assert Redaction(secret).text(f"got {text}, sorry") == f"got {REDACTED} sorry"


def test_it_is_found_in_a_url() -> None:
    secret = "a+/?b" * 8
    assert Redaction(secret).text(f"at <https://h/?t={quote(secret, safe='')}>.") == f"at <{REDACTED}>."


@given(st.integers(0, len(SECRET) - LONGEST_LEFT))
def test_every_piece_of_twelve_characters_is_found(at: int) -> None:
    piece = SECRET[at : at + LONGEST_LEFT]
    assert Redaction(SECRET).text(f"of …{piece}…!") == f"of {REDACTED}"


@pytest.mark.parametrize(
    "text", ["", "Bad credentials", "ghs_ is how a token begins", "https://github.com/octo/app", "a" * 99]
)
def test_other_text_stays(text: str) -> None:
    assert Redaction(SECRET).text(text) == text


@pytest.mark.parametrize("secret", ["", "x", "seven77", "ghs_\udcff"])
def test_what_is_too_short_for_a_secret_redacts_nothing(secret: str) -> None:
    assert Redaction(secret).text(f"x {secret} seven77") == f"x {secret} seven77"


def test_numbers_and_shapes_stay() -> None:
    value: Any = {"a": [1, 2.5, None, True, {"b": []}]}
    assert Redaction(SECRET).json(value) == value


@pytest.mark.parametrize("around", ["", "a", "ab"])
def test_the_shortest_secret_is_found_in_base_64(around: str) -> None:
    text = b64encode(f"{around}k3Y-9x/Q{around}".encode()).decode()
    assert Redaction("k3Y-9x/Q").text(f"got {text}, sorry") == f"got {REDACTED} sorry"
