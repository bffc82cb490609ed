"""Collects what is wrong and what is odd while files are read, so that all of it is said at once."""

from collections.abc import Iterable

from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten
from ragcontract.files.schema import Mismatch, dotted

SHOWN = 50
LONGEST = 1_000  # an id may have megabytes


class Diagnostics:
    """Problems (the input cannot be judged) and warnings (it can, but somebody should know)."""

    def __init__(self) -> None:
        """Start empty."""
        self.warnings: list[str] = []
        self._problems: list[str] = []
        self._more = 0

    @property
    def problems(self) -> int:
        """How many problems there are so far."""
        return len(self._problems) + self._more

    @property
    def full(self) -> bool:
        """Whether enough problems are known: a reader need not explain the next one, only count it."""
        return len(self._problems) >= SHOWN

    @property
    def told(self) -> list[str]:
        """The problems that have words, as they will be told."""
        return self._problems

    def include(self, told: Iterable[str], *, more: int) -> None:
        """Note problems that were found elsewhere: those that are ``told`` there, and how many ``more`` there are."""
        for problem in told:
            if self.full:
                self.count_one()
            else:
                self._problems.append(problem)
        self._more += more

    def problem(self, location: str, message: str) -> None:
        """Note that the thing at ``location`` (``golden.jsonl:17: relevant_doc_ids``) makes the input unusable."""
        if self.full:
            self.count_one()
        else:
            self._problems.append(f"{shorten(location, LONGEST)}: {shorten(message, LONGEST)}")

    def mismatch(self, location: str, mismatch: Mismatch) -> None:
        """Note that a part of the value at ``location`` does not fit its record."""
        self.problem(f"{location}: {dotted(mismatch.path)}" if mismatch.path else location, mismatch.message)

    def count_one(self) -> None:
        """Note one more problem, without words: for a reader that knows of enough of them."""
        self._more += 1

    def warning(self, message: str) -> None:
        """Note something that does not change the verdict."""
        self.warnings.append(shorten(message, LONGEST))

    def raise_problems(self) -> None:
        """Raise :class:`InputError` with all problems, and the warnings beside them, if there are any problems."""
        if self._problems:
            raise InputError(self._problems, more=self._more, warnings=self.warnings)
