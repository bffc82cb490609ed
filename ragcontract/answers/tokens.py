"""Texts as sequences of words."""

import re
from collections.abc import Iterable
from functools import lru_cache

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.composing import composed

# Scripts that are written without blanks: Han, Hiragana, Katakana and Thai, by their letters, marks and digits.
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"
    "\u2e80-\u2e99\u2e9b-\u2ef3\u2f00-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_LOWER = "".join([chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)])
_BYTES = _LOWER.encode() + bytes(range(128, 256))  # of UTF-8
_NO_OUTLINE = bytes({*range(256)}.difference(_LOWER.replace(" ", "").encode()))
_SHORT = 64  # bytes: longer parts of a text are not remembered


def tokens(text: str) -> list[bytes]:
    """Return the words of a text in UTF-8, regardless of case and of forms of one character (NFKC, then casefolded).

    A word is a run of letters, digits and underscores. In scripts that are written without blanks, each character is a
    word.
    """
    # No character combines with an ASCII one that is in no word, so what is between those is looked at on its own, and
    # only if it is not ASCII: half of the time.
    parts = text.encode(errors="surrogatepass").translate(_BYTES).split()
    if text.isascii():
        return parts
    words: list[bytes] = []
    done = 0
    for at in [at for at, part in enumerate(parts) if not part.isascii()]:
        words += parts[done:at]
        words += _remembered(parts[at]) if len(parts[at]) <= _SHORT else _words(parts[at])
        done = at + 1
    words += parts[done:]
    return words


def outline(text: str) -> bytes:
    """Return the ASCII letters, digits and underscores of a text, regardless of case, and nothing between them.

    The outline of words that follow each other in the text is in it; others may be, too.
    """
    return _folded(text).encode(errors="surrogatepass").translate(None, _NO_OUTLINE)


def outline_of(words: Iterable[bytes]) -> bytes:
    """Return the outline of words, which are in UTF-8, as :func:`tokens` returns them."""
    return b"".join(words).translate(None, _NO_OUTLINE)


def has_words(text: str) -> bool:
    """Return whether a text has any words, as one that is too long for a comparison does."""
    try:
        return _TOKEN.search(_folded(text)) is not None
    except CannotScoreError:
        return True


def _words(part: bytes) -> list[bytes]:
    text = _folded(part.decode(errors="surrogatepass"))
    return [word.encode(errors="surrogatepass") for word in _TOKEN.findall(text)]


_remembered = lru_cache(maxsize=4096)(_words)


def _folded(text: str) -> str:
    return composed(text, "NFKC").casefold()
