"""The production traffic of the demo: what happens on day 80 is found within two days, and nothing before."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import select

from ragcontract.service.database import DAY, Database
from ragcontract.service.demo.demo_traffic import CHANGED, FIRST, add_traffic
from ragcontract.service.production.drift_watch import DriftWatch
from ragcontract.service.production.flags import NAMES
from ragcontract.service.tables import candidates, daily, interactions, tallies
from tests.service.alerting import alerts_of
from tests.service.production_traffic import new_project

SUNDAY = datetime(2026, 11, 29, tzinfo=UTC)
TIMES = [(0, 0.6), (1, 3), (2, 8.5), (3, 12), (4, 17), (5, 21), (6, 23.9)]  # of each day of the week
NIGHTS = 90


def filled(database: Database, now: datetime) -> int:
    """Store the traffic until a time and measure it; return the project."""
    project = new_project(database, "docs-answers")
    database.write(lambda connection: add_traffic(connection, project, now))
    DriftWatch(database, None, clock=lambda: round(now.timestamp() * 1_000), is_alone=True).look()
    return project


def rows_of(database: Database, table: Any) -> Any:
    with database.read() as connection:
        return connection.execute(select(table)).all()


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(("days", "hour"), TIMES)
def test_the_change_of_day_80_is_found_within_two_days_and_nothing_before(
    days: int, hour: float, database: Database
) -> None:
    now = SUNDAY + timedelta(days=days, hours=hour)
    filled(database, now)
    first = round(now.replace(hour=0, minute=0).timestamp() * 1_000) - (NIGHTS - 1) * DAY
    raised = {(row.monitor, (row.day - first) // DAY, row.alarm) for row in rows_of(database, daily) if row.alarm}
    assert min(day for _, day, _ in raised) == CHANGED
    within = {(monitor, alarm) for monitor, day, alarm in raised if day <= CHANGED + 1}
    assert {("question_length", 1), ("unseen_grams", 1)} <= within
    measured = {(row.day - first) // DAY for row in rows_of(database, daily)}
    assert measured == {*range(FIRST, NIGHTS - 1)}
    told = {row.monitor for row in rows_of(database, daily) if row.z is not None}
    assert {"volume", "error_rate", "empty_rate", "top_score", "latency_p95"} <= told
    assert {alert.payload.monitor for alert in alerts_of(database)} == {monitor for monitor, _, _ in raised}
    assert max(row.asked_at for row in rows_of(database, interactions)) <= now.timestamp() * 1_000


@pytest.mark.parametrize("kind", ["sqlite"])
def test_it_has_candidates_of_every_kind_and_is_counted(database: Database) -> None:
    filled(database, SUNDAY + timedelta(hours=12))
    reasons = {name for row in rows_of(database, candidates) for name in row.reason.split(", ")}
    assert reasons == {"sampled", *NAMES}
    stored, counted = rows_of(database, interactions), Counter[str]()
    for row in rows_of(database, tallies):
        counted[row.name] += row.number
    assert counted["received"] == len(stored)
    assert 5_000 < len(stored) < 15_000
    asked = sum(row.asked for row in rows_of(database, candidates))
    assert counted["sampled"] == asked + counted["golden"]
    assert len({row.query_sha for row in rows_of(database, candidates)}) == len(rows_of(database, candidates))


@pytest.mark.parametrize("kind", ["sqlite"])
def test_it_depends_on_the_time_alone_and_is_stored_once(database: Database) -> None:
    now = SUNDAY + timedelta(hours=12)
    project = filled(database, now)
    first = rows_of(database, interactions), rows_of(database, daily), rows_of(database, candidates)
    database.write(lambda connection: add_traffic(connection, project, now))
    assert (rows_of(database, interactions), rows_of(database, daily), rows_of(database, candidates)) == first
    again = new_project(database, "again")
    database.write(lambda connection: add_traffic(connection, again, now))
    texts: dict[int, list[Any]] = {number: [] for number in (project, again)}
    for row in rows_of(database, interactions):
        texts[row.project_id].append((row.external_id, row.query, row.results, row.asked_at))
    assert sorted(texts[project]) == sorted(texts[again])
