"""Problems that repeat from row to row: one mistake of an export is one message, with the lines that have it."""

import re

from ragcontract.core import bounds
from ragcontract.files.problem import Problem

FEW = 3  # problems that are each described in full
# Patterns are compiled on first use: most checks have no problem at all.
_LOCATION = r"(?s:(?P<file>.+?):(?P<line>[0-9]+)(?:: (?P<field>.*))?)"
_QUERY = r'query "(?:[^"\\]|\\.)*" '  # whom a message is about
_SORT = r"[^'\"0-9\[{]*"  # a message up to the first value in it


def key_of(problem: Problem) -> tuple[str, str, str] | Problem:
    """Return what problems of one sort have in common: file, field, start of the message."""
    if not (found := re.fullmatch(_LOCATION, problem.location)):
        return problem
    start = re.match(_SORT, re.sub(_QUERY, "", problem.message, count=1))
    return found["file"], re.sub(r"\[[0-9]+\]", "[]", found["field"] or ""), start[0] if start else ""


class Repeated:
    """Problems of one sort."""

    def __init__(self, first: Problem, number: int) -> None:
        """Start with the first of them; ``number`` is its position among all problems."""
        self._first = [(number, first)]
        self._count = 1
        self._lines = _Ranges()

    @property
    def is_folded(self) -> bool:
        """Whether only the first problem is described, because there are more than a few."""
        return self._count > FEW

    def add(self, problem: Problem, number: int) -> int:
        """Add a problem; returns how many more descriptions there are, which is negative once they are folded."""
        self._count += 1
        if self._count <= FEW:
            self._first.append((number, problem))
            return 1
        if self._count == FEW + 1:
            for _, one in self._first:
                self._lines.add(_line_of(one))
        self._lines.add(_line_of(problem))
        return 1 - FEW if self._count == FEW + 1 else 0

    def described(self, others: int = 0) -> list[tuple[int, str]]:
        """Return number and text of each problem, or one text for all; ``others`` are further ones of unknown lines."""
        if not self.is_folded:
            return [(number, str(problem)) for number, problem in self._first]
        number, first = self._first[0]
        more = f"{self._count - 1 + others:,} more like this"
        where = f"in lines {self._lines.text(open_ended=others > 0)}" if self._lines.several else "in this line"
        return [(number, f"{first} (and {more}, {where})")]


class _Ranges:
    """Line numbers in ascending order, as ranges."""

    def __init__(self) -> None:
        self._ranges: list[list[int]] = []
        self._cut = False

    @property
    def several(self) -> bool:
        return len(self._ranges) > 1 or self._ranges[0][0] < self._ranges[0][1]

    def add(self, line: int) -> None:
        if self._ranges and self._ranges[-1][0] <= line <= self._ranges[-1][1] + 1:
            self._ranges[-1][1] = max(line, self._ranges[-1][1])
        elif len(self._ranges) < bounds.LINE_RANGES:
            self._ranges.append([line, line])
        else:
            self._cut = True

    def text(self, *, open_ended: bool) -> str:
        ranges = [str(first) if first == last else f"{first} to {last}" for first, last in self._ranges]
        return ", ".join([*ranges, *(["…"] if self._cut or open_ended else [])])


def _line_of(problem: Problem) -> int:
    found = re.fullmatch(_LOCATION, problem.location)
    return int(found["line"]) if found else 0
