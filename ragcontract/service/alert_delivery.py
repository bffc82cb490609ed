"""Delivers alerts to a webhook: each at least once, with pauses that grow while it does not take them.

Before an alert is sent, its next try is put off in a transaction, so that two services on one database do not both send
it. Who dies after sending it leaves it waiting, and it is sent again with the same id and the same content.
"""

import hashlib
import hmac
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, func, select, update

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import clipped_line
from ragcontract.net.pacing import Timing, asked_pause, backoff
from ragcontract.net.secrets import Redaction
from ragcontract.net.sending import (
    REDIRECTS,
    HttpAnswer,
    HttpCall,
    Unanswered,
    has_credentials,
    is_url,
    send,
)
from ragcontract.net.sessions import open_session
from ragcontract.service.alerts import AlertedMetric, Payload, encoded, is_waiting, payload_of
from ragcontract.service.background import BackgroundJob
from ragcontract.service.database import Database, now_ms
from ragcontract.service.tables import alerts

WEBHOOK, SECRET, ADDRESS = "RAG_CONTRACT_ALERT_WEBHOOK", "RAG_CONTRACT_ALERT_SECRET", "RAG_CONTRACT_URL"
LOOK = 2.0  # seconds until the next look for alerts
PAUSE = 10.0  # seconds until the next try, of any alert, after one that others would fail like
HOLD = 600.0  # seconds; as long, a receiver that asks for a pause is not sent any other alert
LEASE = 3  # times as long as a try may take, an alert is left to the service that sends it
OWN_FAULT = {400, 413, 422}  # of this alert; after other failures, the next one would fail as well
FOR_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
log = logging.getLogger(__name__)


class Webhook(Struct, frozen=True, kw_only=True):
    """Where alerts go. Its address is a secret, as whoever knows it may send to it: only the host is shown."""

    url: str
    secret: str = ""
    service: str = ""  # the address that people reach the service at, without a slash at its end

    @property
    def host(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"

    def __repr__(self) -> str:
        return f"Webhook({self.host})"


def webhook_of(environ: Mapping[str, str]) -> Webhook | None:
    """Return where alerts go; None if the environment does not say it. Raises InputError without any secret."""
    url, secret, service = (environ.get(name, "").strip() for name in (WEBHOOK, SECRET, ADDRESS))
    problems = []
    if url and not (is_url(url) and url.isascii()):
        problems.append(f"{WEBHOOK}: expected an address that begins with https:// or http://")
    elif url and has_credentials(url):
        problems.append(f"{WEBHOOK}: has a user name or a password in it, which are not sent; leave them out")
    if service and not (is_url(service) and service.isascii() and not has_credentials(service)):
        problems.append(f"{ADDRESS}: expected the address of the service, such as https://rag.example.com")
    if problems:
        raise InputError(problems)
    return Webhook(url=url, secret=secret, service=service.rstrip("/")) if url else None


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request to the webhook."""

    id: int
    kind: str
    project: str | None
    text: str  # for Slack, which shows it
    at: int  # milliseconds since 1970
    url: str | None = None
    run: int | None = None
    commit: str | None = None
    branch: str | None = None
    attempt: int | None = None
    metrics: Sequence[AlertedMetric] = ()
    monitor: str | None = None
    day: int | None = None


class Claimed(NamedTuple):
    """An alert that this service tries to deliver."""

    id: int
    project: int  # 0 for none
    kind: str
    payload: str
    created_at: int
    tries: int  # with this one


class Failure(NamedTuple):
    """Why a try failed, and how long the receiver asks to wait."""

    reason: str
    pause: float
    is_of_all: bool


def body_of(claimed: Claimed, webhook: Webhook) -> bytes:
    """Return what is sent of an alert: the same with each try."""
    payload = payload_of(claimed.payload)
    page = _page_of(payload)
    url = f"{webhook.service}{page}" if webhook.service and page else None
    text = ": ".join(filter(None, [payload.title, payload.summary])).translate(FOR_SLACK)
    message = Message(
        id=claimed.id,
        kind=claimed.kind,
        project=payload.project,
        text=f"{text} {url}" if url else text,
        at=claimed.created_at,
        url=url,
        run=payload.run,
        commit=payload.commit,
        branch=payload.branch,
        attempt=payload.attempt,
        metrics=payload.metrics,
        monitor=payload.monitor,
        day=payload.day,
    )
    return msgspec.json.encode(message)


def _page_of(payload: Payload) -> str | None:
    """Return the path of the page that an alert is about."""
    if payload.run is not None:
        return f"/runs/{payload.run}"
    is_of_production = payload.monitor is not None and payload.project is not None
    return f"/p/{quote(payload.project or '', safe='')}/production" if is_of_production else None


def headers_of(claimed: Claimed, body: bytes, secret: str) -> dict[str, str | bytes]:
    """Return the headers of a request, with a signature if there is a secret."""
    headers: dict[str, str | bytes] = {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "X-Rag-Contract-Alert": f"{claimed.id}",
    }
    if secret:
        digest = hmac.new(secret.encode(errors="surrogateescape"), body, hashlib.sha256).hexdigest()
        headers["X-Rag-Contract-Signature"] = f"sha256={digest}"
    return headers


class AlertDelivery(BackgroundJob):
    """The thread that delivers alerts; without a webhook, they are only stored and shown."""

    def __init__(
        self, database: Database, webhook: Webhook | None = None, failed: Callable[[], None] = lambda: None
    ) -> None:
        """``failed`` counts tries that failed, and errors."""
        super().__init__("alerts", failed, again=PAUSE)
        self.webhook, self._database = webhook, database
        self._last = 0  # the project of the last alert: the next one is of another, if any waits
        secrets = (webhook.url, urlsplit(webhook.url).path, webhook.secret) if webhook else ()
        self._redaction = Redaction(*secrets)

    def start(self) -> None:
        """Start the thread, if there is a webhook."""
        if self.webhook is not None:
            super().start()

    def _do(self) -> float:
        return LOOK if self.webhook is None else self.deliver_next(self.webhook)

    def deliver_next(self, webhook: Webhook) -> float:
        """Try to deliver one alert that is due; return how many seconds to wait before the next one."""
        now = now_ms()
        for project, number in self._due(now):
            claimed = self._database.write(lambda connection, number=number: claim(connection, number, now))  # type: ignore[misc]
            if claimed is not None:
                self._last = project
                return self._deliver(webhook, claimed)
        return LOOK

    def _due(self, now: int) -> list[tuple[int, int]]:
        """Return the projects that have an alert that is due, in turns, each with its oldest one."""
        oldest = select(alerts.c.project_id, func.min(alerts.c.id)).where(is_waiting(now), alerts.c.next_try_at <= now)
        with self._database.read() as connection:
            of_projects = connection.execute(oldest.group_by(alerts.c.project_id)).all()
        rows = [(project or 0, number) for project, number in of_projects]
        return sorted(rows, key=lambda row: (row[0] <= self._last, row))

    def _deliver(self, webhook: Webhook, claimed: Claimed) -> float:
        failure = self._failure(webhook, claimed)
        if failure is None:
            delivered = update(alerts).where(alerts.c.id == claimed.id, alerts.c.delivered_at.is_(None))
            at = now_ms()
            self._database.write(lambda connection: connection.execute(delivered.values(delivered_at=at)))
            return 0.0
        self._failed()
        log.warning("alert %s was not delivered, which is tried again: %s", claimed.id, failure.reason)
        self._database.write(lambda connection: note_failure(connection, claimed, failure, now_ms()))
        return max(PAUSE, min(failure.pause, HOLD)) if failure.is_of_all else 0.0

    def _failure(self, webhook: Webhook, claimed: Claimed) -> Failure | None:
        """Send an alert; return None if it was taken."""
        body = body_of(claimed, webhook)
        call = HttpCall(method="POST", url=webhook.url, headers=headers_of(claimed, body, webhook.secret), content=body)
        try:
            with closing(open_session(webhook.url)) as session:
                answered = send(
                    session,
                    call,
                    seconds=bounds.ALERT_SECONDS,
                    connect_seconds=bounds.ALERT_SECONDS,
                    read_at_most=bounds.ALERT_ANSWER,
                )
        except Unanswered as error:
            return Failure(f"{error}", 0.0, is_of_all=True)
        except OSError as error:  # such as a file of certificates that is missing; its message may have the address
            return Failure(f"it cannot be called from this machine ({type(error).__name__})", 0.0, is_of_all=True)
        if answered.is_success:
            return None
        pause = asked_pause(answered.headers, Timing().now()) or 0.0
        return Failure(self._reason(answered), pause, is_of_all=answered.status not in OWN_FAULT)

    def _reason(self, answered: HttpAnswer) -> str:
        """Return what the receiver says, if it says it in plain text as Slack does, without the secrets."""
        if answered.status in REDIRECTS:
            return f"it answered {answered.status}; redirects are not followed"
        is_text = answered.headers.get("content-type", "").lower().startswith("text/plain")
        text = answered.content.decode(errors="replace") if is_text else answered.reason
        text = clipped_line(self._redaction.text(text), bounds.HTML_NAME)
        return f"it answered {answered.status}{f': {text}' if text else ''}"


def claim(connection: Connection, number: int, now: int) -> Claimed | None:
    """Put off the next try of an alert that is due, and return it; None if another service has just done so."""
    columns = alerts.c.id, alerts.c.project_id, alerts.c.kind, alerts.c.payload, alerts.c.created_at, alerts.c.tries
    is_due = alerts.c.id == number, is_waiting(now), alerts.c.next_try_at <= now
    row = connection.execute(select(*columns).where(*is_due).with_for_update(skip_locked=True)).one_or_none()
    if row is None:
        return None
    tries = row.tries + 1
    later = {"tries": tries, "next_try_at": now + LEASE * bounds.ALERT_SECONDS * 1_000}
    connection.execute(update(alerts).where(alerts.c.id == number).values(later))
    return Claimed(row.id, row.project_id or 0, row.kind, row.payload, row.created_at, tries)


def note_failure(connection: Connection, claimed: Claimed, failure: Failure, now: int) -> None:
    """Store why a try failed, and when the next one is: later with each, and not before the receiver asks for it."""
    payload = replace(payload_of(claimed.payload), problem=failure.reason, failed_at=now)
    pause = backoff(claimed.tries, first=2 * PAUSE, longest=bounds.ALERT_PAUSE)
    seconds = min(max(pause, failure.pause), bounds.ALERT_PAUSE)
    values = {"payload": encoded(payload), "next_try_at": now + round(seconds * 1_000)}
    mine = alerts.c.id == claimed.id, alerts.c.tries == claimed.tries
    connection.execute(update(alerts).where(*mine).values(values))
