"""Problems and warnings of input files, collected so that all are reported at once."""

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
    """A warning, which does not change the verdict."""

    message: str


class Collector:
    """Collects problems and warnings while input is read; problems that repeat in a file are described once."""

    def __init__(self) -> None:
        """Start without problems and warnings."""
        self._problems: dict[object, Repeated | str] = {}
        self._described = 0
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
        elif isinstance(group := self._problems.get(key := key_of(event)), Repeated):
            self._described += group.add(event)
        elif self.full:
            self.count()
        else:
            self._problems[key] = Repeated(event)
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
            self._problems[len(self._problems), problem] = problem
            self._described += 1
        self._more += problems.more + len(problems.problems[room:])
        self._warnings += problems.warnings

    def found(self) -> Problems:
        """Return the problems and warnings collected so far."""
        groups = list(self._problems.values())
        only = groups[0] if len(groups) == 1 else None
        if isinstance(only, Repeated) and only.is_folded:  # what was only counted is of this sort, too
            return Problems(problems=tuple(only.lines(self._more)), warnings=tuple(self._warnings))
        described = [line for one in groups for line in ([one] if isinstance(one, str) else one.lines())]
        most = bounds.PROBLEMS
        more = self._more + len(described[most:])
        return Problems(problems=tuple(described[:most]), more=more, warnings=tuple(self._warnings))
