"""Brings texts into the form in which they are compared, and traces each part of it to the original text.

Texts are compared without regard to case, accents of Greek letters, quotes, dashes, Markdown emphasis, blanks and
invisible characters. Letters and digits that are drawn in another way are plain ones: 𝐬, ｓ, 🆂, ⒮ and a struck-through
s̶ all read "s". The same steps change the text that is searched for and the answer. The form of an answer can be traced,
so that a message quotes the words that the application said.

Unicode normalization takes a time that is linear in the length of the text. The standard library sorts the combining
marks of a run one by one, which takes minutes for an answer that is one long run of them. Here, text is normalized in
short pieces, cut where no character combines with the one before it.

Words end between blanks in most scripts, anywhere in scripts without blanks, and before a raised mark.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from typing import Literal, TypeAlias

from msgspec import Struct

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.core import bounds
from ragcontract.core.invisible import DRAWN_BLANK, invisible_characters, without_invisible

Span: TypeAlias = tuple[int, int]
Change: TypeAlias = tuple[int, int, str]  # start and end in the old text, and what replaces it


class Traced(Struct, frozen=True):
    """A text that was changed, with the steps that led to it."""

    text: str
    steps: tuple["Step", ...]

    def span(self, start: int, end: int) -> Span:
        """Return the span of the original text that became ``text[start:end]``."""
        for step in reversed(self.steps):
            start, end = step.span(start, end)
        return start, end


class Step(Struct, frozen=True):
    """The parts of a text that a step left as they were."""

    new: list[int]  # their starts in the new text
    old: list[int]  # their starts in the old text
    lengths: list[int]
    end: int  # of the old text

    def span(self, start: int, end: int) -> Span:
        """Return the span of the old text that became this span of the new one."""
        return self._old(start)[0], self._old(end - 1)[1] if end > start else self._old(start)[0]

    def _old(self, position: int) -> Span:
        at = bisect_right(self.new, position) - 1
        if at >= 0 and (offset := position - self.new[at]) < self.lengths[at]:
            return self.old[at] + offset, self.old[at] + offset + 1
        start = self.old[at] + self.lengths[at] if at >= 0 else 0
        return start, self.old[at + 1] if at + 1 < len(self.old) else self.end


class Form(Struct, frozen=True):
    """How texts are compared."""

    normalise: bool = True  # whether in normal form, or as they are
    ignore_case: bool = True
    raised: bool = True  # whether marks after words, as superscripts, are the characters that they show, or blanks


DEFAULT = Form()


def normalised(text: str, form: Form = DEFAULT, *, links: bool = True) -> str:
    """Return the text in the form in which it is compared; without ``links``, brackets are not taken for links."""
    if form.normalise:
        return _without_marks(_folded(without_invisible(text), form), links=links)
    return _folded(text, form)


def _folded(text: str, form: Form) -> str:
    if form.normalise:
        text = plain(text if form.raised else _RAISED.sub(" ", text))
    return _without_case(text) if form.ignore_case else text


def _without_case(text: str) -> str:
    """Return the text without case; Greek letters have no accents, because their capitals are written without them."""
    text = text.casefold()
    if text.isascii() or not _GREEK.search(text):
        return text
    return _GREEK_ACCENTS.sub("", text.translate(_bare_greek()))


@cache
def _bare_greek() -> dict[int, str]:
    letters = [char for char in map(chr, (*range(0x370, 0x400), *range(0x1F00, 0x2000))) if char.isalpha()]
    return {ord(char): unicodedata.normalize("NFD", char)[0] for char in letters}


@lru_cache(maxsize=4096)
def wanted(text: str, form: Form = DEFAULT) -> str:
    """Return a text of the contract in the form in which it is searched for."""
    return normalised(text, form)


def simplified(text: str) -> str:
    """Return the text with simple quotes and dashes, character by character."""
    if not text.isascii():
        for char in _SIMPLER.keys() & frozenset(text):  # str.translate: ten times as long
            text = text.replace(char, _SIMPLER[char])
    return text


def _without_marks(text: str, *, links: bool) -> str:
    text = simplified(text)
    if links and "](" in text:
        text = LINK.sub(r"\1\2", text)
    if "**" in text or "__" in text or "`" in text:
        text = _EMPHASIS.sub("", text)
    return " ".join(text.split())


def traced(text: str, form: Form = DEFAULT, *, links: bool = True) -> Traced:
    """Return the text in the form in which it is compared, with its origin; slower than :func:`normalised`."""
    tracing = Tracing(text)
    if form.normalise:
        tracing.take(invisible(text))
    tracing.take(by_cluster(tracing.text, partial(_folded, form=form)))
    if form.normalise:
        tracing.text = simplified(tracing.text)
        tracing.take(link_targets(tracing.text) if links else ())
        tracing.take(replaced(_EMPHASIS, tracing.text))
        tracing.take(replaced(_BLANKS, tracing.text, _one_blank))
    return tracing.result()


def invisible(text: str) -> Iterator[Change]:
    """Yield the changes that remove the characters that nobody sees."""
    if without_invisible(text) != text:
        hidden = invisible_characters()
        yield from ((at, at + 1, "") for at, char in enumerate(text) if char in hidden)


def by_cluster(text: str, change: Callable[[str], str]) -> Iterator[Change]:
    """Yield the changes of a function to the characters of a text, each together with those that combine with it."""
    changed = lru_cache(maxsize=1024)(change)  # a text has few different characters
    start = 0
    for piece in [text] if text.isascii() else pieces(text):
        for cluster in [piece] if piece.isascii() else _clusters(piece):
            if (new := changed(cluster)) != cluster:
                yield start, start + len(cluster), new
            start += len(cluster)


def _clusters(piece: str) -> Iterator[str]:
    start = 0
    for at in range(1, len(piece)):
        if not continues(piece[at]):
            yield piece[start:at]
            start = at
    yield piece[start:]


def link_targets(text: str) -> Iterator[Change]:
    """Yield the changes that reduce links to their text and their title."""
    for link in LINK.finditer(text):
        yield link.start(), link.start(1), ""
        if link[2]:
            yield link.end(1), link.start(2), ""
        yield link.end(2 if link[2] else 1), link.end(), ""


def _one_blank(blanks: re.Match[str]) -> str:
    return " " if blanks.start() and blanks.end() < len(blanks.string) else ""


class Tracing:
    """Changes a text step by step."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps: list[Step] = []

    def take(self, changes: Iterable[Change]) -> None:
        """Make changes of the text as it is now, from left to right."""
        if made := list(changes):
            self.text, step = _changed(self.text, made)
            self._steps.append(step)

    def result(self) -> Traced:
        """Return the text with the steps so far."""
        return Traced(self.text, tuple(self._steps))


def replaced(pattern: re.Pattern[str], text: str, by: str | Callable[[re.Match[str]], str] = "") -> Iterator[Change]:
    """Yield the changes that replace each match of a pattern."""
    for match in pattern.finditer(text):
        yield match.start(), match.end(), by if isinstance(by, str) else by(match)


def flowing(text: str) -> Traced:
    """Return a text with one blank for each run of blanks within a paragraph, as pages show it."""
    tracing = Tracing(text)
    tracing.take(replaced(_BROKEN, text, " "))
    return tracing.result()


def trimmed(text: str) -> Traced:
    """Return a text without the blanks and the marks of blocks around its lines; a block begins after a blank line."""
    tracing = Tracing(text)
    tracing.take(replaced(_LINE_START, text, lambda start: "\n" if start["marks"] else ""))
    tracing.take(replaced(_LINE_END, tracing.text))
    tracing.take(replaced(_ENDS, tracing.text))
    return tracing.result()


def _changed(text: str, changes: Iterable[Change]) -> tuple[str, Step]:
    """Return the text with the changes, and the parts between them.

    A change that keeps the length belongs to the part around it, because characters correspond. Several characters that
    compose to as many others do not.
    """
    parts: list[str] = []
    step = Step([], [], [], len(text))
    size = at = begin = 0  # lengths of the new and of the old text so far, and where the part begins in the old one

    def keep(end: int) -> None:
        nonlocal size
        if end > begin:
            step.new.append(size)
            step.old.append(begin)
            step.lengths.append(end - begin)
            size += end - begin

    for start, end, replacement in changes:
        parts += [text[at:start], replacement]
        at = end
        if len(replacement) != end - start or (end - start > 1 and not replacement.isascii()):
            keep(start)
            size += len(replacement)
            begin = end
    keep(len(text))
    parts.append(text[at:])
    return "".join(parts), step


UnicodeForm: TypeAlias = Literal["NFC", "NFKC"]
PIECE = 1024  # characters; a run of more marks than that, which no script has, is cut anywhere
# Vowels and final consonants of Hangul, and vowel signs of Kirat Rai: letters that compose with the letter before them.
_COMPOSING_LETTERS = frozenset(map(chr, (*range(0x1160, 0x1200), *range(0x16D63, 0x16D6B))))


def composed(text: str, form: UnicodeForm = "NFC") -> str:
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


_LATIN = 26
# Alphabets that NFKC leaves as they are, or writes in parentheses, by their first letter, and the plain first letter.
_ALPHABETS = {0x249C: "a", 0x1F110: "A", 0x1F150: "A", 0x1F170: "A"}
_DIGITS = (  # in circles and in parentheses
    *(*range(0x2474, 0x247D), *range(0x24F5, 0x24FE), 0x24FF),
    *(*range(0x2776, 0x277F), *range(0x2780, 0x2789), *range(0x278A, 0x2793)),
)
_PRIMES = {"´": "'", "˝": '"', "″": '"', "‶": '"'}  # NFKC turns them into a blank and a mark, or into two primes
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


# Han, kana and bopomofo, Yi; Thai and Lao, Burmese, Khmer, Tai, Balinese and Javanese.
UNSPACED = (
    r"⺀-⿟々-〇〡-〩〸-〼\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff\uff66-\uff9f"
    r"\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
    r"\u0e00-\u0eff\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaadf\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9df"
)
# Marks after a word, which read as digits or letters in normal form: superscripts, digits in circles, ™ and ℠.
RAISED = "¹²³⁰⁴-⁹ªº™℠①-⑳⓪⓫-⓿❶-➓"
_AFFIXES = r"\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"

has_raised = re.compile(f"[{RAISED}]").search
is_no_part_of_words = re.compile(f"[{UNSPACED}{RAISED}]").match  # a character beside which any word may end
# Scripts that write no blanks around words, or, as Hebrew, Arabic and Korean, affixes without a blank.
is_written_together = re.compile(f"[{UNSPACED}{_AFFIXES}]").search


# Unicode's category Pd and other characters drawn as dashes; its property Quotation_Mark, apostrophes and primes.
_DASHES = "֊־᐀᠆‐‑‒–—―⸗⸚⸺⸻⹀⹝〜〰゠︱︲﹘﹣－\U00010ead−˗⁃➖"
_SINGLE, _DOUBLE = "‘’‚‛‹›′‵ʹʻʼʽʾʿˈˊ׳ꞌ❛❜❟", "“”„‟«»″‶ʺ״⹂「」『』〝〞〟❝❞❠\U0001f676\U0001f677\U0001f678"
_SIMPLER = {char: simple for simple, chars in (("-", _DASHES), ("'", _SINGLE), ('"', _DOUBLE)) for char in chars}
TARGET = r"(?:<[^<>\s]*>|(?:[^\s()<>]|\([^\s()]*\))*+)"
TITLE = r"""(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\))"""
# A target has no blanks, so [note](the salary is 180,000) keeps its text. People see the title that may follow it.
LINK = re.compile(rf"!?\[([^\[\]\n]*)\]\([^\S\n]*+{TARGET}([^\S\n]++{TITLE})?[^\S\n]*+\)")
_EMPHASIS = re.compile(r"\*\*|__|`")
_BLANKS = re.compile(r"\s+")
_RAISED = re.compile(f"[{RAISED}]")
_GREEK = re.compile("[\u0370-\u03ff\u1f00-\u1fff]")
_GREEK_ACCENTS = re.compile("(?<=[α-ω])[\u0300-\u036f]+")
_BROKEN = re.compile(r"(?<=\S)[^\S\n]*\n(?![^\S\n]*(?:\n|[-*+>|#]|\d+[.)]\s|`{3}|~{3}))[^\S\n]*|[^\S\n]{2,}|[^\S\n ]")
_DRAWN = "".join(sorted(DRAWN_BLANK))
_SPACE = rf"(?:[^\S\n]|[{_DRAWN}])"
# A line that is a rule, and the marks of headings, lists, tasks, quotes and tables.
_LINE_START = re.compile(
    rf"^{_SPACE}*+(?P<marks>[-=*_|:+](?:[-=*_|:+]|{_SPACE})*+$"
    rf"|(?:(?:[-*+]|\d{{1,9}}[.)]|\#{{1,6}}|\[[ xX]\])(?:{_SPACE}++|$)|[>|•◦▪▫●○■□‣·]{_SPACE}*+)*+)",
    re.MULTILINE,
)
_LINE_END = re.compile(rf"(?<![\s{_DRAWN}|])(?:{_SPACE}*+\|++|{_SPACE}++\#++)?{_SPACE}*+$", re.MULTILINE)
_ENDS = re.compile(r"\A\s+|(?<!\s)\s+\Z")
