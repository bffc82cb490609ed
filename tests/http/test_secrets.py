"""Which secrets there are, where they may stand, and that they are found wherever they are echoed."""

import html
import json

import pytest

from ragcontract.core.errors import InputError
from ragcontract.http.secrets import Secrets, named_secrets

TOKEN = "sk-standin-0123456789abcdef"


def test_secrets_are_those_of_the_environment_that_are_named() -> None:
    secrets = named_secrets(["A"], {"A": TOKEN, "B": "another-secret"})
    assert secrets.filled("Bearer ${secret:A}") == f"Bearer {TOKEN}"
    assert secrets.unknown_in("${secret:A} ${secret:B}") == ["B"]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    environ = {"EMPTY": "", "SHORT": "1234567", "LINES": "abc\ndefgh", "BLANK": " abcdefgh"}
    with pytest.raises(InputError) as raised:
        named_secrets(["NONE", "EMPTY", "SHORT", "LINES", "BLANK", "sk-value"], environ)
    assert raised.value.problems == [
        "--secret NONE: the environment variable NONE is not set, or empty",
        "--secret EMPTY: the environment variable EMPTY is not set, or empty",
        "--secret SHORT: the value is shorter than 8 characters, so it could not be redacted",
        "--secret LINES: the value has a space or a character in it that no header takes",
        "--secret BLANK: the value has a space or a character in it that no header takes",
        "--secret 'sk-value': expected the name of an environment variable, not a value",
    ]
    assert not any(value in str(raised.value) for value in environ.values() if value)


@pytest.mark.parametrize("secret", [TOKEN, 'a"b/c&d<e>' * 3, "correct horse battery"])
@pytest.mark.parametrize(
    "echo",
    [
        str,
        html.escape,
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
    ],
)
def test_a_secret_is_found_as_servers_escape_it(secret: str, echo: object) -> None:
    assert callable(echo)
    echoed = echo(secret)
    found = Secrets({"A": secret}).redacted({"error": f"key {echoed}!"})["error"]
    assert not any(echoed[at : at + 12] in found for at in range(len(echoed) - 11))
