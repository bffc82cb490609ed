"""Characters that nobody sees, which can hide a word from a comparison: ``sec<U+200B>ret`` reads "secret".

They are the format characters and controls of the Unicode data in use (except line ends and tabs) and what Unicode
calls Default_Ignorable_Code_Point: fillers, variation selectors, tags.
"""

import re
from functools import cache
from typing import Any

from ragcontract.core.lines import Line

UNICODEDATA: Line[Any] = Line(home="unicodedata")  # needed for few texts
# The other characters of Default_Ignorable_Code_Point, which Python's data does not have. They are the properties
# Other_Default_Ignorable_Code_Point and Variation_Selector of Unicode's PropList.txt, unassigned code points included.
_IGNORABLE = (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0, *range(0x180B, 0x1810))
_IGNORABLE_RANGES = (range(0xFE00, 0xFE10), range(0xFFF0, 0xFFF9), range(0xE0000, 0xE1000))
# Letters and symbols that are drawn blank, and replacement characters of lost or embedded objects.
DRAWN_BLANK = frozenset("\u2800\ufffc\ufffd\U00013441\U00013442\U0001d159")
_BLANK_CATEGORIES = frozenset("\t\n\v\f\r\x85")  # controls with the property White_Space
_ASCII = re.compile("[\x00-\x08\x0e-\x1f\x7f]")
_FORMAT_CHARACTERS_END = 0x20000  # those after it are among the ignorable ones


def without_invisible(text: str) -> str:
    """Return a text without the characters that nobody sees."""
    if text.isascii():
        return text if text.isprintable() else _ASCII.sub("", text)  # the common case, and much faster
    if _is_seen_whole(text):
        return text
    hidden = invisible_characters().intersection(text)
    return text.translate(dict.fromkeys(map(ord, hidden))) if hidden else text


def folded(name: str) -> str:
    """Return a name as a reader tells names apart: without invisible characters, in one width and in lower case."""
    if name.isascii():  # it has one width already, and Unicode's data need not be imported
        return without_invisible(name).casefold()
    return without_invisible(UNICODEDATA.load().normalize("NFKC", name)).casefold()


def is_visible(text: str) -> bool:
    """Return whether a reader sees any character of a text. Punctuation counts, because it can be searched for."""
    category = UNICODEDATA.load().category
    return any(
        not char.isspace() and char not in DRAWN_BLANK and category(char)[0] not in "CM"
        for char in without_invisible(text)
    )


def _is_seen_whole(text: str) -> bool:
    """Return whether a quick look, which is enough for nearly every text, shows that it has no such character."""
    if not text.replace("\n", "").isprintable() or len(text.encode("utf-16-le", "surrogatepass")) > 2 * len(text):
        return False
    return not any(map(text.__contains__, _printable()))


@cache
def _printable() -> tuple[str, ...]:
    """Return the characters in the range of 16 bits that nobody sees, although ``str.isprintable`` accepts them."""
    return tuple(sorted(char for char in invisible_characters() if char.isprintable() and char <= "\uffff"))


@cache
def invisible_characters() -> frozenset[str]:
    """Return the characters that nobody sees; made on first use, because that takes some milliseconds."""
    ignorable = {chr(code) for codes in (_IGNORABLE, *_IGNORABLE_RANGES) for code in codes}
    category = UNICODEDATA.load().category
    unprintable = (char for char in map(chr, range(_FORMAT_CHARACTERS_END)) if not char.isprintable())
    return frozenset(ignorable | {char for char in unprintable if category(char) in {"Cc", "Cf"}} - _BLANK_CATEGORIES)
