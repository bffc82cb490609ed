"""Texts that were changed, and where in the original text each part of them was."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

Span: TypeAlias = tuple[int, int]
Change: TypeAlias = tuple[int, int, str]  # start and end in the old text, and what replaces it


class Traced(Struct, frozen=True):
    """A text that was changed, with the steps that led to it, each as the parts that it left as they were."""

    text: str
    steps: tuple["Step", ...]

    def span(self, start: int, end: int) -> Span:
        """Return the span of the original text that became ``text[start:end]``."""
        for step in reversed(self.steps):
            start, end = step.span(start, end)
        return start, end


class Step(Struct, frozen=True):
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


class Tracing:
    """Changes a text step by step."""

    def __init__(self, text: str) -> None:
        """Start with the original text."""
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


def _changed(text: str, changes: Iterable[Change]) -> tuple[str, Step]:
    """Return the text with the changes, and the parts between them.

    A change of equal length is part of its part: character for character, but where several compose anew.
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
