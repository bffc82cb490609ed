"""Limits on the runs that the service makes itself: how many wait, how often they are tried, what is kept of them."""

from contextlib import suppress

from sqlalchemy import select

from ragcontract.service.run_queue import QueueFullError
from ragcontract.service.tables import metadata, runs
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service import a_database
from tests.service.test_run_queue import HOUR, NOW, Queue


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


CASES: Cases = {
    "RUNS_QUEUED": Case(waiting, small=3),
    "RUN_ATTEMPTS": Case(tried),
    "RUN_LAST_LINES": Case(last_lines),
    "LEASE_SECONDS": Case(silent),
}
