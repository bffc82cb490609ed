"""Letters and digits that are drawn in another way, as plain ones: 𝐬, ｓ, 🆂, ⒮ and a struck-through s̶ all read "s"."""

import re
import unicodedata
from functools import cache

from ragcontract.answers.composing import composed

_LATIN = 26
# What NFKC leaves as it is, or writes in parentheses: the first of 26 letters, and the plain one that it stands for.
_ALPHABETS = {0x249C: "a", 0x1F110: "A", 0x1F150: "A", 0x1F170: "A"}
_DIGITS = (  # in circles and in parentheses
    *(*range(0x2474, 0x247D), *range(0x24F5, 0x24FE), 0x24FF),
    *(*range(0x2776, 0x277F), *range(0x2780, 0x2789), *range(0x278A, 0x2793)),
)
_PRIMES = {"´": "'", "˝": '"', "″": '"', "‶": '"'}  # of which NFKC makes a blank and a mark, or two primes
# Marks drawn over, around, above or below a letter that change no letter of any alphabet: lines, strokes, frames.
_OVERLAYS = "\u0305\u0332\u0333\u033f\u0334-\u0338\u20d2\u20d3\u20d8-\u20da\u20e5\u20e6\u20ea\u20eb"
_FRAMES = "\u0488\u0489\u1abe\u20dd-\u20e0\u20e2-\u20e4\ua670-\ua672"
_DRAWN_OTHERWISE = re.compile("[´˝″‶\u2474-\u2793\U0001f110-\U0001f189]")
_ANY_MARK = re.compile(f"[{_OVERLAYS}{_FRAMES}\u0307]")  # much faster to look for
_MARKS = re.compile(rf"(?<=\w)[{_OVERLAYS}{_FRAMES}]+|(?<=[ij])\u0307")


def plain(text: str) -> str:
    """Return a text in Unicode's simplest form (NFKC), with plain letters for those that are drawn otherwise."""
    if text.isascii():
        return text
    if _DRAWN_OTHERWISE.search(text):
        text = text.translate(_plain_letters())
    text = composed(text, "NFKC").replace("\u0130", "I")
    return _MARKS.sub("", text) if _ANY_MARK.search(text) else text


@cache
def _plain_letters() -> dict[int, str]:
    letters = {first + at: chr(ord(to) + at) for first, to in _ALPHABETS.items() for at in range(_LATIN)}
    digits = {code: str(unicodedata.digit(chr(code))) for code in _DIGITS}
    return letters | digits | {ord(prime): quote for prime, quote in _PRIMES.items()}
