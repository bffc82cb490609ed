"""Limits on the runs that the service makes itself: how many wait, how often they are tried, what is kept of them."""

import os
import subprocess
import sys
from contextlib import chdir, suppress

from sqlalchemy import select

from ragcontract.contract.defaults import RUN
from ragcontract.core import bounds
from ragcontract.service.tables import metadata, runs
from ragcontract.service.workers import run_guard
from ragcontract.service.workers.project_run import RunFailedError, RunLog, keep_checked
from ragcontract.service.workers.run_queue import QueueFullError
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service import a_database
from tests.process import rag_contract
from tests.service.mounting import wait_until
from tests.service.test_run_queue import HOUR, NOW, Queue

SECOND = 8  # s


def a_queue(lab: Lab) -> Queue:
    database = a_database(lab)
    database.write(metadata.create_all)
    return Queue(database)


def waiting(lab: Lab, number: int) -> bool:
    """Start runs of a project."""
    queue = a_queue(lab)
    with suppress(QueueFullError):
        for count in range(number):
            queue.add(NOW + count)
    with queue.database.read() as connection:
        return len(connection.execute(select(runs.c.id)).all()) == number


def tried(lab: Lab, number: int) -> bool:
    """Claim a run whose workers die."""
    queue = a_queue(lab)
    queue.add()
    return all(queue.claim(f"w{count}", NOW + count * HOUR) is not None for count in range(number))


def last_lines(lab: Lab, number: int) -> bool:
    """Read what a run has printed whose workers died."""
    lab.make_smaller("RUN_ATTEMPTS", 1)
    queue = a_queue(lab)
    run = queue.add()
    queue.renew(queue.held(), log="\n".join(f"line {count}" for count in range(number)))
    queue.claim("w2", NOW + HOUR)
    return "line 0\n" in queue.row(run).problem


def silent(lab: Lab, seconds: int) -> bool:
    """Return whether a worker that is not heard of for so long still has its run."""
    queue = a_queue(lab)
    queue.add()
    queue.held("w1")
    return queue.claim("w2", NOW + seconds * 1_000 - 1) is None


def printed(lab: Lab, size: int) -> bool:
    """Print so much, in lines."""
    log, text = RunLog([], (), lab.folder), ("x" * 63 + "\n") * (size // 64 + 1)
    for start in range(0, size, 1_000):
        log.add(text[start : min(start + 1_000, size)].encode())
    return log.text() == text[:size]


def recorded(lab: Lab, size: int) -> bool:
    """Keep what was recorded for the entry of a run, of so many bytes."""
    (lab.folder / RUN).touch()
    os.truncate(lab.folder / RUN, size)
    with chdir(lab.folder), suppress(RunFailedError):
        keep_checked()
        return True
    return False


def ending(lab: Lab, seconds: int) -> bool:
    """End a program that needs so many seconds for it, and return whether it was not killed.

    Its seconds are longer ones, so that a slow machine changes nothing; half of one is left.
    """
    began, ended, needs = lab.folder / "began", lab.folder / "ended", (seconds - 1) * SECOND
    slow = f"signal.signal(15, lambda *_: (time.sleep({needs}), pathlib.Path({str(ended)!r}).touch(), exit()))"
    grace = str((bounds.RUN_GRACE - 0.5) * SECOND)
    program = f"import pathlib, signal, time; {slow}; pathlib.Path({str(began)!r}).touch(); time.sleep(60)"
    argv = [run_guard.__file__, str(lab.folder / "lock"), "mark", grace, sys.executable, "-c", program]
    with subprocess.Popen([sys.executable, "-I", *argv], stdin=subprocess.PIPE) as guard:
        wait_until(began.exists)
        guard.communicate()
    return ended.exists()


def workers(_lab: Lab, number: int) -> bool:
    """Ask for so many workers, of a demo that has no projects of its own to read."""
    ended = rag_contract("serve", "--demo", "--projects", ".", "--workers", str(number))
    return "leave out --projects" in ended.err


CASES: Cases = {
    "SERVICE_WORKERS": Case(workers),
    "RUN_LOG": Case(printed, small=1_000),
    "RUN_RECORDED": Case(recorded),
    "RUN_GRACE": Case(ending, small=1),
    "RUNS_QUEUED": Case(waiting, small=3),
    "RUN_ATTEMPTS": Case(tried),
    "RUN_LAST_LINES": Case(last_lines),
    "LEASE_SECONDS": Case(silent),
}
