"""Everything that can go wrong, and the exit code that tells it.

::

    RagContractError          what the others have in common; never raised itself
    ├── InputError        2   the input cannot be judged: a file, an option, a limit
    └── OutputError       2   a report or a baseline cannot be written where it was asked for

Exit code 0 is a pass and 1 a broken contract; neither is an error. Any other exception is a bug of ours and exits 3.
The action exits 4 where a comment was required and could not be posted, but only if it would have exited 0.
"""

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    PASS = 0
    BROKEN = 1
    UNUSABLE_INPUT = 2
    BUG = 3
    NO_COMMENT = 4


class RagContractError(Exception):
    """The root of all errors that are told to the user without a traceback."""

    exit_code = ExitCode.BUG

    def __init__(self, problems: Sequence[str], *, more: int = 0, warnings: Sequence[str] = ()) -> None:
        """Keep the problems, each a full sentence with its place in front, and how many more there were.

        ``warnings`` is what was odd besides: it often explains a problem, as a misspelled field does a missing one.
        """
        self.problems = list(problems)
        self.more = more
        self.warnings = list(warnings)
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line a problem, and a last one that counts those that are not shown."""
        rest = [f"… and {self.more} more like these"] if self.more else []
        return self.problems + rest


class InputError(RagContractError):
    """The input cannot be judged."""

    exit_code = ExitCode.UNUSABLE_INPUT


class OutputError(RagContractError):
    """A result cannot be written; nothing that existed was changed."""

    exit_code = ExitCode.UNUSABLE_INPUT
