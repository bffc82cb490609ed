"""Runs a program for a worker, and ends it with all that it started as soon as the worker does not want it any more.

The worker starts this file as a script, with a pipe as its standard input. When the pipe closes, because the worker
wants the program to end or because it was killed itself, the program gets SIGTERM, and after some seconds SIGKILL.
Processes that have left its group are known by a variable in their environment, which they inherit, and on Linux also
if they have removed it: they become children of this one.

    python -I run_guard.py LOCK MARK SECONDS PROGRAM [ARGUMENT…]

The file LOCK is locked until nothing of the program is left, so that two attempts of a run are never at work at once.
"""

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

if sys.platform != "win32":
    import fcntl

LOOK = 0.05  # s; how often the program and the pipe are looked at
VARIABLE = "RAG_CONTRACT_RUN"  # has the mark
PROCESSES = Path("/proc")  # on Linux; elsewhere, only the group is ended
CANNOT_START, KILLED = 127, 128
SET_CHILD_SUBREAPER = 36  # of prctl


def main(lock: str, mark: str, seconds: str, *command: str) -> int:
    """Run the program; return its exit code, or 128 and the number of the signal that ended it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the worker says when to end
        signal.signal(number, lambda *_: None)  # unlike SIG_IGN, the program does not inherit it
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with Path(lock).open("ab") as file:
        while True:
            kill_marked(mark)  # what the guard of an earlier attempt left, or waits for
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if not _is_wanted():
                return KILLED + signal.SIGTERM
        try:
            process = subprocess.Popen(  # noqa: S603 (the operator's own project)
                command, stdin=subprocess.DEVNULL, start_new_session=True, env={**os.environ, VARIABLE: mark}
            )
        except OSError as error:
            sys.stdout.write(f"error: {command[0]}: cannot be started ({error.strerror})\n")
            return CANNOT_START
        while _runs(process) and _is_wanted():
            pass
        if _runs(process):
            _end(process, float(seconds))
        _signal_group(process, signal.SIGKILL)  # before the process is reaped, while its number is not given away
        code = process.wait()
        _kill_children()
        kill_marked(mark)
    return code if code >= 0 else KILLED - code


def _is_wanted() -> bool:
    """Wait a moment; return whether the worker still holds the pipe."""
    readable, _, _ = select.select([0], [], [], LOOK)
    return not readable or bool(os.read(0, 1))


def _runs(process: "subprocess.Popen[bytes]") -> bool:
    """Return whether a process runs, without reaping it."""
    return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def _end(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Ask a process to end, and wait for it some seconds."""
    _signal_group(process, signal.SIGTERM)
    until = monotonic() + seconds
    while _runs(process) and monotonic() < until:
        sleep(LOOK)


def _signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _kill_children() -> None:
    """Kill all children, and theirs, which become ours when their parents end; the program itself has ended."""
    while killed := [pid for pid in _children() if _is_killed(pid)]:
        for pid in killed:
            os.waitpid(pid, 0)


def _children() -> Iterator[int]:
    if sys.platform != "linux":
        return
    for entry in PROCESSES.iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended
                # Its name, which may be anything, is in parentheses; its state and its parent follow.
                if int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1]) == os.getpid():
                    yield int(entry.name)


def _is_killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:  # it is of another user
        return False
    return True


def kill_marked(mark: str) -> None:
    """Kill all processes that have a mark in their environment, until none is left."""
    while killed := [*_kill_marked(f"{VARIABLE}={mark}".encode())]:
        sleep(LOOK if len(killed) == 1 else 0)


def _kill_marked(variable: bytes) -> Iterator[int]:
    if sys.platform != "linux":
        return
    for entry in PROCESSES.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):  # it has ended, or is of another user
            process = os.pidfd_open(int(entry.name))  # so that no other process gets the signal
            try:
                if variable in (entry / "environ").read_bytes().split(b"\0"):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    yield int(entry.name)
            finally:
                os.close(process)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
