"""Runs a command and writes what it took, as JSON: ``python -I -S measure.py FOLDER LOG COMMAND [ARGUMENT ...]``.

A program of its own, of nothing but the standard library: the operating system counts the memory of the process that
starts a command as the command's own until it is running, so this has to be smaller than anything it measures. CPU
seconds are those of all processes the command has waited for, the peak is the largest one's.
"""

import json
import os
import sys
import time


def main(folder: str, log: str, command: list[str]) -> None:
    """Run ``command`` in ``folder`` with its output in the file ``log``; print the seconds, bytes and exit code."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.chdir(folder)
    streams = [(os.POSIX_SPAWN_DUP2, output, 1), (os.POSIX_SPAWN_DUP2, output, 2)]
    started = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=streams)
    _, status, used = os.wait4(process, 0)
    wall = time.perf_counter() - started
    unit = 1 if sys.platform == "darwin" else 1024
    taken = {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": used.ru_maxrss * unit}
    print(json.dumps({**taken, "exit_code": os.waitstatus_to_exitcode(status)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
