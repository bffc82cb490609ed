"""Nightly runs, on both databases, with a clock that is handed in: each night once, whatever the clock does."""

import shutil
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import URL, delete, func, insert, select, update

from ragcontract.core.errors import InputError
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import audit, projects, runs, tasks
from ragcontract.service.workers import run_queue, schedule
from ragcontract.service.workers.schedule import Schedule, next_time, task_of
from tests.service.conftest import open_database
from tests.service.listening import until
from tests.service.served import Served
from tests.service.test_monitoring import samples

HOUR = DAY // 24
NIGHTLY = 'schedule: "03:00"\n'
DUE = 20_000 * DAY + 3 * HOUR  # 03:00 of some day


def mount(folder: Path, slug: str = "docs", text: str = NIGHTLY, *, record: bool = True) -> Path:
    """Write the files of a project, and return the folder of all."""
    (folder / slug).mkdir(parents=True, exist_ok=True)
    (folder / slug / "project.yml").write_text(text)
    (folder / slug / "record.yml").write_text("")
    if not record:
        (folder / slug / "record.yml").unlink()
    return folder


class Nights:
    """The schedule of a folder, and its clock."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder, self.now, self.errors = database, folder, DUE, list[None]()
        self.schedule = Schedule(database, folder, lambda: self.errors.append(None), lambda: self.now)

    def at(self, *times: int) -> int:
        """Look at these times, and return how many runs that started."""
        before = len(self.runs())
        for self.now in times:
            self.schedule.look()
        return len(self.runs()) - before

    def runs(self) -> Sequence[Any]:
        with self.database.read() as connection:
            return connection.execute(select(runs).order_by(runs.c.id)).mappings().all()

    def next_at(self, slug: str = "docs") -> int | None:
        with self.database.read() as connection:
            return connection.execute(select(tasks.c.next_at).where(tasks.c.name == task_of(slug))).scalar()

    def last_error(self, slug: str = "docs") -> str | None:
        with self.database.read() as connection:
            return connection.execute(select(tasks.c.last_error).where(tasks.c.name == task_of(slug))).scalar()


@pytest.fixture
def nights(database: Database, tmp_path: Path) -> Nights:
    return Nights(database, mount(tmp_path / "projects"))


def test_the_time_of_day_is_that_of_utc() -> None:
    def ms(text: str) -> int:
        return int(datetime.fromisoformat(f"{text}+00:00").timestamp() * 1000)

    assert next_time("03:00", ms("2026-03-29T02:59:59")) == ms("2026-03-29T03:00")
    assert next_time("03:00", ms("2026-03-29T03:00")) == ms("2026-03-30T03:00")
    assert next_time("23:59", ms("2026-12-31T23:59:01")) == ms("2027-01-01T23:59")
    assert next_time("00:00", ms("2028-02-28T12:00")) == ms("2028-02-29T00:00")


def test_each_night_has_one_run(nights: Nights) -> None:
    assert nights.at(DUE - HOUR, DUE - 1) == 0
    assert nights.at(DUE, DUE + 1, DUE + HOUR, DUE + DAY - 1) == 1
    assert nights.at(DUE + DAY + 20_000) == 1
    assert nights.next_at() == DUE + 2 * DAY
    (first, second) = nights.runs()
    assert (first["event"], first["created_by"], first["state"], first["note"]) == (
        "schedule",
        "schedule",
        "queued",
        None,
    )
    assert [first["created_at"], second["created_at"]] == [DUE, DUE + DAY + 20_000]
    with nights.database.read() as connection:
        rows = connection.execute(select(audit.c.actor, audit.c.action, audit.c.subject).order_by(audit.c.id)).all()
    assert rows == [("schedule", "run.start", f"run:{run['id']}") for run in (first, second)]


def test_nights_without_a_service_are_made_up_for_once(nights: Nights) -> None:
    nights.at(DUE - 1)
    restarted = Nights(nights.database, nights.folder)
    assert restarted.at(DUE + 5 * DAY + 4 * HOUR) == 1
    assert restarted.next_at() == DUE + 6 * DAY
    assert restarted.at(DUE + 6 * DAY - 1, DUE + 6 * DAY) == 1


def test_a_new_or_changed_schedule_does_not_start_at_once(nights: Nights) -> None:
    assert nights.at(DUE + 1) == 0
    assert nights.next_at() == DUE + DAY
    mount(nights.folder, text="schedule: 02:00\n")
    assert nights.at(DUE + 2) == 0
    assert nights.next_at() == DUE + DAY - HOUR
    mount(nights.folder, text="schedule: 04:00\n")  # while no service runs: what was due meanwhile was due otherwise
    assert nights.at(DUE + 3 * DAY) == 0
    assert nights.at(DUE + 3 * DAY + HOUR) == 1


def test_a_removed_schedule_leaves_no_row(nights: Nights) -> None:
    removals: list[Callable[[], object]] = [
        lambda: mount(nights.folder, text="name: Docs\n"),
        lambda: mount(nights.folder, record=False),
    ]
    for place, remove in enumerate(removals):
        now = DUE + place * 10 * DAY
        mount(nights.folder)
        assert nights.at(now - 1) == 0
        remove()
        nights.database.write(lambda connection: connection.execute(insert(tasks).values(name="worker:x", next_at=1)))
        assert nights.at(now) == 0
        with nights.database.read() as connection:
            assert connection.execute(select(tasks.c.name)).scalars().all() == ["worker:x"]
        nights.database.write(lambda connection: connection.execute(delete(tasks)))
    mount(nights.folder)
    assert nights.at(DUE + 100 * DAY) == 0  # it is new again


@pytest.mark.parametrize("hours", [1, 20, 24])
def test_a_clock_that_is_set_back_repeats_no_night_and_loses_none(nights: Nights, hours: int) -> None:
    nights.at(DUE - 1)
    assert nights.at(DUE + HOUR // 2) == 1
    back = DUE + HOUR // 2 - hours * HOUR
    assert nights.at(*range(back, DUE + DAY, HOUR // 4)) == 0
    assert nights.at(DUE + DAY) == 1


def test_a_clock_that_is_set_back_before_a_night_does_not_lose_it(nights: Nights) -> None:
    nights.at(DUE - 1)
    assert nights.at(DUE - HOUR, DUE - 1) == 0
    assert nights.at(DUE) == 1


def test_a_clock_that_was_far_ahead_recovers(nights: Nights) -> None:
    nights.at(DUE - 1)
    nights.at(DUE + 5_000 * DAY)
    assert nights.at(DUE + HOUR) == 0
    assert nights.next_at() == DUE + DAY
    assert nights.at(DUE + DAY) == 1


def test_two_services_on_one_database_start_a_night_once(migrated: URL, tmp_path: Path) -> None:
    folder = mount(tmp_path / "projects")
    for number in range(8):
        mount(folder, f"p{number}")
    with open_database(migrated) as first, open_database(migrated) as second:
        services = [Nights(first, folder), Nights(second, folder)]
        services[0].at(DUE - 1)
        for night in range(5):
            barrier = Barrier(2)

            def look(each: Nights, now: int = DUE + night * DAY, barrier: Barrier = barrier) -> None:
                each.now = now
                barrier.wait()
                each.schedule.look()

            threads = [Thread(target=look, args=[each]) for each in services]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with first.read() as connection:
                counts = connection.execute(select(func.count()).select_from(runs).group_by(runs.c.project_id))
                assert [*counts.scalars()] == [night + 1] * 9
        assert [each.errors for each in services] == [[], []]


def test_services_with_other_projects_lose_no_night_of_each_other(database: Database, tmp_path: Path) -> None:
    first = Nights(database, mount(tmp_path / "first"))
    second = Nights(database, mount(tmp_path / "second", "shop"))
    for each in (first, second):
        assert each.at(DUE - 1) == 0
    assert (second.at(DUE), first.at(DUE + 1)) == (1, 1)


def test_a_project_that_is_away_for_a_while_loses_no_night(nights: Nights) -> None:
    nights.at(DUE - 1)
    away = (nights.folder / "docs").rename(nights.folder.with_name("away"))
    assert nights.at(DUE) == 0
    away.rename(nights.folder / "docs")
    assert nights.at(DUE + HOUR) == 1


def test_a_schedule_that_no_service_has_leaves_no_row(nights: Nights) -> None:
    nights.at(DUE - 1)
    shutil.rmtree(nights.folder / "docs")
    nights.at(DUE + DAY)
    assert nights.next_at() == DUE
    nights.at(DUE + DAY + 1)
    assert nights.next_at() is None


def test_what_is_mounted_is_read_again_at_each_look(nights: Nights) -> None:
    nights.at(DUE - 1)
    mount(nights.folder, "late", 'schedule: "03:01"\nname: Late\nkeep_runs: 7\n')
    mount(nights.folder, "never", NIGHTLY, record=False)
    nights.at(DUE - 1)
    assert [nights.next_at(slug) for slug in ("late", "never")] == [DUE + 60_000, None]
    with nights.database.read() as connection:
        rows = connection.execute(select(projects.c.name, projects.c.keep_runs).where(projects.c.slug == "late"))
        assert [*rows] == [("Late", 7)]
    mount(nights.folder, "never")
    assert nights.at(DUE, DUE + 60_000) == 2
    assert nights.next_at("never") == DUE + DAY


def test_a_broken_file_stops_its_project_alone_until_it_is_corrected(nights: Nights) -> None:
    mount(nights.folder, "other")
    nights.at(DUE - 1)
    (nights.folder / "docs/project.yml").write_text("schedule: [")
    assert nights.at(DUE) == 1
    assert (nights.last_error() or "").startswith("docs/project.yml:1: is not YAML")
    assert nights.last_error("other") is None
    assert nights.errors == [None]
    mount(nights.folder)
    assert nights.at(DUE + HOUR) == 1
    assert nights.last_error() is None


def test_a_corrected_file_takes_its_error_away(nights: Nights) -> None:
    nights.at(DUE - HOUR)
    mount(nights.folder, text="timeout: 0\n")
    nights.at(DUE - HOUR)
    assert nights.last_error()
    mount(nights.folder)
    nights.at(DUE - HOUR)
    assert (nights.last_error(), nights.next_at()) == (None, DUE)


def test_a_folder_that_is_gone_for_a_while_loses_no_night(nights: Nights) -> None:
    nights.at(DUE - 1)
    nights.folder.rename(nights.folder.with_name("away"))
    with pytest.raises(InputError, match="cannot be read"):
        nights.at(DUE)
    nights.folder.with_name("away").rename(nights.folder)
    assert nights.at(DUE + 1) == 1


def test_a_run_that_cannot_be_started_is_tried_again_and_stops_no_other(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount(nights.folder, "a-first")
    nights.at(DUE - 1)
    enqueue = run_queue.enqueue

    def fail(connection: Any, project: int, **values: Any) -> int:
        number = enqueue(connection, project, **values)
        with_first = select(projects.c.slug).where(projects.c.id == project)
        if connection.execute(with_first).scalar() == "a-first":
            raise RuntimeError("secret")
        return number

    monkeypatch.setattr(schedule, "enqueue", fail)
    assert nights.at(DUE) == 1
    assert (nights.last_error("a-first"), nights.last_error()) == ("RuntimeError", None)
    assert nights.errors == [None]
    monkeypatch.setattr(schedule, "enqueue", enqueue)
    assert nights.at(DUE + 1) == 1
    assert nights.last_error("a-first") is None


def test_a_full_queue_is_said_in_words(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragcontract.core.bounds.RUNS_QUEUED", 1)
    nights.at(DUE - 1)
    assert nights.at(DUE, DUE + DAY) == 1
    assert "wait" in (nights.last_error() or "")
    nights.database.write(lambda connection: connection.execute(update(runs).values(state="cancelled")))
    assert nights.at(DUE + DAY + HOUR) == 1


def test_the_service_starts_what_is_due_and_counts_errors(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "EVERY", 0.01)
    folder = mount(tmp_path / "projects")
    with Served(database, projects=folder) as served:
        nights = Nights(database, folder)
        until(nights.next_at)
        now = now_ms()
        missed = next_time("03:00", now) - DAY
        database.write(lambda connection: connection.execute(update(tasks).values(next_at=missed)))
        until(nights.runs)
        assert samples(served)["rag_contract_task_errors_total", "schedule"] == 0
        (folder / "docs/project.yml").write_text("x: y\n")
        until(lambda: samples(served)["rag_contract_task_errors_total", "schedule"])
    assert len(nights.runs()) == 1
    with Served(database) as served:  # without the folder, nothing is scheduled and nothing is forgotten
        served.get("/projects")
    assert nights.next_at() == next_time("03:00", now)
