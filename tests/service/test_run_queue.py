"""The queue of runs: each run is done by one worker at a time, and no run is lost or tried for ever."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError

from ragcontract.core import bounds
from ragcontract.history.entry import NewEntry
from ragcontract.service.accounts import Principal
from ragcontract.service.blobs import blob
from ragcontract.service.database import DAY, Database
from ragcontract.service.database_store import DatabaseStore, prepared_recording
from ragcontract.service.projects_and_runs import add_project, project_id
from ragcontract.service.tables import broken, points, projects, runs, tasks
from ragcontract.service.workers.run_queue import (
    Claim,
    QueueFullError,
    ask_to_cancel,
    beat,
    claim,
    end,
    enqueue,
    finish,
    give_back,
    last_beat,
    renew,
    sign_off,
    time_of,
)
from tests.service.test_frozen import RUN

MINUTE, HOUR = 60_000, 3_600_000
NOW = 1_900_000_000_000  # after the time of the entries of tests


class Queue:
    """The queue of a database, at times that a test names. ``docs`` is a project."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.write(lambda connection: add_project(connection, "docs", "docs", NOW))

    def write(self, job: Callable[[Connection], Any]) -> Any:
        return self.database.write(job)

    def add(self, now: int = NOW, *, slug: str = "docs", note: str | None = None) -> int:
        def job(connection: Connection) -> int:
            add_project(connection, slug, slug, now)
            number = project_id(connection, slug)
            assert number is not None
            return enqueue(connection, number, event="manual", created_by="user:ana", note=note, now=now)

        return int(self.write(job))

    def claim(self, owner: str = "w1", now: int = NOW, slugs: set[str] | None = None) -> Claim | None:
        found: Claim | None = self.write(lambda connection: claim(connection, owner, now, slugs))
        return found

    def held(self, owner: str = "w1", now: int = NOW) -> Claim:
        found = self.claim(owner, now)
        assert found is not None
        return found

    def renew(self, of: Claim, now: int = NOW, log: str | None = "") -> str:
        return str(self.write(lambda connection: renew(connection, of, log, now)))

    def end(self, of: Claim, now: int = NOW) -> bool:
        return bool(self.write(lambda connection: end(connection, of, "failed", problem="p", log="l", now=now)))

    def finish(self, of: Claim, new: NewEntry, now: int = NOW) -> str:
        recording, sent = prepared_recording(new)
        return str(self.write(lambda connection: finish(connection, of, recording, sent, log="l", now=now)))

    def cancel(self, number: int, now: int = NOW) -> bool:
        return bool(self.write(lambda connection: ask_to_cancel(connection, number, now)))

    def row(self, number: int) -> Any:
        with self.database.read() as connection:
            return connection.execute(select(runs).where(runs.c.id == number)).one()

    def state(self, number: int) -> str:
        return str(self.row(number).state)


@pytest.fixture
def queue(database: Database) -> Queue:
    return Queue(database)


@pytest.fixture
def new(checked_run: tuple[NewEntry, bytes]) -> NewEntry:
    entry, report = checked_run
    return replace(entry, report=report, golden=b"{}")


def test_a_run_waits_with_who_started_it_and_why(queue: Queue) -> None:
    row = queue.row(queue.add(note="after the \0 index"))
    assert (row.state, row.origin, row.event, row.attempt) == ("queued", "service", "manual", 0)
    assert (row.created_by, row.note, row.created_at) == ("user:ana", "after the \ufffd index", NOW)
    assert row.key.startswith("queued-")


def test_it_is_of_the_branch_of_its_project(queue: Queue) -> None:
    queue.write(lambda connection: connection.execute(projects.update().values(branch="trunk")))
    number = queue.add()
    assert queue.row(number).branch == queue.held().branch == "trunk"


def test_too_many_of_a_project_are_refused(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RUNS_QUEUED", 2)
    queue.add()
    queue.add()
    with pytest.raises(QueueFullError, match="2 runs of the project wait already"):
        queue.add()
    queue.add(slug="shop")
    queue.held()
    queue.add()


def test_the_oldest_is_claimed_first_and_once(queue: Queue) -> None:
    late, early = queue.add(NOW + 2), queue.add(NOW + 1)
    first, second = queue.held("w1"), queue.held("w2")
    assert (first.run_id, second.run_id) == (early, late)
    assert (first.slug, first.attempt, first.owner, first.event) == ("docs", 1, "w1", "manual")
    assert queue.claim("w3") is None
    row = queue.row(early)
    assert (row.state, row.lease_owner, row.lease_until, row.started_at) == ("running", "w1", NOW + MINUTE, NOW)


def test_a_worker_takes_only_runs_of_projects_that_it_has(queue: Queue) -> None:
    queue.add()
    shop = queue.add(slug="shop")
    assert queue.claim(slugs=set()) is None
    found = queue.claim(slugs={"shop", "other"})
    assert found is not None
    assert found.run_id == shop


def test_many_workers_claim_each_run_once(queue: Queue) -> None:
    numbers = [queue.add(NOW + count) for count in range(20)]
    barrier = threading.Barrier(4)

    def work(owner: str) -> list[int]:
        barrier.wait()
        claimed = []
        while (found := queue.claim(owner)) is not None:
            claimed.append(found.run_id)
        return claimed

    with ThreadPoolExecutor(4) as pool:
        claimed = [number for part in pool.map(work, ["w1", "w2", "w3", "w4"]) for number in part]
    assert sorted(claimed) == numbers


def test_another_worker_takes_a_run_whose_worker_is_not_heard_of(queue: Queue) -> None:
    number = queue.add()
    first = queue.held("w1")
    assert queue.renew(first, NOW + 30_000) == "ours"
    assert queue.claim("w2", NOW + 89_999) is None
    second = queue.held("w2", NOW + 90_000)
    assert (second.run_id, second.attempt) == (number, 2)
    assert queue.row(number).started_at == NOW


def test_who_has_lost_a_run_changes_nothing(queue: Queue, new: NewEntry) -> None:
    number = queue.add()
    first = queue.held("w1")
    queue.held("w2", NOW + HOUR)
    before = queue.row(number)
    assert queue.renew(first, NOW + HOUR, "late") == "lost"
    assert not queue.end(first, NOW + HOUR)
    assert queue.finish(first, new, NOW + HOUR) == "lost"
    assert queue.write(lambda connection: give_back(connection, "w1", NOW + HOUR)) == 0
    assert queue.row(number) == before
    assert not DatabaseStore(queue.database, Principal(actor="test")).result_sets()


def test_after_three_deaths_it_has_failed_with_its_last_lines(queue: Queue) -> None:
    number = queue.add()
    for attempt in (1, 2, 3):
        found = queue.held(f"w{attempt}", NOW + attempt * HOUR)
        assert found.attempt == attempt
        queue.renew(found, NOW + attempt * HOUR, "\n".join(f"line {count}" for count in range(1, 30)))
    other = queue.add(NOW + 1)
    assert queue.held("w4", NOW + 4 * HOUR).run_id == other
    row = queue.row(number)
    assert (row.state, row.lease_owner, row.finished_at) == ("failed", None, NOW + 4 * HOUR)
    lines = "\n".join(f"line {count}" for count in range(20, 30))
    assert row.problem == f"the worker died 3 times; its last lines: {lines}"


def test_one_that_printed_nothing_says_only_that(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RUN_ATTEMPTS", 1)
    monkeypatch.setattr("ragcontract.service.workers.run_queue.DIED", "the worker died 1 times")
    number = queue.add()
    queue.held()
    assert queue.claim("w2", NOW + HOUR) is None
    assert queue.row(number).problem == "the worker died 1 times"


@pytest.mark.parametrize("back", [HOUR, 30_000])
def test_a_clock_that_is_set_back_loses_no_run(back: int, queue: Queue) -> None:
    number = queue.add()
    queue.held("w1")
    then = NOW - back
    assert queue.claim("w2", then) is None
    assert queue.row(number).lease_until <= then + MINUTE + 30_000
    assert queue.held("w2", then + MINUTE + 30_000).run_id == number


def test_a_worker_that_lives_keeps_its_run_when_the_clock_is_set_back(queue: Queue) -> None:
    queue.add()
    first = queue.held("w1")
    queue.claim("w2", NOW - HOUR)
    assert queue.renew(first, NOW - HOUR + 45_000) == "ours"
    assert queue.claim("w2", NOW - HOUR + 61_000) is None


def test_what_waits_is_cancelled_at_once(queue: Queue) -> None:
    number = queue.add()
    assert queue.cancel(number, NOW + 5)
    assert (queue.state(number), queue.row(number).finished_at) == ("cancelled", NOW + 5)
    assert not queue.cancel(number)
    assert queue.claim() is None


def test_the_worker_hears_that_its_run_is_cancelled(queue: Queue) -> None:
    number = queue.add()
    found = queue.held()
    assert queue.cancel(number, NOW + 5)
    assert queue.cancel(number, NOW + 6)
    assert (queue.state(number), queue.row(number).cancel) == ("running", NOW + 5)
    assert queue.renew(found) == "cancelled"
    assert queue.end(found)
    assert not queue.cancel(number)


@pytest.mark.parametrize("kind", ["postgres"])  # where writes overlap
def test_a_run_that_its_worker_gives_back_meanwhile_is_cancelled(queue: Queue) -> None:
    number = queue.add()
    queue.held("w1")
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with queue.database.engine.begin() as connection:
            give_back(connection, "w1", NOW)
            cancelled = pool.submit(queue.cancel, number)
            while not connection.execute(waiting).scalar_one():
                assert not cancelled.done()
        assert cancelled.result()
    assert queue.state(number) == "cancelled"


def test_a_cancelled_run_whose_worker_died_is_not_tried_again(queue: Queue) -> None:
    asked, lost = queue.add(), queue.add(NOW + 1)
    queue.held()
    queue.held()
    queue.cancel(asked)
    assert queue.cancel(lost, NOW + HOUR)
    assert queue.state(lost) == "cancelled"
    assert queue.claim("w2", NOW + HOUR) is None
    assert queue.state(asked) == "cancelled"


def test_a_worker_that_is_asked_to_stop_gives_its_run_back(queue: Queue) -> None:
    number = queue.add()
    for _ in range(5):
        found = queue.held()
        assert found.attempt == 1
        assert queue.write(lambda connection: give_back(connection, "w1", NOW)) == 1
        assert (queue.state(number), queue.row(number).lease_owner) == ("queued", None)
        assert queue.renew(found) == "lost"


def test_the_run_of_a_dead_worker_is_free_at_once_and_the_attempt_counts(queue: Queue) -> None:
    queue.add()
    queue.held("w1")
    queue.write(lambda connection: give_back(connection, "w1", NOW, died=True))
    assert queue.held("w2").attempt == 2


def test_a_run_ends_without_a_verdict(queue: Queue) -> None:
    number = queue.add()
    assert queue.end(queue.held(), NOW + 9)
    row = queue.row(number)
    assert (row.state, row.problem, row.log, row.finished_at) == ("failed", "p", "l", NOW + 9)
    assert (row.lease_owner, row.lease_until, row.verdict) == (None, None, None)


def test_a_run_is_recorded_whole(queue: Queue, new: NewEntry) -> None:
    number = queue.add(note="why")
    assert queue.finish(queue.held(), new, NOW + 9) == "recorded"
    row = queue.row(number)
    assert (row.state, row.verdict, row.origin, row.event) == ("blocked", "fail", "service", "manual")
    assert (row.key, row.entry) == (new.entry.id, new.content.decode())
    assert (row.created_by, row.note, row.log, row.finished_at) == ("user:ana", "why", "l", NOW + 9)
    with queue.database.read() as connection:
        assert blob(connection, row.report) == new.report
        assert blob(connection, row.results) == new.results
        assert blob(connection, row.golden) == new.golden
        assert len(connection.execute(select(broken).where(broken.c.run_id == number)).all()) == 2
        assert connection.execute(select(points).where(points.c.run_id == number)).all()
    with pytest.raises(IntegrityError, match=RUN):
        queue.write(lambda connection: connection.execute(runs.update().values(key="other")))


def test_a_run_of_the_same_second_and_results_is_not_recorded_twice(queue: Queue, new: NewEntry) -> None:
    queue.add()
    second = queue.add(NOW + 1)
    assert queue.finish(queue.held(), new) == "recorded"
    found = queue.held()
    assert queue.finish(found, new) == "exists"
    assert (queue.state(second), queue.renew(found)) == ("running", "ours")


def test_an_entry_that_cannot_be_stored_leaves_nothing(queue: Queue, new: NewEntry) -> None:
    number = queue.add()
    found = queue.held()
    wrong = replace(new, entry=replace(new.entry, created_at="2020-01-01T00:00:00Z"))
    recording, sent = prepared_recording(new)
    broken_recording = replace(recording, new=wrong)
    with pytest.raises(Exception, match="is not the time in the id"):
        queue.write(lambda connection: finish(connection, found, broken_recording, sent, log="", now=NOW))
    assert queue.state(number) == "running"
    with queue.database.read() as connection:
        assert [blob(connection, each.sha256) for each in sent] == [None] * 3


def test_workers_are_heard_until_they_sign_off(queue: Queue) -> None:
    for owner, now in (("w1", NOW), ("w2", NOW + 5), ("w1", NOW + 1)):
        queue.write(partial(beat, owner=owner, now=now))
    with queue.database.read() as connection:
        assert last_beat(connection) == NOW + 5
    queue.write(lambda connection: sign_off(connection, "w2"))
    with queue.database.read() as connection:
        assert last_beat(connection) == NOW + 1
    queue.write(partial(beat, owner="w3", now=NOW + DAY))
    assert owners(queue) == ["w1", "w3"]
    queue.write(partial(beat, owner="w4", now=NOW + DAY + 2))
    assert owners(queue) == ["w3", "w4"]
    for owner in ("w3", "w4"):
        queue.write(partial(sign_off, owner=owner))
    with queue.database.read() as connection:
        assert last_beat(connection) is None


def owners(queue: Queue) -> list[str]:
    with queue.database.read() as connection:
        return sorted(connection.execute(select(tasks.c.lease_owner)).scalars())


def test_the_time_of_leases_is_that_of_the_database(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    with queue.database.read() as connection:
        monkeypatch.setattr("ragcontract.service.workers.run_queue.now_ms", lambda: 5)
        later = time_of(connection)
    assert later == 5 if queue.database.is_sqlite else later > 5
