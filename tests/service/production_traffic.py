"""Interactions of tests, stored as the service stores them, and the thread that measures them."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, func, select, update

from ragcontract.service.database import DAY, Database
from ragcontract.service.production.daily_rows import store_day
from ragcontract.service.production.drift_watch import DriftWatch
from ragcontract.service.production.interactions import question_digest
from ragcontract.service.production.measured_day import MeasuredDay, Value
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.tables import daily, interactions, projects, tasks

TODAY = round(datetime(2026, 11, 30, tzinfo=UTC).timestamp() * 1_000)  # a Monday
NOON = TODAY + DAY // 2
QUESTION = "How do I cancel my order number {} today?"  # so many characters long, with four digits
LONGER = "Please tell me as soon as you can how I might cancel my order number {} of yesterday?"
WEEKS = 20  # days, with enough weekdays to tell something of the last ones
Row = dict[str, Any]


def new_project(database: Database, slug: str = "docs") -> int:
    """Add a project and return its id."""

    def job(connection: Connection) -> int:
        add_project(connection, slug, slug, 0)
        return int(connection.execute(select(projects.c.id).where(projects.c.slug == slug)).scalar_one())

    return database.write(job)


def asked(day: int, number: int = 120, *, question: str = QUESTION, **fields: Any) -> list[Row]:
    """Return what was asked on a day so many days ago, 1 being yesterday."""
    begins = TODAY - day * DAY
    return [
        {
            "external_id": f"{question[:40]}-{begins}-{place}",
            "source": "website",
            "asked_at": begins + place * 1_000,
            "received_at": begins,
            "query": question.format(1_000 + place),
            "results": '[{"doc_id":"d1","score":0.9},{"doc_id":"d2","score":0.7}]',
            "latency_ms": 500.0,
        }
        | fields
        for place in range(number)
    ]


def store(database: Database, project: int, rows: Iterable[Row], *, late: bool = True) -> None:
    """Store interactions; those that come ``late`` set from when days have to be measured again."""
    full = [
        {"error": None, "feedback": None, "query_sha": question_digest(row["query"]), **row, "project_id": project}
        for row in rows
    ]

    def job(connection: Connection) -> None:
        connection.execute(interactions.insert(), full)
        if late:
            day = min(row["asked_at"] for row in full) // DAY * DAY
            earliest = func.coalesce(projects.c.unmeasured_from, day)
            lower = update(projects).where(projects.c.id == project, earliest >= day)
            connection.execute(lower.values(unmeasured_from=day))

    database.write(job)


def store_days(
    database: Database, project: int, *, changed: int, first: int = WEEKS, last: int = 1, now: int = NOON
) -> None:
    """Store days as if they had been measured; since some days ago, questions are longer."""
    for day in range(first, last - 1, -1):
        question = LONGER if day <= changed else QUESTION
        values = {
            "volume": Value(n=120, value=120.0),
            "question_length": Value(n=120, value=float(len(question.format(1_000)))),
        }
        of_day = MeasuredDay(values=values, sketches={})
        database.write(partial(store_day, project=project, day=TODAY - day * DAY, measured=of_day, now=now))


def watch_of(
    database: Database, folder: Path | None = None, now: int = NOON, failed: Callable[[], None] = lambda: None
) -> DriftWatch:
    """Return what measures days, at a time, without pauses."""
    return DriftWatch(database, folder, failed, clock=lambda: now, is_alone=True)


def days_of(database: Database, project: int, monitor: str = "volume") -> dict[int, Any]:
    """Return the measured days of a monitor, by how many days ago they were."""
    wanted = daily.c.project_id == project, daily.c.monitor == monitor
    with database.read() as connection:
        rows = connection.execute(select(daily).where(*wanted).order_by(daily.c.day)).all()
    return {(TODAY - row.day) // DAY: row for row in rows}


def all_days(database: Database) -> Sequence[Any]:
    """Return all that was measured, without its projects."""
    with database.read() as connection:
        columns = daily.c.day, daily.c.monitor, daily.c.n, daily.c.value, daily.c.z, daily.c.alarm
        return connection.execute(select(*columns).order_by(daily.c.project_id, daily.c.day, daily.c.monitor)).all()


def task_of_project(database: Database, project: int) -> Any:
    with database.read() as connection:
        return connection.execute(select(tasks).where(tasks.c.name == f"drift:{project}")).one_or_none()


def unmeasured(database: Database, project: int) -> int | None:
    """Return how many days ago the first day was that has to be measured again; None if there is none."""
    with database.read() as connection:
        day = connection.execute(select(projects.c.unmeasured_from).where(projects.c.id == project)).scalar()
    return None if day is None else (TODAY - int(day)) // DAY


def results(*ids: str) -> str:
    """Return results as they are stored."""
    return msgspec.json.encode([{"doc_id": each} for each in ids]).decode()
