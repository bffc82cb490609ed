"""Whether an answer says anything: whether a reader sees a letter, a digit or a symbol in it."""

import unicodedata

from ragcontract.answers.answer_text import Answer
from ragcontract.core.invisible import without_invisible

_SEEN = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Sc", "Sm", "So"})
_MARKUP = frozenset("+<=>|~")  # symbols of ASCII that draw rules, tables, quotes and lists
# Lines and blocks that are drawn; letters and symbols that are blank; what stands for a lost or embedded object.
_DRAWN = frozenset(map(chr, range(0x2500, 0x25A0)))
_BLANK = frozenset("\u2800\ufffc\ufffd\U00013441\U00013442\U0001d159")


def says_something(answer: Answer) -> bool:
    """Return whether a reader sees a letter, a digit or a symbol; punctuation and markup alone say nothing.

    Code is seen as it is written: a tag in it is what the answer is about.
    """
    first = answer.text[:1]
    if first.isascii() and first.isalnum():  # the common case: nothing before it can be markup
        return True
    return _is_seen((answer.shown or answer).text)


def is_visible(text: str) -> bool:
    """Return whether a reader sees any character of a text: also punctuation, which can be searched for."""
    return any(
        not char.isspace() and char not in _BLANK and unicodedata.category(char)[0] not in "CM"
        for char in without_invisible(text)
    )


def has_letter(text: str) -> bool:
    """Return whether a text has a letter."""
    return any(char.isalpha() for char in without_invisible(text))


def _is_seen(text: str) -> bool:
    return any(unicodedata.category(char) in _SEEN and not _is_drawing(char) for char in text)


def _is_drawing(char: str) -> bool:
    return char in _MARKUP or char in _DRAWN or char in _BLANK
