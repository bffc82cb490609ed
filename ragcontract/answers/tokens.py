"""Texts as sequences of words."""

import re

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
_ASCII = "".join([chr(code) if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)])
_BYTES = _ASCII.encode() + bytes(range(128, 256))  # of UTF-8


def tokens(text: str) -> list[str]:
    """Return the words of a text, regardless of case and of forms of one character (NFKC, then casefolded).

    A word is a run of letters, digits and underscores. In scripts that are written without blanks, each character is a
    word.
    """
    return words_of(folded(text))


def has_words(text: str) -> bool:
    """Return whether a text has any words, as one that is too long for a comparison does."""
    try:
        return _TOKEN.search(folded(text)) is not None
    except CannotScoreError:
        return True


def folded(text: str) -> str:
    """Return a text in the form in which its words are compared."""
    return text.lower() if text.isascii() else composed(text, "NFKC").casefold()


def words_of(text: str) -> list[str]:
    """Return the words of a folded text."""
    if text.isascii():  # the same at a fifth of the time
        return text.translate(_ASCII).split()
    # What is between ASCII characters that are in no word is searched only if it is not ASCII: half of the time.
    parts = text.encode(errors="surrogatepass").translate(_BYTES).decode(errors="surrogatepass").split()
    return [word for part in parts for word in ((part,) if part.isascii() else _TOKEN.findall(part))]
