"""Recognizes that memory ran out, and says how much there was. Imports no third-party package."""

import errno
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes

ADVICE = "give it more memory, or split the inputs"
# What libraries raise instead of MemoryError when the system refuses memory to them.
SIGNS = ("cannot allocate memory", "failed to map segment", "can't start new thread", "out of memory")
# The memory limit of a control group, such as a container's, in version 2 and 1. For no limit, 1 has a huge number.
GROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
UNLIMITED = 1 << 60
CRASHES = ("SIGSEGV", "SIGABRT", "SIGBUS")  # by name: Windows does not have all of them


def ran_out(error: BaseException) -> bool:
    """Return whether an exception, or one that it was raised for, means that the process could not get memory."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return any(map(_is_about_memory, chain))


def _is_about_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, ImportError | OSError | RuntimeError) and any(sign in str(error).lower() for sign in SIGNS)


@contextmanager
def explained() -> Iterator[None]:
    """Turn exceptions that mean that memory ran out into an InputError with the limit and the peak."""
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        error.__traceback__ = None  # its frames hold what filled the memory
        raise InputError([f"memory ran out: {used_and_allowed()}; {ADVICE}"]) from None


def explains(number: int) -> bool:
    """Return whether a signal that ended a process probably means that memory ran out.

    The system kills a process when it has no memory left. Under `ulimit -v`, libraries in C crash where they get none.
    """
    name = signal.Signals(number).name
    return name == "SIGKILL" or (name in CRASHES and is_limited())


def killed(peak: int, what: str = "the check") -> InputError:
    """Return the error for a child process that was killed; ``peak`` is the most memory it used, in bytes.

    ``what`` says what the process did.
    """
    limit = _limit_of_addresses() or _limit_of_group()
    allowed = f" of the {mebibytes(limit)} that are allowed here" if limit else ""
    most = f"it had used {mebibytes(peak)}{allowed}"
    return InputError([f"{what} was killed, most likely because memory ran out: {most}; {ADVICE}"])


def used_and_allowed() -> str:
    """Return the peak and the limit of this process's memory as a clause."""
    if limit := _limit_of_addresses():
        return f"`ulimit -v` allows {mebibytes(limit)}, and the peak was {mebibytes(_peak('VmPeak'))}"
    if limit := _limit_of_group():
        return f"{mebibytes(limit)} are allowed here, and the peak was {mebibytes(_peak('VmHWM'))}"
    return f"the peak was {mebibytes(_peak('VmHWM'))}"


def is_limited() -> bool:
    """Return whether `ulimit -v` limits this process."""
    return _limit_of_addresses() is not None


def _limit_of_addresses() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _limit_of_group() -> int | None:
    for path in GROUP_LIMITS:
        with suppress(OSError, ValueError):
            limit = int(path.read_text())
            return limit if limit < UNLIMITED else None
    return None


def _peak(field: str) -> int:
    """Return a field of the process's status in bytes; 0 on systems that do not have it."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) << 10
    return 0
