"""The blocks of reports: each format renders all of them, and escapes whatever may be from a file."""

from typing import get_args

import pytest

from ragcontract.core.metric import Scale
from ragcontract.core.phrase import Code, Name
from ragcontract.report import markdown, terminal
from ragcontract.report.blocks import (
    Block,
    Fold,
    Group,
    Heading,
    Items,
    Kind,
    Lines,
    Mean,
    Note,
    Part,
    Sentence,
    Styled,
    Table,
    Tally,
    Text,
    rendered,
)
from ragcontract.report.html import elements as html
from tests.report.html.parsed import HOSTILE
from tests.report.page import Page

STYLES = {
    "markdown": markdown.STYLE,
    "a cell in markdown": markdown.IN_CELL,
    "terminal": terminal.STYLE,
    "a cell in the terminal": terminal.CELL,
    "html": html.STYLE,
}
WORDS = [Text(HOSTILE, kind) for kind in get_args(Kind) if kind != "status"]
SENTENCES: list[Part] = [Name(HOSTILE), Sentence((HOSTILE, Name(HOSTILE))), Sentence((HOSTILE,), "reason")]
MEAN = Mean(text="0.5", change="+0.1", is_better=True, is_significant=True, now=0.5, before=0.4, scale=Scale())
NUMBERS: list[Part] = [MEAN, Tally(number=1_000, of=2_000, before=900, is_right=True)]


@pytest.mark.parametrize("part", [*WORDS, *SENTENCES, *map(Styled, WORDS), Lines(WORDS)], ids=lambda _: "")
@pytest.mark.parametrize("form", STYLES)
def test_words_of_every_kind_are_escaped(form: str, part: Part) -> None:
    shown = terminal.without_colours(rendered(part, STYLES[form]))
    assert "src" in shown
    assert not {"\x1b", "\u202e", "\u2028"} & {*shown}
    if form == "html":
        assert "<img" not in shown
    elif "markdown" in form:
        assert not [tag for tag in Page(f"| {shown} |\n| --- |\n").tags if tag.startswith("img")]


@pytest.mark.parametrize("form", STYLES)
def test_every_format_has_numbers_and_commands(form: str) -> None:
    parts: list[Part] = [*NUMBERS, Code("rag-contract baseline")]
    mean, tally, command = (rendered(part, STYLES[form]) for part in parts)
    assert ("0.5" in mean, "1,000" in tally, "rag-contract baseline" in command) == (True, True, True)


BLOCKS: list[Block] = [
    Heading("Title", 1),
    Note(""),
    Items([]),
    Group([Note("One."), Items(["two", Styled("three")])]),
    Fold("More", [Table(["a", "b"], "lr", [["x", MEAN]]), Note("")]),
]


def test_empty_blocks_are_left_out() -> None:
    assert markdown.page(BLOCKS) == (
        "### Title\n\nOne.\n\n- two\n- <b>three</b>\n\n<details><summary>More</summary>\n\n"
        "| a | b |\n| --- | ---: |\n| x | 0.5 (+0.1\\*) |\n\n</details>\n"
    )
    assert terminal.without_colours(terminal.page(BLOCKS)) == "Title\n\nOne.\ntwo\nthree\n\nMore\n  a  b\n  x  0.5\n"
