"""The token is taken out of whatever a server says, and nothing else is."""

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.http.redaction import REDACTED, Redaction
from tests.runner import ROOT

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


def in_json(secret: str) -> str:
    return json.dumps(secret)[1:-1]


FORMS: dict[str, list[Callable[[str], str]]] = {
    "as it is": [str],
    "percent-encoded, as in a URL": [lambda secret: quote(secret, safe="")],
    "with the character references of HTML, as `&amp;`": [html.escape],
    "with the escapes of JSON, as `\\u00e9` or `\\/`": [in_json, lambda secret: in_json(secret).replace("/", r"\/")],
    "in hexadecimal digits, all lowercase or all uppercase": [
        lambda secret: secret.encode().hex(),
        lambda secret: secret.encode().hex().upper(),
    ],
    "in Base64, also URL-safe, and in the Base64 of a longer text, as of `user:password`": [
        lambda secret: b64encode(secret.encode()).decode(),
        lambda secret: urlsafe_b64encode(secret.encode()).decode(),
        lambda secret: b64encode(f"user:{secret}@host".encode()).decode(),
    ],
}
SECRETS = [SECRET, "a+/?b~&\"<é'" * 4, "k3Y-9x/Q", "sk-proj-/é&<>'\"\\=+"]


def test_the_page_on_security_lists_these_forms() -> None:
    section = (ROOT / "docs" / "security.md").read_text().partition("\n## The forms of a secret that are removed\n")[2]
    assert re.findall(r"^- (.*)$", section.partition("\n## ")[0], re.MULTILINE) == list(FORMS)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("form", FORMS)
def test_it_is_found_in_every_form_of_the_page(form: str, secret: str) -> None:
    for encode in FORMS[form]:
        encoded = encode(secret)
        shown = Redaction(secret).text(f"key={encoded}&x got")
        assert shown.endswith(" got")
        assert REDACTED in shown
        assert encoded not in shown
        assert not any(encoded[at : at + LONGEST_LEFT] in shown for at in range(len(encoded) - LONGEST_LEFT + 1))


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
