"""Normal forms: those of the standard library, in a time that is linear in the length of any text."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.answers.normalising import PIECE, composed, continues, pieces
from ragcontract.core import bounds
from tests.answers.work import grows_linearly

LETTERS = "ae\u0301\u0316\u0308ｶﾞ\u1100\u1161\u11a8가é各ﬁ½각\u09c7\u09be\u0b47\u0b3e "
MARKED = st.text(alphabet=st.sampled_from(LETTERS), max_size=400)


@given(MARKED)
@example("e\u0301" * PIECE)
@example("\u1100\u1161\u11a8" * PIECE)
@example("ｶﾞ" * PIECE)
def test_the_forms_are_those_of_the_standard_library(text: str) -> None:
    longest = max((len(one) for one in pieces(text)), default=0)
    assert longest <= PIECE
    assert "".join(pieces(text)) == text
    if not any(continues(one[0]) for one in list(pieces(text))[1:]):  # no run of marks was cut
        assert composed(text, "NFKC") == unicodedata.normalize("NFKC", text)
        assert composed(text) == unicodedata.normalize("NFC", text)


def test_text_is_never_cut_before_a_character_that_composes() -> None:
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and "<" not in parts[0]:
            first, second = (chr(int(part, 16)) for part in parts)
            if unicodedata.normalize("NFC", first + second) == chr(code):
                assert continues(second), f"U+{ord(second):04X}"


@pytest.mark.parametrize("letter", ["e\u0301", "\u1100\u1161\u11a8", "ｶﾞ", "\u09c7\u09be"])
def test_text_is_the_same_wherever_it_is_cut(letter: str) -> None:
    for before in range(PIECE - 4, PIECE + 1):
        text = "a" * before + letter
        assert composed(text, "NFKC") == unicodedata.normalize("NFKC", text)


def test_a_syllable_of_hangul_is_one_piece() -> None:
    vowels, finals = range(0x1161, 0x1176), range(0x11A8, 0x11C3)
    assert all(continues(chr(code)) for code in (*vowels, *finals))
    assert not any(map(continues, "aé가あ各1. "))


def test_an_answer_of_marks_takes_linear_time() -> None:
    """The standard library takes four times as long for twice the marks: an hour for a megabyte."""
    assert grows_linearly(lambda size: composed("a" + "\u0301\u0316" * size, "NFKC"), 20_000)


def test_a_text_that_grows_beyond_the_limit_is_refused_while_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "NORMAL", 5 * PIECE)
    assert composed("ﬃ" * PIECE + "a" * PIECE, "NFKC") == "ffi" * PIECE + "a" * PIECE
    with pytest.raises(CannotScoreError, match="2,048 characters, which is longer than 5,120 once ligatures"):
        composed("ﬃ" * 2 * PIECE, "NFKC")
