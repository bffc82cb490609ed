"""Text and ids in Markdown, by GitHub's own parser."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core import bounds
from ragcontract.core.phrase import Name, render
from ragcontract.core.safe_text import shorten, visible
from ragcontract.report.blocks import Fold, Note, Table
from ragcontract.report.markdown import code, inline, text
from ragcontract.report.markdown import page as rendered
from tests.report.page import Page

NASTY = (
    "@octocat",
    "hello @octo-org/team, user@example.com",
    "a|user@example.com",
    "#1 and GH-2 and octo/repo#3 and gh-4",
    "GHSA-jfh8-c2jp-5v3q CVE-2021-44228",
    "0123456789abcdef0123456789abcdef01234567",
    "aaaaaaa0123456789abcdef0123456789abcdef0",
    "deadbeef 1234567 1234567890",
    "octo/repo@0123456789abcdef0123456789abcdef01234567",
    "https://evil.example/x",
    "(www.evil.example) _www.evil.example",
    "ftp://evil.example mailto:a@evil.example xmpp:a@evil.example/b",
    "<https://evil.example>",
    "[link](https://evil.example)",
    "[link][1]\n\n[1]: https://evil.example",
    "![picture](https://evil.example/x.png)",
    "[^1]",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "<!-- hidden -->",
    "--> visible <!--",
    "</details></td></table>",
    "<details open>",
    "<a href='https://evil.example'>x</a>",
    "&lt;b&gt; &amp; &#64;octocat &copy;",
    "a|b",
    "a\\|b",
    "| a | b |\n| --- | --- |\n| c | d |",
    "`code` ``more`` ```",
    "```\nfence\n```",
    "~~~",
    "~~gone~~ ~once~",
    "*a* **b** _c_ __d__ ***e***",
    "# heading",
    "####### not one",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "1) item",
    "123456789. item",
    "- [ ] task",
    "[x] task",
    "> quote",
    "---",
    "===",
    "***",
    "    indented",
    "     - [ ] indented more",
    "ends with two spaces  ",
    "ends with a backslash\\",
    "\\",
    "\\\\`",
    "`",
    "|",
    "<",
    "&",
    "$x^2$ costs $5 and $10",
    "$$\nx\n$$",
    "$`x`$",
    ":tada: :+1: a:b:c 12:30:45",
    "line\none\r\ntwo\ttabs",
    "\x00\x1b[31m\x85\u2028\u202e\ufeff\ud800\uffff",
    "\u200b@octocat \u200b#1",
    "emoji 👩‍👩‍👧 ❤️ and 你好",
    " ",
    "  ",
    "x" * 300,
    "`" * 300,
    "|" * 300,
)
fragments = st.sampled_from(
    [
        *NASTY,
        "@",
        "#",
        "1",
        "`",
        "|",
        "\\",
        "<",
        ">",
        "&",
        ";",
        "[",
        "]",
        "(",
        ")",
        "*",
        "_",
        "~",
        "!",
        ":",
        "/",
        ".",
        "www",
        "-",
        "+",
        "=",
        "$",
        " ",
        "\n",
        "a",
        "gh",
        "code",
        "abcdef0",
    ]
)
nasty = st.one_of(st.text(st.characters(), min_size=1), st.lists(fragments, min_size=1, max_size=6).map("".join))


def in_a_cell(markdown: str) -> Page:
    return Page(rendered([Table(["head", "next"], "lr", [[markdown, "1"], ["second", "2"]])]))


def in_a_list(markdown: str) -> Page:
    return Page(f"- {markdown}\n- second")


def in_a_heading(markdown: str) -> Page:
    return Page(f"### Contract {markdown} holds")


CELL = in_a_cell("harmless").tags
CODE_CELL = in_a_cell("`harmless`").tags
LIST = in_a_list("harmless").tags
CODE_LIST = in_a_list("`harmless`").tags
HEADING = in_a_heading("harmless").tags


@pytest.mark.parametrize("value", NASTY)
def test_nasty_text_is_only_text(value: str) -> None:
    check_text(value)


@given(nasty)
def test_any_text_is_only_text(value: str) -> None:
    check_text(value)


def check_text(value: str) -> None:
    cell, item, heading = in_a_cell(text(value)), in_a_list(text(value)), in_a_heading(text(value))
    assert (cell.tags, item.tags, heading.tags) == (CELL, LIST, HEADING)
    assert cell.links() == item.links() == heading.links() == []
    shown = visible(value).strip(" ")
    assert [[cell.strip(" ") for cell in row] for row in cell.tables[0][1:]] == [[shown, "1"], ["second", "2"]]
    assert [item.strip(" \n") for item in item.items] == [shown, "second"]
    assert heading.text.strip("\n") == f"Contract {visible(value)} holds"


@pytest.mark.parametrize("value", NASTY)
def test_a_nasty_id_is_only_code(value: str) -> None:
    check_code(value)


@given(nasty)
def test_any_id_is_only_code(value: str) -> None:
    check_code(value)


def check_code(value: str) -> None:
    cell, item = in_a_cell(code(value)), in_a_list(code(value))
    assert (cell.tags, item.tags) == (CODE_CELL, CODE_LIST)
    assert cell.links() == item.links() == []
    shown = shorten(visible(value), bounds.MARKDOWN_ID)
    assert cell.tables[0][1:] == [[shown, "1"], ["second", "2"]]
    assert item.items == [shown, "second"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("What is the full-time refund policy (2024)?", "What is the full-time refund policy (2024)?"),
        ("a_b * c", r"a\_b \* c"),
        ("mail @team", "mail @&#8203;team"),
        ("$5", "<span>$</span>5"),
        ("1. first", r"1\. first"),
        ("2024 was - 1. good", "2024 was - 1. good"),
    ],
)
def test_plain_questions_stay_readable_where_markdown_is_read_as_text(value: str, expected: str) -> None:
    assert text(value) == expected


@pytest.mark.parametrize(
    "start", ["    x", "     - x", "- x", "1. x", "# x", "+ x", "  \u200d  x", "\u200d\ufe0f    x"]
)
@pytest.mark.parametrize("zero_width", ["\u200c", "\u200d", "\ufe0e", "\ufe0f", "\u180b", "\U000e0100", "\u200d" * 9])
def test_behind_zero_width_characters_no_block_begins_where_they_are_dropped(zero_width: str, start: str) -> None:
    """They are invisible, and whether a renderer counts them as text is its own affair."""
    dropped = re.sub("[\u180b\u200c\u200d\ufe0e\ufe0f\U000e0100]", "", text(zero_width + start))
    assert Page(dropped).tags == ["p", "/p"]
    assert in_a_list(dropped).tags == LIST
    assert zero_width in text(zero_width + start)


def test_an_ordinary_id_is_ordinary_code() -> None:
    assert code("doc_refund-policy.v2@eu") == "`doc_refund-policy.v2@eu`"


def test_a_fold_closes_around_what_is_in_it() -> None:
    page = Page(rendered([Fold("Title", [Note("**bold**"), Table(["a"], "l", [["b"]])])]))
    assert page.tags[:4] == ["details", "summary", "/summary", "p"]
    assert page.tags[-1] == "/details"
    assert page.tables == [[["a"], ["b"]]]


def test_columns_are_aligned() -> None:
    assert rendered([Table(["a", "b"], "lr", [["1", "2"]])]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |\n"


def test_an_empty_name_is_no_backquotes_that_open_the_code_of_the_next() -> None:
    assert code("") == "<code></code>"
    assert "octocat" not in "".join(Page(render((Name(""), Name("@octocat")), code, inline)).prose)
