"""A process without a network: the kernel kills it when it opens a socket, and it notes whatever it tries before that.

``program`` makes Python code that runs something in such a process. After all that is printed, its last two lines say
what was tried and what was loaded.
"""

import platform
import sys
from typing import NamedTuple

from tests.process import Ended

# The number of the system call socket(), by machine.
SOCKET_CALLS = {"x86_64": 41, "aarch64": 198}
CAN_BE_ENFORCED = sys.platform == "linux" and platform.machine() in SOCKET_CALLS
KILLED = -31  # by SIGSYS
# What Python's audit events are called that reach out of a process, or start another one that could.
TRIES = (
    *("ctypes.dlopen", "ftplib", "http", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "pty"),
    *("smtplib", "socket", "ssl", "subprocess", "urllib", "webbrowser"),
)
# Everything in the standard library, and of ours, by which something could be asked.
ASKERS = {"asyncio", "ftplib", "http.client", "http.server", "requests", "socket", "ssl", "urllib.request", "urllib3"}
# A filter of system calls (seccomp): with the number of socket(), the process ends; with any other, all is as usual.
FILTER = """
import ctypes, struct
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, {number}), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7FFF0000)]
steps = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(steps)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges: without it, only root may
assert libc.prctl(22, 2, filter, 0, 0) == 0, ctypes.get_errno()
"""
PROGRAM = """
import sys
{before}
{filter}
loaded, tried = set(sys.modules), []
sys.addaudithook(lambda event, args: tried.append(event) if event.startswith({tries!r}) else None)
{imports}
code = {call}
print("tried:", *tried)
print("loaded:", *sorted(set(sys.modules) - loaded))
sys.exit(code)
"""


class Tried(NamedTuple):
    """How a process ended, what it tried, and the modules that it loaded."""

    ended: Ended
    tried: list[str]
    loaded: set[str]


def program(imports: str, call: str, *, before: str = "") -> str:
    """Return code that makes a call of something imported, which returns an exit code.

    What is imported ``before`` does not count as loaded.
    """
    number = SOCKET_CALLS.get(platform.machine(), 0)
    enforced = FILTER.format(number=number) if CAN_BE_ENFORCED else ""
    return PROGRAM.format(filter=enforced, tries=TRIES, before=before, imports=imports, call=call)


def tried_by(ended: Ended) -> Tried:
    """Return what the last two lines say that such a program printed."""
    *_, tried, loaded = ended.out.splitlines()
    assert tried.startswith("tried:"), ended
    return Tried(ended, tried.split()[1:], set(loaded.split()[1:]))
