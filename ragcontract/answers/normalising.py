"""How texts are compared: without regard to case, quotes, dashes, Markdown emphasis and blanks.

What is searched for and what is searched are brought into the same form by the same steps. The form of an answer can be
traced, so that a message quotes the words that the application said.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from ragcontract.answers.composing import composed, continues, pieces

Span: TypeAlias = tuple[int, int]

_SAME = str.maketrans("’‘ʼ“”„‐‑–—−", "'''\"\"\"-----")
# Zero-width: space, joiners, direction marks, word joiner, byte order mark; soft hyphen.
_NO_WIDTH = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_ZERO_WIDTH = re.compile(f"[{_NO_WIDTH}]")
_SIMPLER = {**{chr(char): chr(same) for char, same in _SAME.items()}, **dict.fromkeys(_NO_WIDTH, "")}
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*\)")
_EMPHASIS = re.compile(r"\*\*|__|`")
_BLANKS = re.compile(r"\s+")


class Form(Struct, frozen=True):
    """How texts are compared: in the normal form or as they are, with case or without."""

    normalise: bool = True
    ignore_case: bool = True


DEFAULT = Form()


def normalised(text: str, form: Form = DEFAULT) -> str:
    """Return the text in the form in which it is compared."""
    if form.normalise:
        text = composed(text, "NFKC")
    if form.ignore_case:
        text = text.casefold()
    return _plain(text) if form.normalise else text


@lru_cache(maxsize=4096)
def wanted(text: str, form: Form = DEFAULT) -> str:
    """Return a text of the contract in the form in which it is searched for."""
    return normalised(text, form)


def _plain(text: str) -> str:
    if not text.isascii():
        for char, simpler in _SIMPLER.items():  # str.translate: ten times as long
            text = text.replace(char, simpler)
    if "](" in text:
        text = _LINK.sub(r"\1", text)
    if "**" in text or "__" in text or "`" in text:
        text = _EMPHASIS.sub("", text)
    return " ".join(text.split())


class Traced(Struct, frozen=True):
    """A text in normal form, with the steps that led to it, each as the parts that it left as they were."""

    text: str
    steps: tuple["_Step", ...]

    def span(self, start: int, end: int) -> Span:
        """Return the span of the original text that became ``text[start:end]``."""
        for step in reversed(self.steps):
            start, end = step.span(start, end)
        return start, end


class _Step(Struct, frozen=True):
    """The parts that a step left as they were: their starts in the new text, in the old one, and their lengths."""

    new: list[int]
    old: list[int]
    lengths: list[int]
    end: int  # of the old text

    def span(self, start: int, end: int) -> Span:
        """Return the span of the old text that became this span of the new one."""
        return self._old(start)[0], self._old(end - 1)[1] if end > start else self._old(start)[0]

    def _old(self, position: int) -> Span:
        """Return the old span of one character of the new text."""
        at = bisect_right(self.new, position) - 1
        if at >= 0 and (offset := position - self.new[at]) < self.lengths[at]:
            return self.old[at] + offset, self.old[at] + offset + 1
        start = self.old[at] + self.lengths[at] if at >= 0 else 0
        return start, self.old[at + 1] if at + 1 < len(self.old) else self.end


Change: TypeAlias = tuple[int, int, str]  # start and end in the old text, and what replaces it


def traced(text: str, form: Form = DEFAULT) -> Traced:
    """Return the text in the form in which it is compared, with its origin; slower than :func:`normalised`."""
    steps: list[_Step] = []

    def take(changes: Iterable[Change]) -> None:
        nonlocal text
        text, step = _changed(text, changes)
        steps.append(step)

    take(_letters(text, form))
    if form.normalise:
        text = text.translate(_SAME)  # one character for one
        take(_replaced(_ZERO_WIDTH, text, lambda _: ""))
        take(_link_targets(text))
        take(_replaced(_EMPHASIS, text, lambda _: ""))
        take(_replaced(_BLANKS, text, lambda found: " " if found.start() and found.end() < len(found.string) else ""))
    return Traced(text, tuple(steps))


def _letters(text: str, form: Form) -> Iterator[Change]:
    """Yield what normalization and case folding change."""
    start = 0
    for piece in [text] if text.isascii() else pieces(text):
        for cluster in [piece] if piece.isascii() else _clusters(piece):
            folded = composed(cluster, "NFKC") if form.normalise else cluster
            folded = folded.casefold() if form.ignore_case else folded
            if folded != cluster:
                yield start, start + len(cluster), folded
            start += len(cluster)


def _clusters(piece: str) -> Iterator[str]:
    start = 0
    for at in range(1, len(piece)):
        if not continues(piece[at]):
            yield piece[start:at]
            start = at
    yield piece[start:]


def _replaced(pattern: re.Pattern[str], text: str, by: Callable[[re.Match[str]], str]) -> Iterator[Change]:
    return ((found.start(), found.end(), by(found)) for found in pattern.finditer(text))


def _link_targets(text: str) -> Iterator[Change]:
    for found in _LINK.finditer(text):
        yield found.start(), found.start(1), ""
        yield found.end(1), found.end(), ""


def _changed(text: str, changes: Iterable[Change]) -> tuple[str, _Step]:
    """Return the text with the changes, and the parts between them.

    A change of equal length is part of its part: character for character, but where several compose anew.
    """
    parts: list[str] = []
    step = _Step([], [], [], len(text))
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
