"""A waiver is added to a configuration and nothing else in it changes, whatever the notation."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import golden, write_jsonl
from tests.process import rag_contract

WAIVER = {"query": "q1", "reason": "known: # yes", "owner": "ann", "expires": "2999-01-01"}
OTHER = "query: other, reason: r, owner: o, expires: 2999-01-01"

CONFIGS = [
    pytest.param("# only a comment\n", id="only comments"),
    pytest.param("k: 5  # the prompt has five\n", id="no waivers yet"),
    pytest.param("k: 5", id="no line end"),
    pytest.param("k: 5\r\nper_query:\r\n  fail_on: new\r\n", id="lines of Windows"),
    pytest.param("waivers:\n# later\nk: 5\n", id="an empty key"),
    pytest.param("waivers:   # later\n", id="an empty key with a comment"),
    pytest.param("waivers: []  # none\nk: 5\n", id="an empty list"),
    pytest.param("waivers:\n  []\nk: 5\n", id="an empty list on its own line"),
    pytest.param(f"waivers: [{{{OTHER}}}]\nk: 5\n", id="a list in brackets"),
    pytest.param(f"waivers: [{{{OTHER}}}, ]\nk: 5\n", id="a list in brackets with a last comma"),
    pytest.param(f"waivers: [\n  {{{OTHER}}},  # why\n]\nk: 5\n", id="a list in brackets over lines"),
    pytest.param(f"waivers:\n- {{{OTHER}}}\nk: 5\n", id="a list without indentation"),
    pytest.param(f"waivers:\n    - {{{OTHER}}}  # why\n\n# about k\nk: 5\n", id="a list with comments after it"),
    pytest.param(
        "waivers:\n  - query: other\n    owner: o\n    reason: >\n      a\n      b\n    expires: 2999-01-01\n\nk: 5\n",
        id="a folded text",
    ),
    pytest.param(
        "waivers:\n  - query: other\n    owner: o\n    expires: 2999-01-01\n    reason: |\n      long\n      text\n",
        id="a text over lines at the end",
    ),
    pytest.param(
        'waivers:\n  - query: other\n    owner: o\n    expires: 2999-01-01\n    reason: "long\n      text"  # why',
        id="a quoted text over lines at the end",
    ),
]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter a folder with golden queries."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("other"), golden("007")])


def waived(text: str, **fields: str) -> tuple[int, str]:
    """Return the exit code of the command, and the configuration that it leaves."""
    Path("ragcontract.yml").write_bytes(text.encode())
    waiver = WAIVER | fields
    options = ("--reason", waiver["reason"], "--owner", waiver["owner"], "--until", waiver["expires"])
    code = rag_contract("waive", waiver["query"], *options).code
    return code, Path("ragcontract.yml").read_bytes().decode()


def read(text: str) -> Any:
    """Return the values of a configuration, all as text."""
    return yaml.load(text, yaml.BaseLoader)


@pytest.mark.parametrize("text", CONFIGS)
def test_the_waiver_is_added_and_every_line_stays(text: str) -> None:
    code, added = waived(text)
    before = read(text) or {}
    assert (code, read(added)) == (0, {**before, "waivers": [*(before.get("waivers") or []), WAIVER]})
    assert [part for part in text.split("#")[1:] if part.splitlines()[0] not in added] == []
    rest = iter(added.splitlines())
    lines = [line for line in text.splitlines() if "waivers" not in line and "]" not in line and "}," not in line]
    assert all(line in rest for line in lines)  # each of them, in order
    assert ("\r\n" in added) == ("\r\n" in text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{k: 5}\n", id="a file in braces"),
        pytest.param("waivers: none\n", id="something else"),
        pytest.param("- k\n", id="a list"),
    ],
)
def test_what_cannot_be_added_to_is_left_alone(text: str) -> None:
    assert waived(text) == (2, text)


def test_an_id_of_digits_stays_text() -> None:
    code, added = waived("k: 5\n", query="007")
    assert (code, yaml.safe_load(added)["waivers"][0]["query"]) == (0, "007")


def test_characters_that_nobody_sees_are_escaped_and_mean_the_same() -> None:
    hidden = "caf\u00e9 a\u202eb"
    code, added = waived("k: 5\n", reason=hidden)
    assert (code, "\u202e" in added, read(added)["waivers"][0]["reason"]) == (0, False, hidden)
    assert "caf\u00e9" in waived("k: 5\n", reason="caf\u00e9")[1]
