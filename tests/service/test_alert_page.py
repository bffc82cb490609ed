"""The page of alerts: where they go, which there were, and a button that sends a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any

import pytest
from sqlalchemy import select, update

from ragcontract.core import bounds
from ragcontract.service import alert_delivery
from ragcontract.service.alert_delivery import Webhook
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import alerts, audit
from ragcontract.service.web.app import Settings
from tests.net.service import Reply, Service
from tests.service.alerting import PATH, SECRET, alerts_of, record_run, waiting_alerts
from tests.service.askers import HOST, client_of
from tests.service.conftest import HOSTILE
from tests.service.listening import until
from tests.service.served import Served
from tests.service.test_monitoring import samples
from tests.service.test_settings import Desk, words
from tests.service.visiting import Page, assert_harmless

ALERTS = "/settings/alerts"
TEST = f"{ALERTS}/test"
PLAIN = {"Content-Type": "text/plain"}


@contextmanager
def desk_with(database: Database, webhook: Webhook | None) -> Iterator[Desk]:
    with client_of(database, Settings(allowed_hosts=[HOST], webhook=webhook)) as client:
        yield Desk(client, database)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_delivery, "LOOK", 0.02)


def change(database: Database, number: int, **values: Any) -> None:
    database.write(lambda connection: connection.execute(update(alerts).where(alerts.c.id == number).values(values)))


def test_without_a_webhook_alerts_are_only_listed(database: Database) -> None:
    record_run(database, "fail", summary="docs: 3 of 17 queries broken")
    with desk_with(database, None) as desk:
        text = words(desk.get(ALERTS))
        assert text.startswith("Alerts Roles Users Keys Alerts Audit log Alerts are sent nowhere.")
        assert "docs broken run 1 the contract is broken at" in text
        assert text.count("3 of 17 queries broken not sent") == 1
        assert "Send a test alert" not in text
        assert desk.post(TEST).status_code == 409


def test_a_test_alert_is_delivered_listed_once_and_audited(database: Database) -> None:
    with Service() as receiver:
        webhook = Webhook(url=f"{receiver.url}{PATH}", secret=SECRET, service="https://rag.example")
        with desk_with(database, webhook) as desk:
            assert "There is none yet" in desk.get(ALERTS)
            answer = desk.post(TEST)
            assert (answer.status_code, answer.headers["location"]) == (303, ALERTS)
            until(lambda: receiver.requests)
            until(lambda: "delivered" in desk.get(ALERTS))
            page = desk.get(ALERTS)
    assert [request.json["kind"] for request in receiver.requests] == ["test"]
    text = words(page)
    assert f"Alerts go to {webhook.host}. They are signed." in text
    assert text.count("a test of the team service: alerts arrive here ✓ delivered") == 1
    assert "Send a test alert" in text
    assert not [secret for secret in (PATH, "a-secret-of-the-path", SECRET) if secret in page]
    with database.read() as connection:
        rows = connection.execute(select(audit.c.actor, audit.c.action, audit.c.detail)).all()
    assert ("user:root", "alert.test", webhook.host) in [tuple(row) for row in rows]


def test_what_is_not_set_is_named(database: Database) -> None:
    with desk_with(database, Webhook(url="http://127.0.0.1:9")) as desk:
        text = words(desk.get(ALERTS))
    assert "They are not signed: set RAG_CONTRACT_ALERT_SECRET" in text
    assert "if the receiver checks signatures. They have no links" in text
    assert "They have no links: set RAG_CONTRACT_URL" in text


def test_what_does_not_arrive_says_why_and_when_it_is_tried_again(database: Database) -> None:
    waiting_alerts(database, 2)
    first, second = alerts_of(database)
    change(database, first.id, created_at=now_ms() - bounds.ALERT_DAYS * DAY - 1)
    refusal = Reply(status=404, headers=PLAIN, content=b"no_service")
    with Service(refusal) as receiver, desk_with(database, Webhook(url=receiver.url)) as desk:
        until(lambda: alerts_of(database)[1].payload.problem)
        text = words(desk.get(ALERTS))
        assert "Alerts do not arrive at 127.0.0.1:" in text
        assert ": it answered 404: no_service. Each is tried again for 7 days." in text
        assert "news ! tried 1 time next 20" in text
        assert "news ✕ given up" in text
        change(database, second.id, delivered_at=now_ms() + 1)
        assert "Alerts go to" in words(desk.get(ALERTS))


def test_hostile_texts_stay_texts(database: Database) -> None:
    record_run(database, "fail", contract=HOSTILE, summary=HOSTILE)
    hostile = Reply(status=500, headers=PLAIN, content=HOSTILE.encode())
    with Service(hostile) as receiver, desk_with(database, Webhook(url=receiver.url)) as desk:
        until(lambda: alerts_of(database)[0].payload.problem)
        page = desk.get(ALERTS)
    assert_harmless(Page(page.encode()))
    assert unescape(page).count("<script>alert(1)</script> ' \\u202e") >= 3


def test_the_list_goes_on_with_a_link(database: Database) -> None:
    waiting_alerts(database, 60)
    with desk_with(database, None) as desk:
        page = desk.get(ALERTS)
        assert words(page).count("not sent") == 50
        link = unescape(page.partition('<p class="older"><a href="')[2].partition('"')[0])
        older = words(desk.get(link))
    assert older.count("not sent") == 10
    assert "Older alerts" in older


def test_alerts_are_counted_for_prometheus(served: Served) -> None:
    waiting_alerts(served.database, 3)
    waiting_alerts(served.database, 1, project="other")
    first, second, *_ = alerts_of(served.database)
    change(served.database, first.id, delivered_at=now_ms())
    change(served.database, second.id, created_at=0)
    found = samples(served)
    states = "waiting", "delivered", "given_up"
    assert [found["rag_contract_alerts", state] for state in states] == [2, 1, 1]
    assert found["rag_contract_task_errors_total", "alerts"] == 0
    of_project = samples(served, key=served.new_key("read", project="other"))
    assert [of_project["rag_contract_alerts", state] for state in states] == [1, 0, 0]


def test_failures_are_counted_for_prometheus(database: Database) -> None:
    waiting_alerts(database, 1)
    key = Served(database).new_key("read")
    with Service(Reply(status=500)) as receiver:
        webhook = Webhook(url=receiver.url)
        with client_of(database, Settings(allowed_hosts=[HOST], webhook=webhook)) as client:
            until(lambda: alerts_of(database)[0].payload.problem)
            text = client.get("/metrics", headers={"Authorization": f"Bearer {key}"}).text
    assert 'rag_contract_task_errors_total{task="alerts"} 1.0' in text
