"""The page of alerts: where they go, which there were, whether each was delivered, and a button that sends a test."""

from typing import Any

from litestar import get, post
from litestar.di import NamedDependency
from litestar.response import Redirect, Template
from msgspec import Struct
from sqlalchemy import Connection

from ragcontract.core import bounds
from ragcontract.service import audit
from ragcontract.service.alert_delivery import AlertDelivery
from ragcontract.service.alerts import Payload, alert_of_test, alerts_below, payload_of
from ragcontract.service.database import DAY, now_ms
from ragcontract.service.web.administration import page_below
from ragcontract.service.web.authentication import ADMIN
from ragcontract.service.web.login import SEE_OTHER
from ragcontract.service.web.pages.settings_page import settings_view
from ragcontract.service.web.parameters import DEFAULT_LIMIT, Asker, By, Cursor, Db
from ragcontract.service.web.problem_details import ProblemError

ALERTS = "/settings/alerts"
KINDS = {
    "run_blocked": "broken",
    "run_failed": "no verdict",
    "run_passed": "passes again",
    "change_point": "worse",
    "drift": "production changed",
    "worker_lost": "worker lost",
    "test": "test",
}
Delivery = NamedDependency[AlertDelivery]


class ListedAlert(Struct, frozen=True, kw_only=True):
    """A row of the list."""

    id: int
    kind: str
    payload: str
    created_at: int
    tries: int
    next_try_at: int
    delivered_at: int | None
    slug: str | None
    name: str | None

    @property
    def of(self) -> Payload:
        """What happened."""
        return payload_of(self.payload)


@get(ALERTS, access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def alerts_page(principal: Asker, database: Db, delivery: Delivery, cursor: Cursor = None) -> Template:
    """Show the alerts, the newest first."""
    rows = page_below(database, alerts_below, ListedAlert, DEFAULT_LIMIT, cursor)
    now = now_ms()
    delivered = max((row.delivered_at or 0 for row in rows.items), default=0)
    view: dict[str, Any] = {
        "rows": rows,
        "kinds": KINDS,
        "webhook": delivery.webhook,
        "given_up_before": now - bounds.ALERT_DAYS * DAY,
        "now": now,
        "failing": next((row.of.problem for row in rows.items if (row.of.failed_at or 0) > delivered), None),
        "is_first": cursor is None,
    }
    return settings_view("alerts.html", principal, **view)


@post(f"{ALERTS}/test", access=ADMIN, page=True, include_in_schema=False, sync_to_thread=True)
def send_test(author: By, database: Db, delivery: Delivery) -> Redirect:
    """Send an alert that shows whether alerts arrive."""
    webhook = delivery.webhook
    if webhook is None:
        raise ProblemError(409, "no webhook is set, so there is nowhere to send an alert to")

    def job(connection: Connection) -> bool:
        audit.record(connection, author, "alert.test", "alerts", webhook.host)
        return alert_of_test(connection, author.at)

    if not database.write(job):
        raise ProblemError(409, "a test was sent a moment ago, or too many wait; see the list of alerts")
    return Redirect(ALERTS, status_code=SEE_OTHER)


ROUTES = (alerts_page, send_test)
