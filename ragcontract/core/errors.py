"""Exceptions and the process exit codes they map to.

::

    RagContractError          base class; never raised itself
    ├── InputError        2   the input cannot be evaluated: a file, an option, a limit
    └── OutputError       2   a report or a baseline cannot be written to the requested path

Exit code 0 is a pass and 1 a broken contract; neither is an error. Any other exception is a bug in rag-contract and
exits with 3. The action exits with 4 if a required comment could not be posted and the exit code would otherwise be 0.
"""

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the process."""

    PASS = 0
    BROKEN = 1
    UNUSABLE_INPUT = 2
    BUG = 3
    NO_COMMENT = 4


class RagContractError(Exception):
    """Base class of all errors that are shown to the user without a traceback."""

    exit_code = ExitCode.BUG

    def __init__(self, problems: Sequence[str], *, more: int = 0, warnings: Sequence[str] = ()) -> None:
        """Store the problems, each a full sentence that starts with its location, and the number of ``more`` problems.

        ``warnings`` are printed along with the problems, because they often explain them: a misspelled field is a
        warning, the field that is therefore missing is a problem.
        """
        self.problems = list(problems)
        self.more = more
        self.warnings = list(warnings)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """Return one line per problem, plus a last line that counts the problems not shown."""
        rest = [f"… and {self.more} more like these"] if self.more else []
        return self.problems + rest


class InputError(RagContractError):
    """The input cannot be evaluated."""

    exit_code = ExitCode.UNUSABLE_INPUT


class OutputError(RagContractError):
    """A result cannot be written; existing files are unchanged."""

    exit_code = ExitCode.UNUSABLE_INPUT
