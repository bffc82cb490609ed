"""Secrets are found wherever a server echoes them."""

import html
import json

import pytest

from ragcontract.net.secrets import Secrets

TOKEN = "sk-standin-0123456789abcdef"


@pytest.mark.parametrize("secret", [TOKEN, 'a"b/c&d<e>' * 3, 'a"b/' * 6, "correct horse battery"])
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
