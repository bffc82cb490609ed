"""What is stored of measured days: the alarms that are alerts, and the levels that people accept."""

import msgspec
import pytest
from sqlalchemy import select, update

from ragcontract.service.alert_delivery import Claimed, Webhook, body_of
from ragcontract.service.audit import Author
from ragcontract.service.database import DAY, Database
from ragcontract.service.production.daily_rows import accept_level
from ragcontract.service.production.drift_watch import SETTLE
from ragcontract.service.tables import accepted_levels, alerts, audit, projects
from tests.service.alerting import alerts_of
from tests.service.conftest import HOSTILE
from tests.service.production_traffic import NOON, TODAY, WEEKS, days_of, new_project, store_days
from tests.service.test_alert_page import desk_with


@pytest.mark.parametrize(("changed", "is_alert"), [(17, False), (14, True), (13, True)])
def test_an_alarm_that_began_long_ago_is_no_alert(changed: int, is_alert: bool, database: Database) -> None:
    project = new_project(database)
    store_days(database, project, changed=changed, first=WEEKS + changed, now=TODAY + SETTLE)
    assert days_of(database, project, "question_length")[changed].alarm == 1
    assert bool([alert for alert in alerts_of(database) if alert.payload.monitor == "question_length"]) == is_alert


def test_an_accepted_level_ends_the_alarm_and_is_recorded(database: Database) -> None:
    project = new_project(database)
    store_days(database, project, changed=5)
    before = days_of(database, project, "question_length")
    author = Author(actor="user:ana", at=NOON)
    day = TODAY - 5 * DAY
    assert database.write(lambda connection: accept_level(connection, project, "question_length", day, author))
    after = days_of(database, project, "question_length")
    assert [row.alarm for row in after.values()] == [0] * WEEKS
    assert [row.z for row in after.values()] == [row.z if number > 5 else None for number, row in before.items()]
    with database.read() as connection:
        (level,) = connection.execute(select(accepted_levels)).all()
        (noted,) = connection.execute(select(audit)).all()
    assert (level.monitor, level.day, level.accepted_by, level.accepted_at) == (
        "question_length",
        day,
        "user:ana",
        NOON,
    )
    assert (noted.action, noted.subject, noted.detail) == (
        "level.accept",
        "project:docs",
        "question_length since 25 Nov",
    )
    others = days_of(database, project, "volume")
    assert others[3].z is not None  # of other monitors, nothing is accepted


def test_after_a_level_is_accepted_the_monitor_learns_it(database: Database) -> None:
    project = new_project(database)
    store_days(database, project, changed=16)
    author, day = Author(actor="user:ana", at=NOON), TODAY - 16 * DAY
    database.write(lambda connection: accept_level(connection, project, "question_length", day, author))
    lengths = days_of(database, project, "question_length")
    assert [number for number in range(16, 0, -1) if lengths[number].z is not None] == [4, 3]  # Thursday and Friday
    assert lengths[4].z == 0
    store_days(database, project, changed=-1, first=0, last=0)
    assert days_of(database, project, "question_length")[0].alarm == -1


def test_a_level_is_accepted_again_from_a_later_day(database: Database) -> None:
    project = new_project(database)
    store_days(database, project, changed=5)
    author = Author(actor="user:ana", at=NOON)
    for days in (5, 3):
        day = TODAY - days * DAY
        assert database.write(lambda connection, day=day: accept_level(connection, project, "volume", day, author))  # type: ignore[misc]
    with database.read() as connection:
        assert connection.execute(select(accepted_levels.c.day)).scalars().all() == [TODAY - 3 * DAY]


@pytest.mark.parametrize(("monitor", "day"), [("nothing", 5), ("volume", -3), (HOSTILE, 5)])
def test_what_has_no_such_day_is_not_accepted(monitor: str, day: int, database: Database) -> None:
    project = new_project(database)
    store_days(database, project, changed=5, first=10)
    author = Author(actor="user:ana", at=NOON)
    accepted = database.write(lambda c: accept_level(c, project, monitor, TODAY - day * DAY, author))
    assert not accepted
    with database.read() as connection:
        assert connection.execute(select(accepted_levels)).all() == []


def test_an_alert_links_to_the_page_and_names_the_monitor(database: Database) -> None:
    project = new_project(database, "docs")
    store_days(database, project, changed=5)
    with database.read() as connection:
        rows = connection.execute(select(alerts).order_by(alerts.c.id)).all()
    webhook = Webhook(url="https://hooks.example.com", service="https://rag.example.com")
    bodies = [
        msgspec.json.decode(body_of(Claimed(row.id, project, row.kind, row.payload, row.created_at, 1), webhook))
        for row in rows
    ]
    body = next(body for body in bodies if body["monitor"] == "question_length")
    assert (body["kind"], body["day"]) == ("drift", TODAY - 5 * DAY)
    assert body["url"] == "https://rag.example.com/p/docs/production"
    assert body["text"].startswith("docs: Questions are longer since 25 Nov: median 87 characters")
    assert body["text"].endswith(" https://rag.example.com/p/docs/production")


def test_the_page_of_alerts_shows_it(database: Database) -> None:
    project = new_project(database)
    store_days(database, project, changed=5)
    with desk_with(database, None) as desk:
        text = desk.get("/settings/alerts")
    assert "Questions are longer since 25 Nov" in text
    assert 'href="/p/docs/production"' in text
    assert "production changed" in text


def test_alarms_of_a_project_with_a_hostile_name_are_alerts(database: Database) -> None:
    project = new_project(database)
    database.write(lambda connection: connection.execute(update(projects).values(name=HOSTILE)))
    store_days(database, project, changed=5)
    assert {alert.kind for alert in alerts_of(database)} == {"drift"}
    assert all("<script>" not in alert.payload.summary for alert in alerts_of(database))
