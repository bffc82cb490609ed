"""Runs that are news now, the alerts that they raise, and the thread that delivers these, almost without pauses."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, select, update

from ragcontract.service import alert_delivery
from ragcontract.service.accounts import Principal
from ragcontract.service.alert_delivery import AlertDelivery, Webhook
from ragcontract.service.alerts import Payload, payload_of, raise_alert
from ragcontract.service.database import Database, now_ms
from ragcontract.service.database_store import DatabaseStore
from ragcontract.service.tables import alerts, projects
from tests.history.entries import RUN, new_entry

NOW = datetime.now(UTC).replace(microsecond=0)
PATH = "/services/T0000/B0000/a-secret-of-the-path"
SECRET = "the secret of signatures"


class Alert(Struct, frozen=True, kw_only=True):
    """A row of the table."""

    id: int
    kind: str
    payload: Payload
    created_at: int
    tries: int
    next_try_at: int
    delivered_at: int | None


def record_run(
    database: Database, verdict: str, *, hours_ago: float = 0, branch: str | None = "main", **fields: Any
) -> None:
    """Record a run that CI sends; ``main`` is the project's branch."""
    at = NOW - timedelta(hours=hours_ago)
    run = RUN + round(at.timestamp())
    commit = f"{run:012x}"[-12:]
    source = {"commit": f"{commit:0<40}", "branch": branch, "run_id": run, "run_attempt": 1}
    new = new_entry(at=at, commit=commit, run=run, verdict=verdict, source=source, **fields)
    new = replace(new, default_branch=branch == "main")
    DatabaseStore(database, Principal(actor="key:ci")).add(new)


def alerts_of(database: Database) -> list[Alert]:
    """Return the alerts, the oldest first."""
    columns = [alerts.c[name] for name in Alert.__struct_fields__]
    with database.read() as connection:
        rows = connection.execute(select(*columns).order_by(alerts.c.id)).mappings().all()
    return [Alert(**{**row, "payload": payload_of(row["payload"])}) for row in rows]


def kinds_of(database: Database) -> list[str]:
    return [each.kind for each in alerts_of(database)]


def waiting_alerts(database: Database, number: int, *, project: str = "docs", summary: str = "news") -> None:
    """Raise alerts of a project."""

    def job(connection: Connection) -> None:
        row = {"slug": project, "name": project, "secret": "", "created_at": 0}
        known = connection.execute(select(projects.c.id).where(projects.c.slug == project)).scalar()
        made = projects.insert().values(row).returning(projects.c.id)
        project_id = known or connection.execute(made).scalar_one()
        payload = Payload(summary=summary, project=project, run=7)
        for count in range(number):
            dedupe = f"{project}:{count}"
            raise_alert(connection, "run_blocked", dedupe, payload, project_id=project_id, now=now_ms())

    database.write(job)


def due_now(database: Database) -> None:
    """Let every alert be due, as after its pause."""
    database.write(lambda connection: connection.execute(update(alerts).values(next_try_at=0)))


@contextmanager
def delivering(
    database: Database, url: str, patch: pytest.MonkeyPatch, *, secret: str = SECRET, service: str = ""
) -> Iterator[AlertDelivery]:
    """Deliver alerts until the block ends."""
    patch.setattr(alert_delivery, "LOOK", 0.02)
    patch.setattr(alert_delivery, "PAUSE", 0.02)
    delivery = AlertDelivery(database, Webhook(url=f"{url}{PATH}", secret=secret, service=service))
    delivery.start()
    try:
        yield delivery
    finally:
        delivery.close()


def environ_of(url: str) -> Mapping[str, str]:
    """Return the variables with which `serve` sends alerts."""
    return {"RAG_CONTRACT_ALERT_WEBHOOK": f"{url}{PATH}", "RAG_CONTRACT_ALERT_SECRET": SECRET}
