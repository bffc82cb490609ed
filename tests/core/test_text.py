"""Text from files, made visible, so that it cannot act in a log."""

import json
import re
import sys
import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.core import safe_text as module
from ragcontract.core.safe_text import encodable, printable, printable_json, shorten, visible

anything = st.text(st.characters(), max_size=40)  # with lone surrogates


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("refund_policy", "refund_policy"),
        ("Wie geht’s? 你好 مرحبا", "Wie geht’s? 你好 مرحبا"),
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x00\x1b[31m\x7f\x85\x9f", r"\x00\x1b[31m\x7f\x85\x9f"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\u202egpj.exe\u202c \u2066x\u2069", r"\u202egpj.exe\u202c \u2066x\u2069"),
        ("zero\u200bwidth\ufeff\u00ad", r"zero\u200bwidth\ufeff\xad"),
        ("\u3164\u115f\u1160\uffa0\u034f", r"\u3164\u115f\u1160\uffa0\u034f"),  # letters, by their category
        ("\u180e", r"\u180e"),
        ("tag\U000e0041", r"tag\U000e0041"),
        ("\ud800 \udfff", r"\ud800 \udfff"),
        ("\ufffe\uffff", r"\ufffe\uffff"),
        ("👩‍👩‍👧 ❤️", "👩‍👩‍👧 ❤️"),  # joiners and variation selectors are part of emoji
    ],
)
def test_what_would_act_or_hide_is_written_out(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_every_character_that_hides_is_written_out_and_no_other() -> None:
    invisible = re.compile(module._INVISIBLE)
    for code in range(sys.maxunicode + 1):
        assert (visible(chr(code)) == chr(code)) == (not invisible.match(chr(code))), hex(code)


@given(anything)
def test_nothing_that_controls_is_left(text: str) -> None:
    shown = visible(text)
    assert all(unicodedata.category(char) not in {"Cc", "Cs", "Zl", "Zp"} for char in shown)
    assert shown.encode().decode() == shown
    assert len(shown.splitlines()) <= 1
    assert visible(shown) == shown


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_shortened_text_says_so() -> None:
    assert shorten("12345", 5) == "12345"
    assert shorten("123456", 5) == "1234…"


def test_a_file_name_that_is_not_utf_8_can_be_written() -> None:
    assert encodable("g\udcff.jsonl") == r"g\udcff.jsonl"
    assert encodable("grün\n.jsonl") == "grün\n.jsonl"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("::error::x\n", "\\x3a:error::x\n"),
        ("  \t::set-output name=a::b\n", "  \t\\x3a:set-output name=a::b\n"),
        ("fine\n::error::x", "fine\n\\x3a:error::x"),
        ("\n\n::a\n::b\n", "\n\n\\x3a:a\n\\x3a:b\n"),
        ("a ::b:: c", "a ::b:: c"),
        (":one colon", ":one colon"),
        ("x ##[error]y", "x ##\\x5berror]y"),
        ("###[group]", "###\\x5bgroup]"),
        ("# [x] ## y", "# [x] ## y"),
        ("#\x1b[1m#\x1b[0m[error]", "#\x1b[1m#\x1b[0m\\x5berror]"),
        ("  \x1b[1m:\x1b[0m:error::", "  \x1b[1m\\x3a\x1b[0m:error::"),
        ("##\x1b[0m", "##\x1b[0m"),
    ],
)
def test_commands_for_the_runner_are_broken(line: str, expected: str) -> None:
    assert printable(line) == expected


@given(st.lists(st.sampled_from([":", "#", "[", " ", "\n", "\x1b[1m", "\x1b[0m", "e"]), max_size=14).map("".join))
def test_no_command_is_left_with_colours_or_without(text: str) -> None:
    for shown in (printable(text), click.unstyle(printable(text))):
        assert "##[" not in shown
        assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


@given(st.text(st.sampled_from([":", "#", "[", " ", "\n", "e"]), max_size=14))
def test_breaking_commands_loses_nothing(text: str) -> None:
    assert printable(text).replace(r"\x3a", ":").replace(r"\x5b", "[") == text


def test_blank_lines_before_a_command_are_not_searched_again_for_each_of_them() -> None:
    blank = "\n \t" * 100_000  # in time quadratic in the lines, this would not end
    assert printable(f"{blank}::error::") == f"{blank}\\x3a:error::"
    assert printable(f"{blank}x") == f"{blank}x"


@given(st.lists(st.sampled_from(["#", "[", "\x9b31m", "\x7f", "\x1b", "\n", "\u202e", "\U000e0041", "ü"]), max_size=9))
def test_nothing_in_json_acts_and_it_stays_equal(parts: list[str]) -> None:
    document = json.dumps({"id": "".join(parts)}, ensure_ascii=False, indent=2)
    shown = printable_json(document)
    assert json.loads(shown) == json.loads(document)
    assert "##[" not in shown
    assert visible(shown.replace("\n", "")) == shown.replace("\n", "")
