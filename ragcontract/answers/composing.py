"""Unicode normalization in a time that is linear in the length of the text.

The standard library sorts the combining marks of a run one by one, which takes minutes for an answer that is one long
run of them. Here, text is normalized in short pieces, cut where no character combines with what is before it.
"""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.core import bounds

Form: TypeAlias = Literal["NFC", "NFKC"]
PIECE = 1024  # characters; a run of more marks than that, which no script has, is cut anywhere
# Vowels and final consonants of Hangul, and vowel signs of Kirat Rai: letters that compose with the letter before them.
_COMPOSING_LETTERS = frozenset(map(chr, (*range(0x1160, 0x1200), *range(0x16D63, 0x16D6B))))


def composed(text: str, form: Form = "NFC") -> str:
    """Return the text in a composed normal form.

    Raises :class:`CannotScoreError` if characters that stand for several, as ligatures do, make it too long.
    """
    if text.isascii():
        return text
    if len(text) <= PIECE:
        return unicodedata.normalize(form, text)
    parts: list[str] = []
    size = 0
    for piece in pieces(text):
        parts.append(unicodedata.normalize(form, piece))
        size += len(parts[-1])
        if size > bounds.NORMAL:
            raise CannotScoreError(
                f"has a text of {len(text):,} characters, which is longer than {bounds.NORMAL:,} once ligatures and "
                "the like are expanded for a comparison; shorten it"
            )
    return "".join(parts)


def pieces(text: str) -> Iterator[str]:
    """Yield the parts of a text that can be normalized on their own, each of at most ``PIECE`` characters."""
    start = 0
    while start < len(text):
        end = min(start + PIECE, len(text))
        cut = end
        while start < cut < len(text) and continues(text[cut]):
            cut -= 1
        end = cut if cut > start else end
        yield text[start:end]
        start = end


@lru_cache(maxsize=4096)
def continues(char: str) -> bool:
    """Return whether a character may combine with the one before it."""
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.category(first)[0] == "M" or first in _COMPOSING_LETTERS
