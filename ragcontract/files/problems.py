"""What is wrong with files and what is odd about them, collected so that all of it is reported at once."""

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten
from ragcontract.files.schema import Mismatch, dotted

SHOWN = 50
LONGEST = 1_000  # an id may have megabytes


class Problems(Struct, frozen=True, kw_only=True):
    """Problems (the input cannot be judged; at most 50, and how many ``more`` there are) and warnings (it can)."""

    problems: tuple[str, ...] = ()
    more: int = 0
    warnings: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any problem; warnings are none."""
        return bool(self.problems)

    def __add__(self, other: "Problems") -> "Problems":
        """Put the other's after these."""
        both = (*self.problems, *other.problems)
        return Problems(
            problems=both[:SHOWN],
            more=self.more + other.more + len(both[SHOWN:]),
            warnings=(*self.warnings, *other.warnings),
        )

    def raise_if_any(self) -> None:
        """Raise :class:`InputError` with all problems, and the warnings beside them: they often explain a problem."""
        if self.problems:
            raise InputError(self.problems, more=self.more, warnings=self.warnings)


class Problem(Struct, frozen=True):
    """One problem, at ``golden.jsonl:17: relevant_doc_ids``."""

    location: str
    message: str

    @classmethod
    def of(cls, location: str, mismatch: Mismatch) -> "Problem":
        """Return the problem that a part of the value at a location does not fit its record."""
        return cls(f"{location}: {dotted(mismatch.path)}" if mismatch.path else location, mismatch.message)

    def __str__(self) -> str:
        """Write it as one sentence."""
        return f"{shorten(self.location, LONGEST)}: {shorten(self.message, LONGEST)}"


class MoreProblems(Struct, frozen=True):
    """Problems that nobody describes: enough others are."""

    count: int


class Warned(Struct, frozen=True):
    """Something odd that does not change the verdict."""

    message: str


class Collector:
    """Collects problems and warnings while something is read."""

    def __init__(self) -> None:
        """Start empty."""
        self._problems: list[str] = []
        self._warnings: list[str] = []
        self._more = 0

    @property
    def full(self) -> bool:
        """Whether enough problems are described: the next one need only be counted."""
        return len(self._problems) >= SHOWN

    def add(self, event: Problem | MoreProblems | Warned) -> None:
        """Note what a reader found."""
        if isinstance(event, Warned):
            self.warning(event.message)
        elif isinstance(event, MoreProblems) or self.full:
            self.count(event.count if isinstance(event, MoreProblems) else 1)
        else:
            self._problems.append(str(event))

    def problem(self, location: str, message: str) -> None:
        """Note that the thing at ``location`` (``golden.jsonl:17: relevant_doc_ids``) makes the input unusable."""
        self.add(Problem(location, message))

    def mismatch(self, location: str, mismatch: Mismatch) -> None:
        """Note that a part of the value at ``location`` does not fit its record."""
        self.add(Problem.of(location, mismatch))

    def count(self, more: int = 1) -> None:
        """Note problems without describing them."""
        self._more += more

    def warning(self, message: str) -> None:
        """Note something that does not change the verdict."""
        self._warnings.append(shorten(message, LONGEST))

    def include(self, problems: Problems) -> None:
        """Note what something else collected."""
        room = SHOWN - len(self._problems)
        self._problems += problems.problems[:room]
        self._more += problems.more + len(problems.problems[room:])
        self._warnings += problems.warnings

    def found(self) -> Problems:
        """Return what was collected so far."""
        return Problems(problems=tuple(self._problems), more=self._more, warnings=tuple(self._warnings))
