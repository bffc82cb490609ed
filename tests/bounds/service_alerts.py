"""Limits on the alerts of the team service."""

from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from ragcontract.net.sending import HttpAnswer
from ragcontract.service import alert_delivery
from ragcontract.service.alert_delivery import AlertDelivery, Claimed, Failure, Webhook, claim, note_failure
from ragcontract.service.alerts import (
    AlertedMetric,
    Loss,
    Payload,
    alert_of_losses,
    alert_of_run,
    encoded,
    expired_alert,
    raise_alert,
)
from ragcontract.service.database import DAY, Database
from ragcontract.service.tables import alerts, metadata, projects, runs
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.service import a_database
from tests.net.service import Reply, Service

HOUR = 3_600_000
NEWS = Payload(summary="news")


def with_project(lab: Lab) -> Database:
    """Make a database that has the project 1."""
    database = a_database(lab)
    project = {"id": 1, "slug": "docs", "name": "docs", "secret": "", "created_at": 0}

    def job(connection: Connection) -> None:
        metadata.create_all(connection)
        connection.execute(insert(projects).values(project))

    database.write(job)
    return database


def with_alerts(lab: Lab, number: int) -> Database:
    """Make a database and raise alerts at time 0."""
    database = with_project(lab)

    def job(connection: Connection) -> None:
        for count in range(number):
            raise_alert(connection, "test", f"{count}", NEWS, project_id=1, now=0)

    database.write(job)
    return database


def number_of(database: Database) -> int:
    with database.read() as connection:
        return int(connection.execute(select(func.count()).select_from(alerts)).scalar_one())


def age_of_a_run(lab: Lab, hours: int) -> bool:
    row = {"project_id": 1, "key": "x", "origin": "service", "state": "failed", "created_at": 0, "finished_at": 0}

    def job(connection: Connection) -> bool:
        run = connection.execute(insert(runs).values(row).returning(runs.c.id)).scalar_one()
        return alert_of_run(connection, run, hours * HOUR)

    return with_project(lab).write(job)


def age_of_a_change(lab: Lab, days: int) -> bool:
    database, metric = with_project(lab), AlertedMetric(metric="mrr", label="MRR", before=1, after=0.5)
    order, losses = [(1, 0), (2, days * DAY)], [Loss(1, 0, None, metric)]
    database.write(lambda connection: alert_of_losses(connection, 1, order, losses, days * DAY))
    return number_of(database) == 1


def days_of_tries(lab: Lab, days: int) -> bool:
    return with_alerts(lab, 1).write(lambda connection: claim(connection, 1, days * DAY)) is not None


def delivered_to(lab: Lab, url: str) -> None:
    delivery = AlertDelivery(with_alerts(lab, 1), Webhook(url=url))
    lab.patch.setattr(alert_delivery, "now_ms", lambda: 0)
    delivery.deliver_next(Webhook(url=url))


def seconds_of_a_try(lab: Lab, seconds: int) -> bool:
    asked: list[float] = []

    def send(*_: Any, **options: Any) -> HttpAnswer:
        asked.extend((options["seconds"], options["connect_seconds"]))
        return HttpAnswer(status=200, reason="", headers={}, content=b"")

    lab.patch.setattr(alert_delivery, "send", send)
    delivered_to(lab, "http://127.0.0.1:9")
    return min(asked) >= seconds


def pause(lab: Lab, seconds: int) -> bool:
    database = with_alerts(lab, 1)
    claimed, failure = Claimed(1, 1, "test", encoded(NEWS), 0, 0), Failure("", float(seconds), is_of_all=True)
    database.write(lambda connection: note_failure(connection, claimed, failure, 0))
    with database.read() as connection:
        return bool(connection.execute(select(alerts.c.next_try_at)).scalar_one() == seconds * 1_000)


def answer(lab: Lab, size: int) -> bool:
    read: list[bytes] = []

    def reason(_: AlertDelivery, answered: HttpAnswer) -> str:
        read.append(answered.content)
        return ""

    lab.patch.setattr(AlertDelivery, "_reason", reason)
    with Service(Reply(status=500, content=b"x" * size)) as receiver:
        delivered_to(lab, receiver.url)
    return len(read[0]) == size


def age_of_a_row(lab: Lab, days: int) -> bool:
    database = with_alerts(lab, 1)
    database.write(lambda connection: connection.execute(delete(alerts).where(expired_alert(days * DAY))))
    return number_of(database) == 1


def stored(lab: Lab, number: int) -> bool:
    database = with_alerts(lab, number)
    database.write(lambda connection: connection.execute(delete(alerts).where(expired_alert(0))))
    return number_of(database) == number


CASES: Cases = {
    "ALERT_RUN_HOURS": Case(age_of_a_run),
    "ALERT_CHANGE_DAYS": Case(age_of_a_change),
    "ALERTS_WAITING": Case(lambda lab, number: number_of(with_alerts(lab, number)) == number, small=3),
    "ALERT_DAYS": Case(days_of_tries),
    "ALERT_SECONDS": Case(seconds_of_a_try),
    "ALERT_PAUSE": Case(pause),
    "ALERT_ANSWER": Case(answer, small=100),
    "ALERT_ROW_DAYS": Case(age_of_a_row),
    "ALERTS_STORED": Case(stored, small=3),
}
