"""The thread that measures production: which days it measures, again and once, and what it raises."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.exc import OperationalError

from ragcontract.core import bounds
from ragcontract.service.audit import Author
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.production import drift_watch
from ragcontract.service.production.daily_rows import store_day
from ragcontract.service.production.deletion import delete_expired
from ragcontract.service.production.drift_watch import LEASE, SETTLE, DriftWatch
from ragcontract.service.production.measured_day import MeasuredDay, measure
from ragcontract.service.tables import alerts, daily, interactions, projects, sketches, tasks
from tests.service.alerting import alerts_of
from tests.service.askers import client_of
from tests.service.conftest import opened_database
from tests.service.mounting import Mounted
from tests.service.production_traffic import (
    LONGER,
    NOON,
    QUESTION,
    TODAY,
    WEEKS,
    Row,
    all_days,
    asked,
    days_of,
    new_project,
    store,
    task_of_project,
    unmeasured,
    watch_of,
)

SIX_WEEKS = 42
TWO_WEEKS = 14  # which tell something of Thursday and Friday
FEW = 5  # interactions a day, where nobody compares it


def traffic(changed: int, first: int = WEEKS) -> list[Row]:
    """Return what was asked each day; since some days ago, questions are longer."""
    days = range(first, 0, -1)
    return [row for day in days for row in asked(day, 105 + day % 7, question=LONGER if day <= changed else QUESTION)]


def few(first: int) -> list[Row]:
    """Return what was asked each day, which is too little to compare."""
    return [row for day in range(first, 0, -1) for row in asked(day, FEW)]


def test_six_weeks_that_are_sent_at_once_are_measured_at_the_next_look(database: Database) -> None:
    project = new_project(database)
    store(database, project, traffic(changed=5, first=SIX_WEEKS))
    watch_of(database).look()
    lengths = days_of(database, project, "question_length")
    assert [*lengths] == [*range(SIX_WEEKS, 0, -1)]
    assert [day for day, row in lengths.items() if row.alarm] == [5]
    assert lengths[5].alarm == 1
    assert unmeasured(database, project) is None
    assert task_of_project(database, project).next_at == TODAY


def test_an_alarm_is_an_alert_once(database: Database) -> None:
    project = new_project(database)
    store(database, project, traffic(changed=5))
    watch = watch_of(database)
    watch.look()
    of_length = [alert for alert in alerts_of(database) if alert.payload.monitor == "question_length"]
    (alert,) = of_length
    assert (alert.kind, alert.payload.project, alert.payload.day) == ("drift", "docs", TODAY - 5 * DAY)
    assert alert.payload.summary == "Questions are longer since 25 Nov: median 87 characters, usually 43"
    number = len(alerts_of(database))
    store(database, project, asked(20, 3, question="Late {}"))
    watch.look()
    store(database, project, asked(0, 107, question=LONGER), late=False)
    watch_of(database, now=NOON + DAY).look()
    assert len(alerts_of(database)) == number


def test_late_interactions_that_move_an_alarm_by_a_day_raise_no_other_alert(database: Database) -> None:
    project = new_project(database)
    store(database, project, traffic(changed=4))
    watch = watch_of(database)
    watch.look()
    number = len(alerts_of(database))
    store(database, project, asked(5, 600, question=LONGER))
    watch.look()
    alarmed = [day for day, row in days_of(database, project, "question_length").items() if row.alarm]
    assert alarmed == [5]
    lengths = [alert for alert in alerts_of(database) if alert.payload.monitor == "question_length"]
    assert len(lengths) == 1
    assert len(alerts_of(database)) >= number


def test_a_day_is_measured_when_it_is_over(database: Database) -> None:
    project = new_project(database)
    store(database, project, asked(0), late=False)
    watch_of(database, now=TODAY + DAY + SETTLE - 1).look()
    assert days_of(database, project) == {}
    watch_of(database, now=TODAY + DAY + SETTLE).look()
    assert [*days_of(database, project)] == [0]


def test_each_day_is_measured_as_the_days_go_by(database: Database) -> None:
    project = new_project(database)
    for day in (3, 2, 0):
        store(database, project, asked(day, 100 + day), late=False)
    for day in (2, 1, 0, -1, -1):
        watch_of(database, now=TODAY - day * DAY + 2 * SETTLE).look()
    assert {day: row.n for day, row in days_of(database, project).items()} == {3: 103, 2: 102, 1: 0, 0: 100}


def test_late_interactions_are_measured_and_the_days_after_them_again(database: Database) -> None:
    project = new_project(database)
    store(database, project, traffic(changed=0))
    watch = watch_of(database)
    watch.look()
    before = days_of(database, project)
    store(database, project, asked(10, 7, question="Late {}"))
    assert unmeasured(database, project) == 10
    watch.look()
    after = days_of(database, project)
    assert after[10].n == before[10].n + 7
    assert {day: row.n for day, row in after.items() if day != 10} == {
        day: row.n for day, row in before.items() if day != 10
    }
    assert after[11].z == before[11].z
    assert after[3].z != before[3].z  # as like days have changed
    assert unmeasured(database, project) is None


def test_measuring_again_changes_nothing(database: Database) -> None:
    project = new_project(database)
    store(database, project, traffic(changed=5))
    watch = watch_of(database)
    watch.look()
    first = all_days(database)
    database.write(lambda connection: connection.execute(update(projects).values(unmeasured_from=TODAY - WEEKS * DAY)))
    watch.look()
    assert all_days(database) == first


def test_days_in_any_order_are_as_if_they_came_in_time(database: Database) -> None:
    one, other, watch = new_project(database, "one"), new_project(database, "other"), watch_of(database)
    rows = traffic(changed=4, first=TWO_WEEKS)
    store(database, one, rows)
    watch.look()
    for day in (1, 2, 0):
        store(database, other, [row for place, row in enumerate(rows) if place % 3 == day])
        watch.look()
    expected = [tuple(row)[1:] for day, row in days_of(database, one, "question_length").items()]
    assert [tuple(row)[1:] for day, row in days_of(database, other, "question_length").items()] == expected


def while_measuring(monkeypatch: pytest.MonkeyPatch, job: Callable[[int], None]) -> None:
    """Do something after a day was read and before it is stored."""

    def then(database: Database, project: int, day: int, *others: Any) -> MeasuredDay:
        of_day = measure(database, project, day, *others)
        job((TODAY - day) // DAY)
        return of_day

    monkeypatch.setattr(drift_watch, "measure", then)


def test_what_comes_late_while_days_are_measured_is_not_lost(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, come = new_project(database), set[int]()
    store(database, project, few(12))

    def come_late(day: int) -> None:
        if day in {3, 7} and day not in come:
            come.add(day)
            store(database, project, asked(9, 5, question=f"Late since {day}: {{}}"))

    while_measuring(monkeypatch, come_late)
    watch = watch_of(database)
    watch.look()
    assert (days_of(database, project)[9].n, unmeasured(database, project)) == (FEW, 9)
    watch.look()
    assert (days_of(database, project)[9].n, unmeasured(database, project)) == (FEW + 10, None)


def test_whoever_dies_leaves_the_rest_to_the_next(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    project = new_project(database)
    store(database, project, few(12))

    def die(day: int) -> None:
        if day == 6:
            raise SystemExit

    while_measuring(monkeypatch, die)
    monkeypatch.setattr(drift_watch, "_release", lambda *_: None)  # nobody releases what a dead process has
    with pytest.raises(SystemExit):
        watch_of(database).look()
    monkeypatch.undo()
    assert [*days_of(database, project)] == [*range(12, 6, -1)]
    watch_of(database, now=NOON + LEASE - 1).look()
    assert len(days_of(database, project)) == 6  # it may be alive
    watch_of(database, now=NOON + LEASE + 1).look()
    assert [*days_of(database, project)] == [*range(12, 0, -1)]


@pytest.mark.parametrize("kind", ["postgres"])
def test_two_services_measure_each_day_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [new_project(database, f"p{number}") for number in range(3)]
    for number in numbers:
        store(database, number, traffic(changed=4, first=TWO_WEEKS))
    measured: list[int] = []
    while_measuring(monkeypatch, measured.append)
    other = Database(database.url)
    barrier, failures = threading.Barrier(2), list[int]()

    def look(of: Database) -> None:
        watch = watch_of(of, failed=lambda: failures.append(1))
        barrier.wait()
        watch.look()

    threads = [threading.Thread(target=look, args=[of]) for of in (database, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    watch_of(database).look()  # what the other one had claimed
    other.close()
    assert failures == []
    assert sorted(measured) == sorted([*range(1, TWO_WEEKS + 1)] * 3)
    assert [len(days_of(database, number)) for number in numbers] == [TWO_WEEKS] * 3
    lengths = [alert for alert in alerts_of(database) if alert.payload.monitor == "question_length"]
    assert len(lengths) == 3


def test_whoever_has_lost_a_project_changes_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    project = new_project(database)
    store(database, project, few(5))

    def taken(day: int) -> None:
        if day == 3:
            lost = update(tasks).where(tasks.c.name == f"drift:{project}").values(lease_owner="another")
            database.write(lambda connection: connection.execute(lost))

    while_measuring(monkeypatch, taken)
    watch_of(database).look()
    assert [*days_of(database, project)] == [5, 4]
    assert task_of_project(database, project).lease_owner == "another"


def test_an_error_is_counted_and_another_project_is_measured(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken, whole, failures = new_project(database, "broken"), new_project(database, "whole"), list[int]()
    store(database, broken, asked(1))
    store(database, whole, asked(1))

    def fail(of: Database, project: int, *others: Any) -> MeasuredDay:
        if project == broken and not failures:
            raise OperationalError("SELECT 'a question'", None, Exception("gone"))
        return measure(of, project, *others)

    monkeypatch.setattr(drift_watch, "measure", fail)
    watch = watch_of(database, failed=lambda: failures.append(1))
    watch.look()
    assert failures == [1]
    assert "a question" not in caplog.text
    assert (len(days_of(database, broken)), len(days_of(database, whole))) == (0, 1)
    watch.look()
    assert len(days_of(database, broken)) == 0  # it rests
    monkeypatch.setattr(drift_watch, "AGAIN", 0)
    watch_of(database).look()
    assert len(days_of(database, broken)) == 1


def test_a_project_that_took_long_rests(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    project = new_project(database)
    monkeypatch.setattr(drift_watch, "LONG", -1.0)
    monkeypatch.setattr(drift_watch, "REST", 10**6)
    store(database, project, asked(2))
    watch = DriftWatch(database, None, clock=lambda: NOON)
    watch.look()
    store(database, project, asked(2, 5, question="Late {}"))
    watch.look()
    assert days_of(database, project)[2].n == 120
    watch_of(database).look()
    assert days_of(database, project)[2].n == 125


def test_days_whose_interactions_are_deleted_stay_as_they_were(database: Database) -> None:
    project = new_project(database)
    store(database, project, few(20))
    watch_of(database).look()
    before = days_of(database, project)
    keep = update(projects).values(keep_days=10, unmeasured_from=TODAY - 20 * DAY)
    gone = delete(interactions).where(interactions.c.asked_at < NOON - 10 * DAY)

    def job(connection: Connection) -> None:
        connection.execute(keep)
        connection.execute(gone)

    database.write(job)
    watch_of(database).look()
    assert {day: row.n for day, row in days_of(database, project).items()} == {
        day: row.n for day, row in before.items()
    }
    assert unmeasured(database, project) is None


def test_what_late_days_are_compared_with_is_kept_as_long_as_interactions(database: Database) -> None:
    project, author = new_project(database), Author(actor="retention", at=NOON)
    database.write(lambda connection: connection.execute(update(projects).values(keep_days=120)))
    store(database, project, [row for day in range(100, 0, -1) for row in asked(day, 3)])
    watch = watch_of(database)
    watch.look()
    monitors = ("unseen_grams", "unknown_documents")
    before = {name: days_of(database, project, name) for name in monitors}
    assert [len(days) for days in before.values()] == [93, 93]
    delete_expired(database, author, lambda: False)
    store(database, project, asked(75, 3, question=LONGER))
    watch.look()
    for name, days in before.items():
        after = days_of(database, project, name)
        assert [*after] == [*days]
        assert {day: row.value for day, row in after.items() if day != 75} == {
            day: row.value for day, row in days.items() if day != 75
        }


def test_who_keeps_a_day_has_yesterday_measured(database: Database) -> None:
    project = new_project(database)
    database.write(lambda connection: connection.execute(update(projects).values(keep_days=1)))
    store(database, project, asked(1))
    watch_of(database).look()
    assert [*days_of(database, project)] == [1]


def test_old_sketches_are_deleted_and_those_that_are_needed_are_not(database: Database) -> None:
    project = new_project(database)
    database.write(lambda connection: connection.execute(update(projects).values(keep_days=5)))
    rows = [{"project_id": project, "day": TODAY - day * DAY, "kind": "grams", "body": b""} for day in (32, 33, 40)]
    database.write(lambda connection: connection.execute(sketches.insert(), rows))
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(sketches)).scalar() == 3
    store(database, project, asked(1))
    empty = [row | {"body": b"x\x9cc\x18\x05\x00\x00\x01\x00\x01"} for row in rows]
    database.write(lambda connection: connection.execute(delete(sketches)))
    database.write(lambda connection: connection.execute(sketches.insert(), empty))
    watch_of(database).look()
    with database.read() as connection:
        days = connection.execute(select(sketches.c.day).where(sketches.c.day < TODAY - DAY)).scalars().all()
    assert [(TODAY - day) // DAY for day in days] == [32]


def test_a_clock_that_was_wrong_loses_no_days(database: Database) -> None:
    project = new_project(database)
    store(database, project, asked(1))
    watch_of(database, now=NOON + 400 * DAY).look()
    store(database, project, asked(0, 77), late=False)
    watch_of(database, now=NOON + DAY).look()
    assert days_of(database, project)[0].n == 77


def test_the_playground_alone_is_no_production(database: Database) -> None:
    project = new_project(database)
    store(database, project, asked(1, source="playground"))
    watch_of(database).look()
    assert all_days(database) == []


def test_coverage_is_of_the_mounted_contract(database: Database, tmp_path: Any) -> None:
    mounted = Mounted(database, tmp_path)
    lines = [f'{{"id": "q{n}", "query": "How do I cancel order {n}?", "relevant_doc_ids": ["d"]}}\n' for n in range(12)]
    mounted.write("golden.jsonl", "".join(lines))
    with database.read() as connection:
        project = int(connection.execute(select(projects.c.id)).scalar_one())
    store(database, project, [*asked(1, 30, question="How do I cancel order {}?"), *asked(1, 10, question="Zyx {}!")])
    watch = watch_of(database, mounted.folder)
    watch.look()
    assert days_of(database, project, "golden_coverage")[1].value == 0.75
    mounted.write("golden.jsonl", "".join(lines).replace("How do I cancel order", "Zyx"))
    database.write(lambda connection: connection.execute(update(projects).values(unmeasured_from=TODAY - DAY)))
    watch.look()
    assert days_of(database, project, "golden_coverage")[1].value == 0.25


def test_the_service_measures_by_itself(
    kind: str, request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = threading.Event()

    def note(*arguments: Any) -> None:
        store_day(*arguments)
        stored.set()

    monkeypatch.setattr(drift_watch, "store_day", note)
    with opened_database(kind, request, tmp_path) as database:
        yesterday = now_ms() // DAY * DAY - DAY
        store(database, new_project(database), [row | {"asked_at": yesterday} for row in asked(1)])
        with client_of(database):
            assert stored.wait(60)


def test_a_service_that_ends_does_not_measure_on(database: Database) -> None:
    project = new_project(database)
    store(database, project, asked(1))
    watch = DriftWatch(database, None)
    watch.close()
    watch.look()
    assert days_of(database, project) == {}
    assert bounds.ALERT_DRIFT_DAYS == 14
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(alerts)).scalar() == 0
        assert connection.execute(select(func.count()).select_from(daily)).scalar() == 0
