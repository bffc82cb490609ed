"""Texts as words."""

import re
from unicodedata import category, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcontract.answers.similarity import _TOKEN, _UNSPACED, has_words, outline, outline_of, tokens
from tests.answers.texts import TEXTS


def words_in(text: str) -> list[str]:
    return [word.decode(errors="surrogatepass") for word in tokens(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Returns within 30 days, please!", ["returns", "within", "30", "days", "please"]),
        ("snake_case e.g. 3.5", ["snake_case", "e", "g", "3", "5"]),
        ("Straße GRÖSSE ﬁne Ⅷ", ["strasse", "grösse", "fine", "viii"]),
        ("e\u0301te\u0301 = été", ["été", "été"]),
        ("返品は３０日以内", ["返", "品", "は", "30", "日", "以", "内"]),
        ("カタカナのAPI", ["カ", "タ", "カ", "ナ", "の", "api"]),
        ("ﾊﾟｿｺﾝ", ["パ", "ソ", "コ", "ン"]),
        ("ราคา 5฿", ["ร", "า", "ค", "า", "5"]),
        ("Цена 5 ₽", ["цена", "5"]),
        ("… !?", []),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_digits_and_underscores_or_single_characters_without_blanks(
    text: str, words: list[str]
) -> None:
    assert words_in(text) == words


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_has_the_words_that_other_text_has(text: str) -> None:
    assert words_in(text) == words_in(f"{text} é")[:-1] == re.findall(r"\w+", text.casefold())


@given(st.text())
def test_case_and_composition_make_no_difference(text: str) -> None:
    assert tokens(normalize("NFKC", text)) == tokens(text)


LETTERS = st.sampled_from("aIJhTwkKſ İéßǰẗ＝ﬁ²½日カﾞเกุ่가가")
MARKS = st.characters(categories=["Mn", "Me"])
PARTS = st.sampled_from([" ", "=", "<", "`", "-", "_", "7", "\u00a0", "\u3000", "“", "…", "\ud800", "\x1c", "\x85"])


@given(st.lists(LETTERS | MARKS | PARTS | st.characters(), max_size=40).map("".join))
def test_the_words_of_all_parts_are_those_of_the_whole_text(text: str) -> None:
    assert words_in(text) == _TOKEN.findall(normalize("NFKC", text).casefold())


@given(st.lists(LETTERS | MARKS | PARTS | st.characters(), max_size=40).map("".join), st.slices(12))
def test_the_outline_of_words_that_follow_each_other_is_in_that_of_the_text(text: str, some: slice) -> None:
    following = tokens(text)[some.start : some.stop]
    assert outline_of(following) in outline(text)


def test_an_outline_has_nothing_but_ascii_letters_digits_and_underscores() -> None:
    assert outline("Grüße, “30” DAYS — snake_case: Ⅷ\u00a0日") == b"grsse30dayssnake_caseviii"


def test_a_text_without_blanks_has_the_words_that_it_has_with_blanks() -> None:
    assert words_in("日é" * 1_000) == ["日", "é"] * 1_000


def test_what_is_a_word_by_itself_is_a_letter_a_mark_a_digit_or_a_part_of_a_character() -> None:
    every = [char for char in map(chr, range(0x2E80)) if re.match(f"[{_UNSPACED}]", char)]
    every += [char for char in map(chr, range(0x2FE0, 0x10000)) if re.match(f"[{_UNSPACED}]", char)]
    assert {category(char)[0] for char in every} <= {"L", "M", "N"} | {"C"}
    assert [char for char in every if category(char) == "Cs"] == []


@given(TEXTS)
def test_a_text_has_words_if_any_are_found(text: str) -> None:
    assert has_words(text) == bool(tokens(text))
