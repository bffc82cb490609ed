"""Whether an answer says anything: whether a reader sees a letter, a digit or a symbol in it."""

import unicodedata

from ragcontract.answers.answer_text import Answer
from ragcontract.core.invisible import DRAWN_BLANK, without_invisible

_SEEN = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Sc", "Sm", "So"})
_MARKUP = frozenset("+<=>|~")  # symbols of ASCII that draw rules, tables, quotes and lists
# Lines and blocks that are drawn.
_DRAWN = frozenset(map(chr, range(0x2500, 0x25A0)))
# What programs write in place of a text that they do not have. A person who answers with such a word writes "None." or
# "none"; "No" and "0" are answers.
_NO_TEXT = frozenset({"None", "null", "NULL", "undefined", "nan", "NaN", "nil", "<nil>", "<NA>", "[object Object]"})
_NO_TEXT_LENGTH = 100  # characters, also invisible ones, in which such a word is looked for


def says_something(answer: Answer) -> bool:
    """Return whether a reader sees a letter, a digit or a symbol; punctuation and markup alone say nothing.

    Neither does what programs write for nothing. Code is seen as it is written: a tag in it is what an answer is about.
    """
    if stands_for_nothing(answer.text):
        return False
    first = answer.text[:1]
    if first.isascii() and first.isalnum():  # the common case: nothing before it can be markup
        return True
    return _is_seen((answer.shown or answer).text)


def stands_for_nothing(text: str) -> bool:
    """Return whether a whole text is what programs write for a missing one, such as Python's ``None``."""
    return len(text) <= _NO_TEXT_LENGTH and without_invisible(text).strip() in _NO_TEXT


def has_letter(text: str) -> bool:
    """Return whether a text has a letter."""
    return any(char.isalpha() for char in without_invisible(text))


def _is_seen(text: str) -> bool:
    return any(unicodedata.category(char) in _SEEN and not _is_drawing(char) for char in text)


def _is_drawing(char: str) -> bool:
    return char in _MARKUP or char in _DRAWN or char in DRAWN_BLANK
