"""Runs a task in a child process, so that the parent can report it if the task is killed."""

import mmap
import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from ragcontract.core.errors import INTERRUPTED, STOPPING

KILLED_FIRST = "1000"  # the highest score: when memory runs out, the system kills this process, not its parent


class SharedExitCode:
    """An exit code that a child process notes for its parent, in case it is killed before it returns it."""

    def __init__(self) -> None:
        self._byte = mmap.mmap(-1, 1)  # shared with all children that are started from now on; 0: nothing was noted

    def note(self, code: int) -> None:
        self._byte[0] = code + 1

    def noted(self) -> int | None:
        """Return the exit code, or None if none was noted."""
        return self._byte[0] - 1 if self._byte[0] else None


def in_child(run: Callable[[], int], killed: Callable[[int, int], int]) -> int:
    """Run a task in a child process and return its exit code.

    If a signal killed the child, return the result of ``killed``, which gets the signal and the most memory that the
    child used, in bytes. Where there can be no child, the task runs in this process.

    Returns twice, like ``os.fork``: in the child with the result of ``run``, in the parent with its exit code.
    """
    try:
        child = os.fork()
    except OSError:  # too many processes, or too little memory
        return run()
    if child == 0:
        with suppress(OSError):  # another system than Linux
            Path("/proc/self/oom_score_adj").write_text(KILLED_FIRST)
        return run()
    with _forwarding_signals(child):
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    return INTERRUPTED if -code in STOPPING else killed(-code, peak)


@contextmanager
def _forwarding_signals(child: int) -> Iterator[None]:
    """Pass requests to stop on to the child, and go on waiting for it."""

    def forward(_signal: int, _frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)

    before = {number: signal.signal(number, forward) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
