"""Problems and warnings of input files, collected so that all are reported at once."""

from typing import Self

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten
from ragcontract.files.problem import Problem
from ragcontract.files.repeated import Repeated, key_of
from ragcontract.files.schema import Mismatch

__all__ = ["Collector", "MoreProblems", "Problem", "Problems", "Warned"]


class Problems(Struct, frozen=True, kw_only=True):
    """Problems, which make the input unusable, and warnings, which do not.

    At most ``bounds.PROBLEMS`` are described; ``more`` counts the others.
    """

    problems: tuple[str, ...] = ()
    more: int = 0
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


class MoreProblems(Struct, frozen=True):
    """Problems that are only counted, because enough others are described."""

    count: int


class Warned(Struct, frozen=True):
    """A warning, which does not change the verdict.

    Of a ``field`` at ``location`` that is not read, ``meant`` is the right name if it looks misspelled, and ``advice``
    says what to do.
    """

    message: str
    field: str = ""
    meant: str = ""
    location: str = ""
    advice: str = ""

    @classmethod
    def of_field(cls, location: str, field: str, meant: str, advice: str) -> Self:
        """Return the warning about a field that is not read."""
        return cls(_not_read(location, field, advice), field=field, meant=meant, location=location, advice=advice)

    def in_rows(self, count: int) -> "Warned":
        """Return the warning about a field that is not read in so many rows, of which this is the first."""
        more = f" (and {count - 1:,} more such rows)" if count > 1 else ""
        return Warned(_not_read(self.location, self.field, self.advice, more))


def _not_read(location: str, field: str, advice: str, more: str = "") -> str:
    return f"{location}: unknown field {shorten(field, bounds.NAME)!r} is not read{more}; {advice}"


class Collector:
    """Collects problems and warnings while input is read; problems that repeat in a file are described once."""

    def __init__(self) -> None:
        """Start without problems and warnings."""
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

    def problem(self, location: str, message: str) -> None:
        """Add a problem at ``location`` (``golden.jsonl:17: relevant_doc_ids``), which makes the input unusable."""
        self.add(Problem(location, message))

    def mismatch(self, location: str, mismatch: Mismatch) -> None:
        """Add a problem for a mismatch in the value at ``location``."""
        self.add(Problem.of(location, mismatch))

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

    def found(self) -> Problems:
        """Return the problems and warnings collected so far."""
        groups, more = list(self._problems.values()), self._more
        only = groups[0] if len(groups) == 1 and not self._included else None
        if only and only.is_folded:  # what was only counted is of this sort, too
            numbered, more = only.described(more), 0
        else:
            numbered = sorted([*self._included, *(one for group in groups for one in group.described())])
        described = tuple(text for _, text in numbered)
        more += len(described[bounds.PROBLEMS :])
        return Problems(problems=described[: bounds.PROBLEMS], more=more, warnings=tuple(self._warnings))
