"""A waiver is added to a configuration and nothing else in it changes, whatever the notation."""

import pytest

from ragcontract.contract.waivers import as_yaml, with_waiver
from ragcontract.files import yaml_tree

WAIVER = {"query": "q1", "reason": "known: # yes", "owner": "ann", "expires": "2027-01-01"}
OTHER = "query: other, reason: r, owner: o, expires: 2027-01-01"

CONFIGS = [
    pytest.param("", id="empty"),
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
        "waivers:\n  - query: other\n    owner: o\n    reason: >\n      a\n      b\n    expires: 2027-01-01\n\nk: 5\n",
        id="a folded text",
    ),
    pytest.param(
        "waivers:\n  - query: other\n    owner: o\n    expires: 2027-01-01\n    reason: |\n      long\n      text\n",
        id="a text over lines at the end",
    ),
    pytest.param(
        'waivers:\n  - query: other\n    owner: o\n    expires: 2027-01-01\n    reason: "long\n      text"  # why',
        id="a quoted text over lines at the end",
    ),
]


@pytest.mark.parametrize("text", CONFIGS)
def test_the_waiver_is_added_and_every_line_stays(text: str) -> None:
    added = with_waiver(text, WAIVER)
    assert added is not None
    before = yaml_tree.load(text.encode()).value or {}
    after = yaml_tree.load(added.encode())
    assert after.problems == []
    assert after.value == {**before, "waivers": [*(before.get("waivers") or []), WAIVER]}
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
    assert with_waiver(text, WAIVER) is None


def test_waivers_to_paste_are_a_key_of_the_configuration() -> None:
    text = as_yaml([WAIVER, {**WAIVER, "query": "007"}])
    assert yaml_tree.load(text.encode()).value == {"waivers": [WAIVER, {**WAIVER, "query": "007"}]}


def test_characters_that_nobody_sees_are_escaped_and_mean_the_same() -> None:
    hidden = {**WAIVER, "query": "a\u202eb", "reason": "caf\u00e9"}
    text = as_yaml([hidden])
    assert "\u202e" not in text
    assert yaml_tree.load(text.encode()).value == {"waivers": [hidden]}
    assert "caf\u00e9" in as_yaml([{**WAIVER, "reason": "caf\u00e9"}])
