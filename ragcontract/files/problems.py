"""Problems and warnings of input files, collected so that all are reported at once, and the events of readers.

Problems that repeat from row to row are one message, with the lines that have them, because they are one mistake of an
export. Messages know which values they quote, so that they can leave them out.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Generic, Self, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds, phrase
from ragcontract.core.errors import InputError
from ragcontract.core.phrase import Location, Message, Place
from ragcontract.core.run import SourceFile
from ragcontract.core.safe_text import shorten
from ragcontract.files.schema import Mismatch


class Problem(Struct, frozen=True):
    """One problem; the place is a location, such as ``golden.jsonl:17: relevant_doc_ids``, or a path."""

    place: Place
    message: str
    is_located: bool = False  # the message begins with the place

    @classmethod
    def of(cls, place: Place, mismatch: Mismatch) -> "Problem":
        """Create a problem from a mismatch in the value at a place."""
        at = place if isinstance(place, Location) else Location(place)
        return cls(at.at(*mismatch.path) if mismatch.path else place, mismatch.message)

    def __str__(self) -> str:
        """Return the location and the message as one sentence."""
        message = phrase.cut(self.message, bounds.MESSAGE)
        if self.is_located:
            return message
        line = self.place if isinstance(self.place, Location) and self.place.line else None
        return Message.of(f"{shorten(str(self.place), bounds.MESSAGE)}: ", message, location=line)


class MoreProblems(Struct, frozen=True):
    """Problems that are only counted, because enough others are described."""

    count: int


class Warned(Struct, frozen=True):
    """A warning, which does not change the verdict. All but the message is about a field that is not read."""

    message: str
    field: str = ""
    meant: str = ""  # the right name, if the field looks misspelled
    location: Location = Location("")
    advice: str = ""  # what to do
    beside: str = ""  # the text of the field, if the right one is there, too

    @classmethod
    def of_field(cls, location: Location, field: str, meant: str, advice: str) -> Self:
        """Return the warning about a field that is not read."""
        return cls(_not_read(location, field, advice), field=field, meant=meant, location=location, advice=advice)

    def in_rows(self, count: int) -> "Warned":
        """Return the warning about a field that is not read in ``count`` rows, of which this is the first."""
        more = f" (and {count - 1:,} more such rows)" if count > 1 else ""
        return Warned(_not_read(self.location, self.field, self.advice, more))


def _not_read(location: Location, field: str, advice: str, more: str = "") -> str:
    return f"{location}: unknown field {shorten(field, bounds.NAME)!r} is not read{more}; {advice}"


class Problems(Struct, frozen=True, kw_only=True):
    """Problems, which make the input unusable, and warnings, which do not."""

    problems: tuple[str, ...] = ()  # at most ``bounds.PROBLEMS``
    more: int = 0  # how many other problems there are
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any problem; warnings do not count."""
        return bool(self.problems)

    def __add__(self, other: "Problems") -> "Problems":
        """Return the problems and warnings of both, in order."""
        both = (*self.problems, *other.problems)
        return Problems(
            problems=both[: bounds.PROBLEMS],
            more=self.more + other.more + len(both[bounds.PROBLEMS :]),
            warnings=(*self.warnings, *other.warnings),
        )

    def raise_if_any(self) -> None:
        """Raise :class:`InputError` with all problems, and with the warnings, which often explain a problem."""
        if self.problems:
            raise InputError(self.problems, more=self.more, warnings=self.warnings)


Row = TypeVar("Row")


class Batch(Struct, Generic[Row], frozen=True):
    """Valid rows of consecutive lines; ``line`` is the number of the first.

    A batch holds as many rows as fit into one block of the file, because yielding single rows would take as long as
    decoding them.
    """

    path: str
    line: int
    rows: list[Row]

    def location(self, index: int) -> Location:
        """Return the location of a row, such as ``golden.jsonl:17``."""
        return Location(self.path, self.line + index)


class FileRead(Struct, frozen=True):
    """A file was read to its end, or as far as possible."""

    file: SourceFile


Event: TypeAlias = Batch[Row] | FileRead | Problem | MoreProblems | Warned


class Collector:
    """Collects problems and warnings while input is read. Problems that repeat in a file are described once."""

    def __init__(self) -> None:
        self._problems: dict[object, Repeated] = {}
        self._included: list[tuple[int, str]] = []
        self._described = self._number = 0
        self._warnings: list[str] = []
        self._more = 0

    @property
    def full(self) -> bool:
        """Whether enough problems are described, so that further ones only need to be counted."""
        return self._described >= bounds.PROBLEMS

    def add(self, event: Problem | MoreProblems | Warned) -> None:
        """Add a problem or a warning from a reader."""
        if isinstance(event, Warned):
            self.warning(event.message)
        elif isinstance(event, MoreProblems):
            self.count(event.count)
        elif group := self._problems.get(key := key_of(event)):
            self._number += 1
            self._described += group.add(event, self._number)
        elif self.full:
            self.count()
        else:
            self._number += 1
            self._problems[key] = Repeated(event, self._number)
            self._described += 1

    def problem(self, place: Place, message: str) -> None:
        """Add a problem at ``place`` (``golden.jsonl:17: relevant_doc_ids``), which makes the input unusable."""
        self.add(Problem(place, message))

    def mismatch(self, place: Place, mismatch: Mismatch) -> None:
        """Add a problem for a mismatch in the value at ``place``."""
        self.add(Problem.of(place, mismatch))

    def count(self, more: int = 1) -> None:
        """Count problems without describing them."""
        self._more += more

    def warning(self, message: str) -> None:
        """Add a warning, which does not change the verdict."""
        self._warnings.append(shorten(message, bounds.MESSAGE))

    def include(self, problems: Problems) -> None:
        """Add the problems and warnings of another collector."""
        room = max(0, bounds.PROBLEMS - self._described)
        for problem in problems.problems[:room]:
            self._number += 1
            self._included.append((self._number, problem))
            self._described += 1
        self._more += problems.more + len(problems.problems[room:])
        self._warnings += problems.warnings

    def collected(self) -> Problems:
        """Return the problems and warnings collected so far."""
        groups, more = list(self._problems.values()), self._more
        only = groups[0] if len(groups) == 1 and not self._included else None
        if only and only.is_folded:  # the problems that were only counted are of this sort, too
            numbered, more = only.described(more), 0
        else:
            numbered = sorted([*self._included, *(item for group in groups for item in group.described())])
        described = tuple(text for _, text in numbered)
        more += len(described[bounds.PROBLEMS :])
        return Problems(problems=described[: bounds.PROBLEMS], more=more, warnings=tuple(self._warnings))


def located(events: Iterable[Event[Row]], problems: Collector) -> Iterator[tuple[Location, Row]]:
    """Yield each valid row with its location, and add all other events to ``problems``."""
    for event in events:
        match event:
            case Batch():
                for index, row in enumerate(event.rows):
                    yield event.location(index), row
            case FileRead():
                pass
            case _:
                problems.add(event)


FEW = 3  # problems that are each described in full
_VALUE = r"['\"0-9\[{]"  # how a value begins; compiled on first use, because most checks have no problem at all


def key_of(problem: Problem) -> tuple[str, tuple[str, ...], str] | Problem:
    """Return a key that problems of one sort share: file, field, and the message up to its first value.

    Names say what a message is about, so they are left out.
    """
    place = problem.place
    if not (isinstance(place, Location) and place.line):
        return problem
    field = tuple("[]" if isinstance(part, int) else part for part in place.field)
    parts = phrase.parts_of(problem.message)
    texts = (part if isinstance(part, str) else part.name for part in parts if isinstance(part, str) or part.said)
    return place.path, field, re.split(_VALUE, "".join(texts), maxsplit=1)[0]


class Repeated:
    """Problems of one sort; each has a ``number``, which is its position among all problems."""

    def __init__(self, first: Problem, number: int) -> None:
        self._first = [(number, first)]
        self._count = 1
        self._lines = _Ranges()

    @property
    def is_folded(self) -> bool:
        """Whether only the first problem is described, because there are more than a few."""
        return self._count > FEW

    def add(self, problem: Problem, number: int) -> int:
        """Add a problem; return how many descriptions that adds, which is negative when they are folded."""
        self._count += 1
        if self._count <= FEW:
            self._first.append((number, problem))
            return 1
        if self._count == FEW + 1:
            for _, first in self._first:
                self._lines.add(_line_of(first))
        self._lines.add(_line_of(problem))
        return 1 - FEW if self._count == FEW + 1 else 0

    def described(self, others: int = 0) -> list[tuple[int, str]]:
        """Return the number and text of each problem, or one text for all; ``others`` counts more on unknown lines."""
        if not self.is_folded:
            return [(number, str(problem)) for number, problem in self._first]
        number, first = self._first[0]
        more = f"{self._count - 1 + others:,} more like this"
        where = f"in lines {self._lines.text(open_ended=others > 0)}" if self._lines.several else "in this line"
        described = str(first)
        return [(number, Message.of(described, f" (and {more}, {where})", location=phrase.location_of(described)))]


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
    return problem.place.line if isinstance(problem.place, Location) else 0


def without_values(problems: Problems) -> Problems:
    """Return problems of files in which ``(not shown)`` stands for each value of a field."""
    return replace(
        problems,
        problems=tuple(map(phrase.without_values, problems.problems)),
        warnings=tuple(map(phrase.without_values, problems.warnings)),
    )
