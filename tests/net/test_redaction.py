"""The token is taken out of whatever a server says, and nothing else is."""

import re
from base64 import b64encode, urlsafe_b64encode
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.net.secrets import REDACTED, Redaction
from tests.runner import ROOT
from tests.secret_forms import every_character_escaped, forms_of

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


SECRETS = [SECRET, "a+/?b~&\"<é'" * 4, "k3Y-9x/Q", "sk-proj-/é&<>'\"\\=+"]


def test_the_page_on_security_lists_these_forms() -> None:
    section = (
        (ROOT / "docs" / "background" / "security.md")
        .read_text()
        .partition("\n## The forms of a secret that are removed\n")[2]
    )
    assert re.findall(r"^- (.*)$", section.partition("\n## ")[0], re.MULTILINE) == list(forms_of(SECRET))


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", forms_of(SECRET))
def test_it_is_found_in_every_form_of_the_page(form: str, secret: str) -> None:
    for encoded in forms_of(secret)[form]:
        shown = Redaction(secret).text(f"key={encoded}&x got")
        assert shown.endswith(" got")
        assert REDACTED in shown
        assert encoded not in shown
        assert not any(encoded[at : at + LONGEST_LEFT] in shown for at in range(len(encoded) - LONGEST_LEFT + 1))


@pytest.mark.parametrize(
    "around", ["", "x%41&amp;é%C3%A9\\u00e9 ", "&#9;%20%F0%9F%98%80 🦓 &unknown; %zz \\u12 \\", "%e9&"]
)
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("kind", every_character_escaped(SECRET))
def test_it_is_found_if_every_character_is_an_escape(kind: str, secret: str, around: str) -> None:
    encoded = every_character_escaped(secret)[kind]
    shown = Redaction(secret).text(f"before {around} {encoded} {around} behind")
    assert shown == f"before {around} {REDACTED} {around} behind"


@pytest.mark.parametrize("kind", every_character_escaped(SECRET))
@pytest.mark.parametrize("at", [0, 3, 28])
def test_twelve_escaped_characters_are_found(at: int, kind: str) -> None:
    piece = every_character_escaped(SECRET[at : at + LONGEST_LEFT])[kind]
    assert Redaction(SECRET).text(f"{piece}, sorry") == f"{REDACTED} sorry"


@pytest.mark.parametrize(
    "written",
    [
        r"aB3\u002BdE6/hI9\u002BkL2/nO5\u002BqR8=",
        "aB3&#43;dE6&#47;hI9&#43;kL2&#47;nO5&#43;qR8&#61;",
        "aB3%2bdE6%2fhI9%2bkL2%2fnO5%2bqR8%3d",
        r"aB3+dE6\/hI9+kL2&sol;nO5\x2bqR8\u{3d}",
    ],
)
def test_it_is_found_as_servers_write_it_in_their_pages(written: str) -> None:
    assert Redaction("aB3+dE6/hI9+kL2/nO5+qR8=").text(f"bad key {written} of you") == f"bad key {REDACTED} of you"


def test_escapes_of_other_text_stay() -> None:
    text = r"50 %25 &amp; \u00e9 &#60; \\ &#999999999; \u{fffff} \x2b &#1; \ud800 %"
    assert Redaction(SECRET).text(text) == text


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
