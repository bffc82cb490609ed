"""The limits on one execution, which the kernel enforces: it ends the process that is over them."""

import faulthandler
import mmap
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from msgspec import Struct

MB = 1 << 20
_highest = [0]  # the peak after the execution before; asking for it takes a millisecond on some systems
SMALL_INPUT = 1_000_000  # bytes; the limit on memory is for cases up to this size


class Limits(Struct, frozen=True, kw_only=True):
    """Seconds of CPU time, seconds of waiting, and bytes of memory that an execution may take.

    Time is that of the CPU, which a busy machine does not change. Who waits uses none, so waiting has its own limit.
    """

    seconds: float = 10.0
    waiting: float = 90.0
    memory: int = 500 * MB


class MemoryHog(Exception):  # noqa: N818 (what it is)
    """An execution that took more memory than it may."""


def prepare(limits: Limits, traceback: FileIO) -> None:
    """Limit the address space of this process, and have it write where it was when its time is over."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    # Four times the limit, so that most of what is over it ends by itself, and the rest with a MemoryError.
    most = pages * mmap.PAGESIZE + 4 * limits.memory
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
        faulthandler.register(number, file=traceback, all_threads=True, chain=True)


@contextmanager
def limited(limits: Limits, size: int) -> Iterator[None]:
    """Run one execution on inputs of ``size`` bytes; raises :class:`MemoryHog` after it."""
    before = _resident()
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    signal.setitimer(signal.ITIMER_REAL, limits.waiting)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    now = _peak()
    grown, _highest[0] = now > _highest[0], max(now, _highest[0])
    if grown and size <= SMALL_INPUT and now - before > limits.memory:
        raise MemoryHog(f"over {limits.memory // MB} MB")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
