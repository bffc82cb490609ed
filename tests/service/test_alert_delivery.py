"""How alerts reach a webhook: signed, at least once, in turns, and without telling anybody its address."""

import hashlib
import hmac
import json
import logging
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from sqlalchemy import URL, select, update

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.alert_delivery import AlertDelivery, Claimed, Webhook, body_of, webhook_of
from ragcontract.service.alerts import Kind, Payload, encoded
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import alerts
from tests.net.service import Reply, Request, Service, refused
from tests.process import rag_contract
from tests.runner import ROOT
from tests.service.alerting import (
    PATH,
    SECRET,
    alerts_of,
    delivering,
    due_now,
    environ_of,
    record_run,
    waiting_alerts,
)
from tests.service.conftest import HOSTILE, name_of, open_database
from tests.service.listening import until
from tests.service.running import Process, serving

GUIDE = (ROOT / "docs" / "guides" / "run-the-service.md").read_text()
TAKES = Reply(content=b"ok")
PLAIN = {"Content-Type": "text/plain"}


def ids(requests: Sequence[Request]) -> list[int]:
    return [request.json["id"] for request in requests]


def are_delivered(database: Database) -> bool:
    return all(each.delivered_at for each in alerts_of(database))


def is_signed(request: Request) -> bool:
    digest = hmac.new(SECRET.encode(), request.body, hashlib.sha256).hexdigest()
    return request.headers["x-rag-contract-signature"] == f"sha256={digest}"


def test_an_alert_is_posted_with_a_signature_and_a_link(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    record_run(database, "fail", summary="3 of 17 queries broken")
    (alert,) = alerts_of(database)
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch, service="https://rag.example"):
        until(lambda: are_delivered(database))
    (request,) = receiver.requests
    assert (request.method, request.path) == ("POST", PATH)
    assert is_signed(request)
    assert request.headers["x-rag-contract-alert"] == f"{alert.id}"
    assert request.headers["content-type"] == "application/json"
    url = f"https://rag.example/runs/{alert.payload.run}"
    assert request.json == {
        "id": alert.id,
        "kind": "run_blocked",
        "project": "docs",
        "text": f"docs: {alert.payload.summary} {url}",
        "at": alert.created_at,
        "url": url,
        "run": alert.payload.run,
        "commit": alert.payload.commit,
        "branch": "main",
    }


def test_the_guide_verifies_a_signature(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall("```python\n(.*?)```", GUIDE, re.DOTALL)
    of_guide: dict[str, Any] = {}
    exec(code, of_guide)
    is_genuine = of_guide["is_genuine"]
    waiting_alerts(database, 1)
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: are_delivered(database))
    (request,) = receiver.requests
    signature = request.headers["x-rag-contract-signature"]
    assert is_genuine(request.body, signature, SECRET)
    assert not is_genuine(request.body + b" ", signature, SECRET)
    assert not is_genuine(request.body, signature, "another secret")


def test_the_guide_shows_an_alert_with_its_fields() -> None:
    (example,) = re.findall("```json\n(.*?)```", GUIDE, re.DOTALL)
    payload = Payload(summary="broken", project="docs", title="Docs search", run=41, commit="3f9c1a2", branch="main")
    claimed = Claimed(12, 1, "run_blocked", encoded(payload), 1, 1)
    body = body_of(claimed, Webhook(url="https://hooks.example", service="https://rag.example.com"))
    assert {*json.loads(body)} == {*json.loads(example)}
    assert all(f"`{kind}`" in GUIDE for kind in get_args(Kind))


def test_without_a_secret_and_an_address_there_is_no_signature_and_no_link(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting_alerts(database, 1)
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch, secret=""):
        until(lambda: are_delivered(database))
    (request,) = receiver.requests
    assert "x-rag-contract-signature" not in request.headers
    assert "url" not in request.json
    assert request.json["text"] == "news"


def test_it_is_tried_again_with_the_same_content_until_it_is_taken(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "ALERT_SECONDS", 0.3)
    waiting_alerts(database, 1)
    kinds = ("drop", "reset", "half", "hang", "drip headers", "drip body")
    replies = [Reply(status=500), Reply(status=429), *(Reply(kind=kind) for kind in kinds), TAKES]  # type: ignore[arg-type]
    with Service(*replies) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: are_delivered(database))
    assert len(receiver.requests) >= len(replies)  # on a slow machine, further ones may take too long
    assert len({request.body for request in receiver.requests}) == 1
    (alert,) = alerts_of(database)
    assert alert.tries >= len(replies)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(status=500), "it answered 500: Internal Server Error"),
        (
            Reply(status=404, headers=PLAIN, content=b"no_service"),
            "it answered 404: no_service",
        ),
        (Reply(status=403, content=b"<html>"), "it answered 403: Forbidden"),
        (None, "the connection was refused, or there is no such host"),
    ],
)
def test_the_reason_of_the_last_failure_is_stored(
    reply: Reply | None, reason: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting_alerts(database, 1)
    with Service(reply or TAKES) as receiver:
        url = receiver.url if reply else refused()
        with delivering(database, url, monkeypatch):
            until(lambda: alerts_of(database)[0].payload.problem)
    (alert,) = alerts_of(database)
    assert (alert.payload.problem, alert.delivered_at) == (reason, None)


def test_a_redirect_is_not_followed(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 1)
    with Service(TAKES) as other:
        for status in (301, 302, 303, 307, 308):
            away = Reply(status=status, headers={"Location": f"{other.url}{PATH}"})
            with Service(away) as receiver, delivering(database, receiver.url, monkeypatch):
                until(lambda status=status: f"{status}" in (alerts_of(database)[0].payload.problem or ""))  # type: ignore[misc]
        assert other.requests == []
    assert alerts_of(database)[0].payload.problem == "it answered 308; redirects are not followed"


def test_an_answer_that_does_not_end_is_not_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 1)
    with Service(Reply(content=b"x" * (bounds.HTTP_ANSWER + 1))) as receiver:
        with delivering(database, receiver.url, monkeypatch):
            until(lambda: are_delivered(database))
        assert len(receiver.requests) == 1


def test_pauses_grow_and_are_at_least_as_long_as_the_receiver_asks(database: Database) -> None:
    pauses = []
    waiting_alerts(database, 1)
    with Service(Reply(status=500)) as receiver:
        delivery = AlertDelivery(database, Webhook(url=receiver.url))
        for _ in range(16):
            due_now(database)
            before = now_ms()
            assert delivery.deliver_next(delivery.webhook) >= 10  # type: ignore[arg-type]
            pauses.append((alerts_of(database)[0].next_try_at - before) / 1_000)
        receiver.replies[-1] = Reply(status=429, headers={"Retry-After": "90000"})
        due_now(database)
        asked = delivery.deliver_next(delivery.webhook)  # type: ignore[arg-type]
    assert asked == 600  # of other alerts, such as a test
    assert alerts_of(database)[0].next_try_at - before >= bounds.ALERT_PAUSE * 1_000
    for number, pause in enumerate(pauses):
        most = min(20 * 2**number, bounds.ALERT_PAUSE)
        assert most / 2 <= pause <= most + 60  # seconds that the test itself may take


def test_an_alert_is_given_up_after_days(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 2)
    first, _ = alerts_of(database)
    old = update(alerts).where(alerts.c.id == first.id).values(created_at=now_ms() - bounds.ALERT_DAYS * DAY - 1)
    database.write(lambda connection: connection.execute(old))
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: alerts_of(database)[1].delivered_at)
    assert first.id not in ids(receiver.requests)


def test_nothing_is_sent_without_a_webhook(database: Database) -> None:
    waiting_alerts(database, 1)
    delivery = AlertDelivery(database, webhook_of({"RAG_CONTRACT_ALERT_SECRET": SECRET}))
    delivery.start()
    assert not delivery._thread.is_alive()
    delivery.close()
    (alert,) = alerts_of(database)
    assert (alert.tries, alert.delivered_at) == (0, None)


def test_a_restart_loses_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 3)
    with Service(Reply(status=503)) as down, delivering(database, down.url, monkeypatch):
        until(lambda: down.requests)
    waiting = [each.id for each in alerts_of(database) if each.delivered_at is None]
    assert len(waiting) == 3
    due_now(database)
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: are_delivered(database))
    assert sorted(ids(receiver.requests)) == waiting


def test_two_services_on_one_database_deliver_each_alert_once(
    migrated: URL, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for project in ("docs", "search", "agent"):
        waiting_alerts(database, 20, project=project)
    with (
        Service(TAKES) as receiver,
        open_database(migrated) as other,
        delivering(database, receiver.url, monkeypatch),
        delivering(other, receiver.url, monkeypatch),
    ):
        until(lambda: are_delivered(database))
    assert sorted(ids(receiver.requests)) == [each.id for each in alerts_of(database)]
    assert {each.tries for each in alerts_of(database)} == {1}


class Killer(Service):
    """Kills who sends it the first request, before it answers."""

    victim: Process | None = None

    def next_reply(self, request: Request) -> Reply:
        reply = super().next_reply(request)
        if len(self.requests) == 1:
            until(lambda: self.victim)
            assert self.victim
            os.kill(self.victim.process.pid, signal.SIGKILL)
            self.victim.process.wait()
        return reply


def test_who_is_killed_after_sending_sends_it_again_with_the_same_id(migrated: URL, tmp_path: Path) -> None:
    with open_database(migrated) as database:
        waiting_alerts(database, 1)
    options = "--db", name_of(migrated)
    with Killer(TAKES) as receiver:
        with serving(*options, cwd=tmp_path, environ=environ_of(receiver.url)) as first:
            receiver.victim = first
            until(lambda: first.process.poll() is not None)
        with open_database(migrated) as database:
            (alert,) = alerts_of(database)
            assert (alert.tries, alert.delivered_at) == (1, None)
            due_now(database)
        with serving(*options, cwd=tmp_path, environ=environ_of(receiver.url)) as second:
            until(lambda: len(receiver.requests) == 2)
            code, _, log = second.ended()
    assert (code, PATH in log, SECRET in log) == (0, False, False)
    assert receiver.requests[0].body == receiver.requests[1].body
    assert all(map(is_signed, receiver.requests))
    with open_database(migrated) as database:
        assert are_delivered(database)


def test_slack_is_sent_names_as_text(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "<!channel> & <http://evil.example|docs>"
    record_run(database, "fail", contract=hostile, summary=f"{hostile}\n{HOSTILE}")
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: are_delivered(database))
    text = receiver.requests[0].json["text"]
    assert "&lt;!channel&gt; &amp; &lt;http://evil.example|docs&gt;: the contract is broken" in text
    assert not set(text) & set("<>\n\u202e")


def test_a_flood_of_one_project_does_not_hold_up_another(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 200)
    waiting_alerts(database, 1, project="other", summary="the news of others")
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: len(receiver.requests) > 2)
    assert "the news of others" in [request.json["text"] for request in receiver.requests[:2]]


def test_an_alert_that_is_refused_does_not_hold_up_others(database: Database) -> None:
    waiting_alerts(database, 3)
    delivery = AlertDelivery(database, Webhook(url="http://127.0.0.1"))
    with Service(Reply(status=400), TAKES) as receiver:
        webhook = Webhook(url=receiver.url)
        assert [delivery.deliver_next(webhook) for _ in range(3)] == [0, 0, 0]
    assert [each.delivered_at is None for each in alerts_of(database)] == [True, False, False]


def test_the_address_and_the_secret_are_in_no_log_and_no_table(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)  # as `serve` logs
    waiting_alerts(database, 1)
    echo = Reply(status=403, headers=PLAIN, content=f"no {PATH} {SECRET}".encode())
    webhook = ""
    for reply in (echo, Reply(kind="reset"), Reply(status=302, headers={"Location": PATH})):
        with Service(reply) as receiver, delivering(database, receiver.url, monkeypatch) as delivery:
            due_now(database)
            until(lambda receiver=receiver: receiver.requests)  # type: ignore[misc]
            webhook += repr(delivery.webhook)
    with database.read() as connection:
        stored = "".join(map(str, connection.execute(select(alerts)).all()))
    written = caplog.text + stored + webhook
    assert "was not delivered" in caplog.text
    assert not [secret for secret in (PATH, PATH.rpartition("/")[2], SECRET) if secret in written]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("ALERT_WEBHOOK", f"ftp://hooks.example{PATH}", "expected an address that begins with https:// or http://"),
        ("ALERT_WEBHOOK", PATH, "expected an address that begins with https:// or http://"),
        ("ALERT_WEBHOOK", f"https://{PATH}", "expected an address that begins with https:// or http://"),
        ("ALERT_WEBHOOK", f"https://hooks.example/ {PATH}", "expected an address that begins with https:// or http://"),
        ("ALERT_WEBHOOK", f"https://ana:pass@hooks.example{PATH}", "has a user name or a password in it"),
        ("URL", "rag.example.com", "expected the address of the service, such as https://rag.example.com"),
        ("URL", "javascript:alert(1)", "expected the address of the service, such as https://rag.example.com"),
    ],
)
def test_a_wrong_address_is_said_at_the_start_without_its_secret(
    name: str, value: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {f"RAG_CONTRACT_{name}": value}
    with pytest.raises(InputError) as raised:
        webhook_of(environ)
    assert raised.value.problems[0].startswith(f"RAG_CONTRACT_{name}: {problem}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(f"RAG_CONTRACT_{name}", value)
    ended = rag_contract("serve", "--db", "service.db", "--port", "0")
    assert ended.code == 2
    assert problem in ended.err
    assert not [secret for secret in (PATH, "pass@") if secret in ended.err + ended.out]
    assert not Path("service.db").exists()


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_is_none(value: str) -> None:
    assert webhook_of({"RAG_CONTRACT_ALERT_WEBHOOK": value, "RAG_CONTRACT_URL": value}) is None


def test_only_the_host_of_a_webhook_is_shown() -> None:
    hosts = {
        url: Webhook(url=url).host for url in (f"https://hooks.slack.com{PATH}", f"http://127.0.0.1:9000{PATH}?a=b")
    }
    assert [*hosts.values()] == ["hooks.slack.com", "127.0.0.1:9000"]


def test_an_error_ends_nothing(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting_alerts(database, 1)
    errors: list[None] = []
    write = database.write

    def fails_twice(job: Any) -> Any:
        if len(errors) < 2:
            errors.append(None)
            raise ZeroDivisionError
        return write(job)

    monkeypatch.setattr(database, "write", fails_twice)
    with Service(TAKES) as receiver, delivering(database, receiver.url, monkeypatch):
        until(lambda: are_delivered(database))
    assert len(errors) == 2
    assert len(receiver.requests) == 1
