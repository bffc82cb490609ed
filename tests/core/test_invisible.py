"""Characters that nobody sees separate nothing in an answer, all of them, and no others."""

import sys
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from ragcontract import check
from tests.builders import golden, run, write_jsonl

LINE_ENDS_AND_TABS = {"\t", "\n", "\v", "\f", "\r", "\x85"}
# A few of each line of Default_Ignorable_Code_Point in Unicode's DerivedCoreProperties.txt that is not of category Cf.
IGNORABLE = (
    "\u034f\u115f\u1160\u17b4\u180b\u180f\u2065\u3164\ufe00\ufe0f\uffa0\ufff0\ufff8"
    "\U000e0000\U000e0002\U000e0080\U000e0100\U000e01ef\U000e0fff"
)
SEEN = "ïé日😀\u2028\u3000-.1"


def separating(folder: Path, chars: Iterable[str], first: str = "a") -> set[str]:
    """Return the characters with which an answer, in which each stands between two letters, lacks the two letters."""
    named = {f"q{number}": char for number, char in enumerate(chars)}
    rule = {"type": "must_contain", "value": f"{first}b"}
    asked = write_jsonl(folder / "golden.jsonl", [golden(name, rules=[rule]) for name in named])
    answered = write_jsonl(folder / "run.jsonl", [run(name, response=f"{first}{named[name]}b") for name in named])
    report = check(golden=asked, run=answered)
    return {named[finding.query_id] for finding in report.findings if finding.query_id is not None}


def test_every_format_character_and_control_but_line_ends_and_tabs_is_removed(tmp_path: Path) -> None:
    """Of all of Unicode, as Python has it."""
    every = [char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) in {"Cc", "Cf"}]
    assert separating(tmp_path, every) == LINE_ENDS_AND_TABS
    assert separating(tmp_path, every, "é") == LINE_ENDS_AND_TABS


def test_what_unicode_calls_ignorable_is_removed(tmp_path: Path) -> None:
    assert separating(tmp_path, IGNORABLE) == set()


def test_what_is_seen_stays(tmp_path: Path) -> None:
    assert separating(tmp_path, SEEN) == {*SEEN}
