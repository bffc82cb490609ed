"""Characters that nobody sees are removed, all of them, and no others."""

import sys
import unicodedata

import pytest

from ragcontract.core.invisible import without_invisible

LINE_ENDS_AND_TABS = {"\t", "\n", "\v", "\f", "\r", "\x85"}


def test_every_format_character_and_control_but_line_ends_and_tabs_is_removed() -> None:
    """Of all of Unicode, as Python has it."""
    every = [char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) in {"Cc", "Cf"}]
    assert {char for char in every if without_invisible(f"a{char}b") != "ab"} == LINE_ENDS_AND_TABS
    assert {char for char in every if without_invisible(f"é{char}b") != "éb"} == LINE_ENDS_AND_TABS


# A few of each line of Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt that is not of category Cf.
IGNORABLE = (
    "\u034f\u115f\u1160\u17b4\u180b\u180f\u2065\u3164\ufe00\ufe0f\uffa0\ufff0\ufff8"
    "\U000e0000\U000e0002\U000e0080\U000e0100\U000e01ef\U000e0fff"
)


@pytest.mark.parametrize("char", IGNORABLE)
def test_what_unicode_calls_ignorable_is_removed(char: str) -> None:
    assert without_invisible(f"sec{char}ret") == "secret"


@pytest.mark.parametrize("text", ["", "a\tb\r\n", "naïve café", "日本語", "emoji 😀", "a\u2028b\u3000c", "e\u0301"])
def test_a_text_that_is_seen_stays_as_it_is(text: str) -> None:
    assert without_invisible(text) == text
