"""What the service deletes of itself, on both databases: what is old, in short transactions, and nothing else."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import URL, Connection, func, select, update
from sqlalchemy.exc import IntegrityError, OperationalError

from ragcontract.core import bounds
from ragcontract.service import retention
from ragcontract.service.accounts import LINK, Principal
from ragcontract.service.blobs import Sent, put_blob
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.logging_in import create_link
from ragcontract.service.mounted import MountedProject, ProjectFile, write_mounted
from ragcontract.service.projects_and_runs import OUTDATED
from ragcontract.service.retention import ACTOR, Retention
from ragcontract.service.tables import audit, blobs, broken, points, projects, runs, sessions, tokens, trends
from ragcontract.service.trends import Trends, compute
from ragcontract.service.web.app import Settings
from tests.history.trends import results_at, run_at
from tests.process import rag_contract
from tests.service.askers import author, client_of, new_session, new_user
from tests.service.conftest import name_of, open_database
from tests.service.listening import until
from tests.service.served import Served

LATER = 2 * DAY  # when what tests store now is old enough


def recorded(database: Database, *numbers: int, failed: Sequence[int] = (), **fields: Any) -> None:
    """Record runs with a result set of their own, points and broken queries; some of them fail."""
    for number in numbers:
        names = ["q1", "q2"] if number in failed else []
        new = run_at(number, results_at({f"q{number}": 1}), mean=0.5, failed=names, **fields)
        new = replace(new, default_branch="source" not in fields)
        DatabaseStore(database, Principal(actor="key:ci")).add(new)


def numbers_of(database: Database, contract: str = "docs") -> list[int]:
    """Return the numbers of the runs that are there."""
    known = {run_at(number, None).entry.id: number for number in range(20)}
    of_project = select(runs.c.key).join(projects).where(projects.c.slug == contract)
    with database.read() as connection:
        return sorted(known[key] for key in connection.execute(of_project).scalars())


def deleted(database: Database, keep: int, *, after: int = 0) -> list[tuple[str, str, str]]:
    """Delete what is too old, and return what the audit log says of it."""
    Retention(database, keep, Trends(database)).delete(now_ms() + after)
    with database.read() as connection:
        rows = select(audit.c.action, audit.c.subject, audit.c.detail).where(audit.c.actor == ACTOR)
        return [tuple(row) for row in connection.execute(rows.order_by(audit.c.id))]


def number_of(database: Database, table: Any) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


@contextmanager
def writes(database: Database) -> Iterator[list[None]]:
    """Count the transactions that write, in the list that is returned."""
    counted: list[None] = []
    write = database.write

    def counting(job: Callable[[Connection], Any]) -> Any:
        counted.append(None)
        return write(job)

    database.write = counting  # type: ignore[method-assign]
    yield counted
    database.write = write  # type: ignore[method-assign]


def test_the_newest_runs_of_each_project_stay(database: Database) -> None:
    recorded(database, *range(6), failed=[0, 1])
    recorded(database, 0, 1, contract="other")
    assert deleted(database, 3) == [("run.expire", "project:docs", "3 runs, the oldest beyond keep_runs: 1 to 3")]
    assert numbers_of(database) == [3, 4, 5]
    assert number_of(database, runs) == 5
    assert number_of(database, points) == 5
    assert number_of(database, broken) == 0  # those of runs 0 and 1 are gone
    deleted(database, 3)
    assert (number_of(database, runs), number_of(database, blobs)) == (5, 6 + 2 - 2)  # the two projects share two
    assert rag_contract("service", "check", "--db", name_of(database.url)).code == 0


@pytest.mark.parametrize("keep", [0, 6, 7])
def test_all_stay_if_there_are_no_more(keep: int, database: Database) -> None:
    recorded(database, *range(6))
    with writes(database) as counted:
        assert deleted(database, keep) == []
    assert numbers_of(database) == [*range(6)]
    assert not counted


def test_a_project_may_keep_another_number(database: Database) -> None:
    for contract in ("docs", "other"):
        recorded(database, *range(4), contract=contract)
    other = MountedProject(slug="other", folder=Path("unread"), file=ProjectFile(keep_runs=0))
    database.write(lambda connection: write_mounted(connection, [other], 0))
    deleted(database, 3)  # by a service that does not see the folder
    assert len(numbers_of(database)) == 3
    assert len(numbers_of(database, "other")) == 4


def test_the_last_pass_of_the_branch_stays_however_old_it_is(database: Database) -> None:
    recorded(database, *range(8), failed=range(3, 8))
    recorded(database, 8, source={"branch": "feature"})  # which passed, and is of another branch
    deleted(database, 2)
    assert numbers_of(database) == [2, 7, 8]
    recorded(database, 9)
    deleted(database, 2)
    assert numbers_of(database) == [8, 9]


def test_a_pass_that_is_no_baseline_does_not_stay(database: Database) -> None:
    recorded(database, 0)
    recorded(database, 1, source={"dirty": True})
    recorded(database, 2, 3, failed=[2, 3])
    deleted(database, 1)
    assert numbers_of(database) == [0, 3]


def test_the_newest_run_of_the_branch_stays(database: Database) -> None:
    """It is the state of the project, and the newest one with a contract says what runs are scored by."""
    with Served(database) as served:
        contract = served.send_blob(b'{"golden": [""], "config": null}', "golden")
        for number in range(3):
            new = run_at(number, None, failed=["q1"])
            served.add(new, default_branch=True, **({"golden": contract} if number == 1 else {}))
        for number in range(3, 6):
            served.add(run_at(number, None, source={"branch": "feature"}))
    deleted(database, 1)
    assert numbers_of(database) == [1, 2, 5]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_runs_that_are_not_over_stay(state: str, database: Database) -> None:
    recorded(database, 0, 1, 2)
    row = {"project_id": 1, "key": "k", "origin": "service", "state": state, "created_at": 1}
    database.write(lambda connection: connection.execute(runs.insert().values(row)))
    deleted(database, 1)
    with database.read() as connection:
        assert connection.execute(select(runs.c.state).where(runs.c.key == "k")).scalar_one() == state


def test_blobs_go_when_no_run_has_them_and_they_are_old(database: Database) -> None:
    shared = results_at({"shared": 1})
    for number, data in enumerate([shared, results_at({"own": 1}), shared]):
        DatabaseStore(database, Principal(actor="key:ci")).add(run_at(number, data))
    assert [row[0] for row in deleted(database, 1)] == ["run.expire"]
    assert number_of(database, blobs) == 2  # one is unnamed, and young
    assert deleted(database, 1, after=LATER)[1:] == [("blob.expire", "blobs", "1 blob that no run has")]
    with database.read() as connection:
        assert connection.execute(select(blobs.c.sha256)).scalars().all() == [Sent.of("results", shared).sha256]


def test_what_was_sent_again_may_still_be_named(database: Database) -> None:
    sent = Sent.of("results", results_at({"q0": 1}))
    put = [database.write(lambda c, at=at: put_blob(c, sent, sender="key:ci", now=at)) for at in (1, now_ms())]  # type: ignore[misc]
    assert put == [True, False]
    deleted(database, 1)
    assert number_of(database, blobs) == 1
    deleted(database, 1, after=LATER)
    assert number_of(database, blobs) == 0


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_blob_that_is_just_being_named_stays(database: Database) -> None:
    new = run_at(0, results_at({"q0": 1}))
    assert new.results
    database.write(lambda c: put_blob(c, Sent.of("results", new.results or b""), sender="key:ci", now=1))
    locked = select(blobs.c.kind).with_for_update(read=True, key_share=True)
    with database.engine.begin() as connection:
        connection.execute(locked)  # as the transaction does that records the run
        assert deleted(database, 1) == []
    assert number_of(database, blobs) == 1


def test_what_has_expired_goes(database: Database) -> None:
    now = now_ms()

    def fill(connection: Connection) -> None:
        key = new_user(connection, "ana")
        new_session(connection, key, now)
        connection.execute(update(sessions).values(seen_at=now - bounds.SESSION_IDLE * 1_000))
        new_session(connection, key, now + 1)  # which deletes the other one
        row = {"sha256": "0" * 64, "user_id": 1, "created_at": 1, "seen_at": now}
        connection.execute(sessions.insert().values(row))
        create_link(connection, "ana", author(1))  # which the next one revokes
        create_link(connection, "ana", author(now))
        connection.execute(audit.insert().values(at=1, actor="a", action="b", subject="c"))

    database.write(fill)
    before = number_of(database, audit)
    assert deleted(database, 1) == []
    with database.read() as connection:
        assert connection.execute(select(sessions.c.seen_at)).scalars().all() == [now + 1]
        links = select(func.count()).where(tokens.c.scopes == LINK)
        assert connection.execute(links).scalar_one() == 1
    assert number_of(database, audit) == before - 2  # and the row of the first link, which is as old
    assert number_of(database, tokens) == 2


def test_a_transaction_deletes_for_a_short_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_000))
    monkeypatch.setattr(retention, "seconds", lambda: next(clock) * 0.01)  # 10 ms pass between any two looks
    recorded(database, *range(9))
    with writes(database) as counted:
        rows = deleted(database, 1)
    assert len(counted) == len(rows) == 3
    assert [row[2].partition(",")[0] for row in rows] == ["3 runs", "3 runs", "2 runs"]


def test_expired_rows_go_in_parts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RETENTION_ROWS", 2)
    row = {"at": 1, "actor": "a", "action": "b", "subject": "c"}
    database.write(lambda connection: connection.execute(audit.insert(), [row] * 5))
    with writes(database) as counted:
        deleted(database, 1)
    assert len(counted) == 3
    assert number_of(database, audit) == 0


def test_the_rest_is_as_frozen_as_before(database: Database) -> None:
    recorded(database, *range(4))
    deleted(database, 2)
    for statement in ("DELETE FROM runs", "DELETE FROM points", "DELETE FROM audit", "DELETE FROM blobs"):
        with pytest.raises(IntegrityError):
            database.write(lambda connection, text=statement: connection.exec_driver_sql(text))  # type: ignore[misc]
    assert numbers_of(database) == [2, 3]


def test_the_trend_is_computed_again(database: Database) -> None:
    recorded(database, *range(12))
    assert compute(database, 1, None)
    Retention(database, 5, noted := Trends(database)).delete(now_ms())
    with database.read() as connection:
        assert connection.execute(select(trends.c.computed_at)).scalar_one() == OUTDATED
    noted.start()

    def is_computed() -> bool:
        with database.read() as connection:
            at = connection.execute(select(trends.c.computed_at)).scalar_one()
        return int(at) != OUTDATED

    until(is_computed)
    noted.close()


def test_two_services_delete_each_run_once(migrated: URL) -> None:
    with open_database(migrated) as first, open_database(migrated) as second:
        recorded(first, *range(20))
        together = Barrier(2)

        def delete(database: Database) -> None:
            together.wait()
            deleted(database, 5)

        threads = [Thread(target=delete, args=[each]) for each in (first, second)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert numbers_of(first) == [*range(15, 20)]
        with first.read() as connection:
            details = connection.execute(select(audit.c.detail).where(audit.c.actor == ACTOR)).scalars()
            assert sum(int(detail.split()[0]) for detail in details if detail) == 15


def test_a_service_deletes_at_its_start_what_it_need_not_keep(database: Database, tmp_path: Path) -> None:
    for contract in ("docs", "other"):
        recorded(database, *range(4), contract=contract)
    (tmp_path / "projects/other").mkdir(parents=True)
    (tmp_path / "projects/other/project.yml").write_text("keep_runs: 3\n")
    settings = Settings(projects=tmp_path / "projects", keep_runs=2)
    with client_of(database, settings):
        until(lambda: len(numbers_of(database)) == 2 and len(numbers_of(database, "other")) == 3)


def test_it_goes_on_after_an_error(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(database, *range(4))
    monkeypatch.setattr(retention, "AGAIN", 0)
    monkeypatch.setattr(retention, "EVERY", 0)
    failures: list[Exception] = [OperationalError("", {}, ValueError()), ZeroDivisionError()]
    counted: list[None] = []

    def fail_at_first(*_: object) -> list[int]:
        if failures:
            raise failures.pop()
        return [1, 2]

    monkeypatch.setattr(retention, "expendable", fail_at_first)
    thread = Retention(database, 2, Trends(database), lambda: counted.append(None))
    thread.start()
    until(lambda: numbers_of(database) == [2, 3])
    thread.close()
    assert len(counted) == 2
