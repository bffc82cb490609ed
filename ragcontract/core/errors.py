"""Exceptions, the exit codes they map to, and the signals that stop a process.

::

    RagContractError          base class; never raised itself
    ├── InputError        2   the input cannot be evaluated: a file, an option, a limit
    └── OutputError       2   a report or a baseline cannot be written to the requested path

Exit code 0 is a pass and 1 a broken contract; neither is an error. Any other exception is a bug in rag-contract and
exits with 3. The action exits with 4 if a required comment could not be posted and the exit code would otherwise be 0.
A process that a signal asked to stop exits with 130.
"""

import signal
from collections.abc import Sequence
from enum import IntEnum
from types import FrameType


class ExitCode(IntEnum):
    """Exit codes of the process."""

    PASS = 0
    BROKEN = 1
    UNUSABLE_INPUT = 2
    BUG = 3
    NO_COMMENT = 4


class RagContractError(Exception):
    """Base class of all errors that are shown to the user without a traceback.

    Each of the ``problems`` is a full sentence that starts with its location; ``more`` counts those that are not
    listed. ``warnings`` are printed along with the problems, because they often explain them. A misspelled field is a
    warning, for example, and the field that is therefore missing is a problem.
    """

    exit_code = ExitCode.BUG

    def __init__(self, problems: Sequence[str], *, more: int = 0, warnings: Sequence[str] = ()) -> None:
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


STOPPING = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130  # 128 + SIGINT, as in shells


def raise_on_signals() -> None:
    """Raise KeyboardInterrupt on the signals, except on those that are ignored, as in a shell's background job.

    Without this, process 1 of a container would not react to them.
    """
    for number in STOPPING:
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, _raise_once)


def _raise_once(_signal: int, _frame: FrameType | None) -> None:
    """Stop as on Ctrl-C, so that temporary files are removed; a second signal must not interrupt that."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


_users_code: list[bool] = []  # of this process


def before_users_code() -> None:
    """Note that code of the user is about to be imported, which may replace the exit code while the process ends."""
    _users_code.append(True)


def has_users_code() -> bool:
    """Return whether this process has imported code of the user."""
    return bool(_users_code)
