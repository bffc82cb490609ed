"""What the service refuses before any route is called: other sites, other hosts, too much, too large, too slow."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import select

from ragcontract.core import bounds
from ragcontract.service.accounts import add_machine_key
from ragcontract.service.database import Database
from ragcontract.service.tables import users
from ragcontract.service.web import request_limits as limits
from ragcontract.service.web.app import Application, Settings
from tests.service.askers import (
    FROM_OWN_PAGE,
    HOST,
    ORIGIN,
    SETTINGS,
    ask,
    author,
    by_key,
    by_session,
    client_of,
    new_session,
    new_user,
)

NEW_USER = {"name": "mallory", "role": "admin"}
HANGS = None  # in place of a part of a body


@pytest.fixture
def kind() -> str:
    """One kind of database: what is refused before a route does not depend on it."""
    return "sqlite"


class Clock:
    """Replaces the clock of the limits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(limits, "seconds", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def _sent(app: Application, scope: Mapping[str, Any], parts: Sequence[bytes | None]) -> list[dict[str, Any]]:
    sent: list[dict[str, Any]] = []
    left = [*parts]

    async def receive() -> dict[str, Any]:
        part = left.pop(0) if left else HANGS
        if part is HANGS:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]
    return sent


def raw(
    app: Application,
    method: str,
    path: str,
    headers: Sequence[tuple[str, str]] = (),
    parts: Sequence[bytes | None] = (b"",),
    *,
    client: str = "192.0.2.1",
) -> tuple[int, dict[str, str]]:
    """Send what no well-behaved client sends; return the status and the headers of the answer."""
    sent_headers = [("host", HOST), *headers] if "host" not in dict(headers) else headers
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent_headers],
        "client": (client, 1234),
        "server": (HOST, 443),
    }
    start = asyncio.run(_sent(app, scope, parts))[0]
    return start["status"], {name.decode().lower(): value.decode() for name, value in start["headers"]}


def names_of(database: Database) -> list[str]:
    with database.read() as connection:
        return [*connection.execute(select(users.c.name)).scalars()]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": ORIGIN}, 403),
        ({"Origin": ORIGIN}, 201),
        ({"Origin": ORIGIN.upper()}, 201),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://{HOST}"}, 403),
        ({"Origin": f"{ORIGIN}.evil.example"}, 403),
        ({"Origin": f"{ORIGIN}:8443"}, 403),
        ({"Origin": f"https://evil.example/{HOST}"}, 403),
        ({"Origin": f"https://{HOST}@evil.example"}, 403),
        ({"Origin": HOST}, 403),
        ({"Referer": f"{ORIGIN}/"}, 403),
        ({}, 403),
    ],
)
def test_what_another_site_makes_a_browser_send_changes_nothing(
    headers: Mapping[str, str], status: int, database: Database
) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    of_browser = {name: value for name, value in by_session(cookie).items() if name not in FROM_OWN_PAGE}
    of_browser.update(headers)
    link = "/api/v1/users/ana/link"
    with client_of(database) as client:
        assert ask(client, "POST", "/api/v1/users", of_browser, json=NEW_USER).status_code == status
        for method, path, body in (("POST", link, {}), ("PATCH", "/api/v1/users/ana", {"json": {"role": "admin"}})):
            assert (ask(client, method, path, of_browser, **body).status_code < 300) == (status < 300)
        # Nor does another site log a browser in, or out.
        assert (ask(client, "POST", "/login", headers, data={"key": key}).status_code == 303) == (status < 300)
        assert (ask(client, "POST", "/logout", of_browser).status_code == 303) == (status < 300)
        assert ask(client, "GET", "/", by_key(key)).status_code == 200
    assert ("mallory" in names_of(database)) == (status < 300)


def test_a_key_needs_no_page_and_no_answer_is_for_another_site(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    elsewhere = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
    with client_of(database) as client:
        both = {**by_key(key), "Cookie": by_session(cookie)["Cookie"], **elsewhere}
        answer = ask(client, "POST", "/api/v1/users", both, json=NEW_USER)
        assert answer.status_code == 201
        preflight = ask(client, "OPTIONS", "/api/v1/users", {**elsewhere, "Access-Control-Request-Method": "POST"})
        assert preflight.status_code == 405
        # A key that is not valid is not replaced by a session that is.
        wrong = {**by_session(cookie), **by_key("rc_x")}
        assert ask(client, "GET", "/api/v1/users", wrong).status_code == 401
    assert not any(name.startswith("access-control") for each in (answer, preflight) for name in each.headers)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        (HOST, 303),
        (f"{HOST}:8443", 303),
        (HOST.upper(), 303),
        ("evil.example", 400),
        (f"{HOST}.evil.example", 400),
        (f"evil.example:{HOST}", 400),
        (f"{HOST}@evil.example", 400),
        (f"{HOST}/evil", 400),
        (f"{HOST}.", 400),
        ("", 400),
        ("127.0.0.1", 400),
        ("[::1]", 400),
        ("a" * 10_000, 400),
        ("\xe9", 400),
    ],
)
def test_only_hosts_that_the_operator_named_are_served(host: str, status: int, database: Database) -> None:
    app = Application(database, SETTINGS)
    assert raw(app, "GET", "/", [("host", host)])[0] == status
    assert raw(app, "GET", "/nothing", [("host", host)])[0] == (404 if status == 303 else 400)
    if status == 400 and host.isascii() and host:
        assert raw(app, "GET", "/%68ealthz", [("host", host)])[0] == 400
    assert raw(app, "GET", "/healthz", [("host", "10.0.0.7:8000")])[0] == 200


def test_the_usual_hosts_are_those_of_this_machine(database: Database) -> None:
    app = Application(database, Settings())
    hosts = ["localhost", "127.0.0.1:8000", "[::1]:8000", HOST]
    assert [raw(app, "GET", "/", [("host", host)])[0] for host in hosts] == [303, 303, 303, 400]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/API/v1/users"),
        ("GET", "//api/v1/users"),
        ("GET", "/api/v1/users/"),
        ("GET", "/api/v1/./users"),
        ("GET", "/static/../api/v1/users"),
        ("GET", "/api/v1/users\x00"),
        ("GET", "/api/v1/users;x=/healthz"),
        ("HEAD", "/api/v1/users"),
        ("OPTIONS", "/api/v1/users"),
        ("TRACE", "/api/v1/users"),
        ("get", "/api/v1/users"),
        ("GET", "/static/../web/app.py"),
        ("GET", "/static/%2e%2e/web/app.py"),
        ("GET", "/static//etc/passwd"),
        ("GET", "/static/..\\web\\app.py"),
        ("GET", "/healthz/../api/v1/users"),
        ("GET", "/static/service.css\x00"),
        ("GET", f"/static/{'a' * 5_000}"),
        ("GET", f"/{'a' * bounds.SERVICE_HEADERS}"),
    ],
)
def test_no_way_of_writing_a_path_or_a_method_leads_around_the_guard(
    method: str, path: str, database: Database
) -> None:
    app = Application(database, SETTINGS)
    status, headers = raw(app, method, path)
    assert status in {400, 401, 404, 405, 431}
    assert headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", ["authorization", "host", "origin", "sec-fetch-site", "content-type"])
def test_a_header_that_decides_something_is_there_once(name: str, database: Database) -> None:
    app = Application(database, SETTINGS)
    assert raw(app, "GET", "/login", [("host", HOST), (name, HOST), (name, HOST)])[0] == 400


def test_a_body_has_one_length(database: Database) -> None:
    two = [("content-length", "5"), ("transfer-encoding", "chunked")]
    status, headers = raw(Application(database, SETTINGS), "POST", "/login", two, [HANGS])
    assert (status, headers["connection"]) == (400, "close")


@pytest.mark.parametrize("path", ["/", "/login", "/nothing", "/api/v1/users", "/healthz", "/static/none.css"])
@pytest.mark.parametrize("host", [HOST, "evil.example"])
def test_each_answer_has_the_headers_that_protect_it(path: str, host: str, database: Database) -> None:
    headers = raw(Application(database, SETTINGS), "GET", path, [("host", host)])[1]
    assert headers["content-security-policy"] == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["strict-transport-security"] == "max-age=31536000"


def test_a_browser_is_told_to_use_tls_only_where_it_does(database: Database) -> None:
    with client_of(database, Settings()) as client:
        answer = client.get("http://127.0.0.1/login")
        assert "strict-transport-security" not in answer.headers
        assert client.get("http://127.0.0.1/static/service.css").headers["cache-control"] == "max-age=3600"


def statuses(client: TestClient[Any], number: int, headers: Mapping[str, str], path: str = "/nothing") -> list[int]:
    return [ask(client, "GET", path, headers).status_code for _ in range(number)]


def test_a_key_has_so_many_requests_a_second(database: Database, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "REQUESTS_A_SECOND", 3)
    monkeypatch.setattr(bounds, "INGESTED_A_SECOND", 5)
    key = database.write(lambda connection: new_user(connection, "ana"))
    ingesting = database.write(lambda connection: add_machine_key(connection, "app", ["ingest"], author()).text)
    cookie = database.write(lambda connection: new_session(connection, key))
    with client_of(database) as client:
        for headers, at_once in ((by_key(key), 6), (by_session(cookie), 6), ({}, 6), (by_key(ingesting), 10)):
            clock.now += 1_000
            answers = statuses(client, at_once + 1, headers)
            assert answers == [404] * at_once + [429], headers
            answer = ask(client, "GET", "/nothing", headers)
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
            clock.now += 1
            assert statuses(client, 6, headers)[:4] == [404, 404, 404, 404 if at_once == 10 else 429]


def test_wrong_keys_are_counted_for_their_address_and_right_ones_go_on(database: Database, clock: Clock) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    wrong = [("authorization", "Bearer rc_wrong")]
    app = Application(database, SETTINGS)
    assert [raw(app, "GET", "/", wrong)[0] for _ in range(7)] == [401] * 5 + [429] * 2
    assert raw(app, "GET", "/", wrong)[1]["retry-after"] == "12"
    right = [("authorization", f"Bearer {key}")]
    assert raw(app, "GET", "/", right)[0] == 200
    assert raw(app, "GET", "/", wrong, client="192.0.2.2")[0] == 401
    clock.now += 12
    assert [raw(app, "GET", "/", wrong)[0] for _ in range(2)] == [401, 429]


@pytest.mark.usefixtures("clock")
def test_a_flood_without_a_key_does_not_slow_down_a_key_of_the_same_address(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "REQUESTS_A_SECOND", 3)
    key = database.write(lambda connection: new_user(connection, "ana"))
    app = Application(database, SETTINGS)
    right = [("authorization", f"Bearer {key}")]
    assert raw(app, "GET", "/", right)[0] == 200
    assert [raw(app, "GET", "/nothing")[0] for _ in range(7)][-1] == 429
    assert raw(app, "GET", "/", [("authorization", "Bearer rc_wrong")])[0] == 429  # without asking the database
    assert raw(app, "GET", "/", right)[0] == 200


@pytest.mark.usefixtures("clock")
def test_logins_that_fail_are_counted_and_right_ones_go_on(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    with client_of(database) as client:
        failed = [ask(client, "POST", "/login", FROM_OWN_PAGE, data={"key": "x"}) for _ in range(6)]
        assert [answer.status_code for answer in failed] == [401] * 5 + [429]
        assert "Wait 12 seconds" in failed[-1].text
        assert ask(client, "POST", "/login", FROM_OWN_PAGE, data={"key": key}).status_code == 303


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(
    ("addresses", "counted_as_one"),
    [
        (["2001:db8::1", "2001:db8::ffff:1"], True),
        (["2001:db8::1", "2001:db8:0:1::1"], False),
        (["192.0.2.1", "::ffff:192.0.2.1"], True),
        (["192.0.2.1", "192.0.2.2"], False),
    ],
)
def test_addresses_of_one_customer_are_counted_together(
    addresses: Sequence[str], counted_as_one: bool, database: Database
) -> None:
    app = Application(database, SETTINGS)
    wrong = [("authorization", "Bearer rc_wrong")]
    for _ in range(5):
        raw(app, "GET", "/", wrong, client=addresses[0])
    assert raw(app, "GET", "/", wrong, client=addresses[1])[0] == (429 if counted_as_one else 401)


def test_a_body_may_be_so_large(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SERVICE_BODY", 300)
    monkeypatch.setattr(bounds, "SERVICE_FORM", 100)
    key = database.write(lambda connection: new_user(connection, "ana"))
    app = Application(database, SETTINGS)
    as_json = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    form = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")]
    for path, headers, most, fits in (("/api/v1/users", as_json, 300, 201), ("/login", form, 100, 401)):
        body = json.dumps(NEW_USER).ljust(most).encode() if fits == 201 else b"key=".ljust(most, b"x")
        length = [*headers, ("content-length", str(most))]
        longer = [*headers, ("content-length", str(most + 1))]
        assert raw(app, "POST", path, length, [body[:50], body[50:]])[0] == fits
        assert raw(app, "POST", path, longer, [HANGS])[0] == 413
        status, answer = raw(app, "POST", path, headers, [body, b" "])
        assert (status, answer["connection"]) == (413, "close")
        for length_sent in ("-1", "1e3", "9" * 5_000, "+5", "0x10", ""):
            assert raw(app, "POST", path, [*headers, ("content-length", length_sent)], [HANGS])[0] in {400, 413}


def test_a_body_must_be_there_in_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "BODY_SECONDS", 0.05)
    key = database.write(lambda connection: new_user(connection, "ana"))
    headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    app = Application(database, SETTINGS)
    for length in ([], [("content-length", "9")]):
        status, answer = raw(app, "POST", "/api/v1/users", [*headers, *length], [b"{", HANGS])
        assert (status, answer["connection"]) == (408, "close")
    assert names_of(database) == ["ana"]


def test_bodies_of_many_requests_at_once_have_a_limit_together(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SERVICE_BODIES", 100)
    key = database.write(lambda connection: new_user(connection, "ana"))
    headers = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    app = Application(database, SETTINGS)
    status, answer = raw(app, "POST", "/api/v1/users", headers, [b" " * 60, b" " * 60])
    assert (status, answer["retry-after"]) == (503, "1")
    bodies = [json.dumps({"name": f"user{index}", "role": "viewer"}).ljust(90).encode() for index in range(3)]
    assert [raw(app, "POST", "/api/v1/users", headers, [body])[0] for body in bodies] == [201] * 3  # one after another


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        ("application/json", b"[" * 101 + b"]" * 101, 400),
        ("application/json", b"[" * 100_000, 400),
        ("application/json", b"{", 400),
        ("application/json", b"\xff", 400),
        ("application/json", b"", 422),
        ("application/json", b"null", 422),
        ("application/json; charset=utf-8", b'{"name": "a", "role": "viewer"}', 201),
        ("text/plain", b'{"name": "a", "role": "viewer"}', 415),
        ("application/x-www-form-urlencoded", b"name=a&role=viewer", 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("application/jsonx", b"{}", 415),
    ],
)
def test_a_body_is_what_the_route_reads(content_type: str, body: bytes, status: int, database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    headers = {**by_key(key), "Content-Type": content_type}
    with client_of(database) as client:
        answer = ask(client, "POST", "/api/v1/users", headers, content=body)
        assert answer.status_code == status
        login = ask(client, "POST", "/login", {**FROM_OWN_PAGE, "Content-Type": content_type}, content=body)
        assert login.status_code in {401, 413, 415, 422}
    if status != 201:
        assert answer.json()["status"] == status


def test_whatever_is_sent_as_a_key_is_refused_quietly(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bounds, "FAILED_LOGINS", 1_000)
    app = Application(database, SETTINGS)
    keys = ["", " ", "x" * 15_000, "rc_", "rc_\x00", "rc_ü", "rc_" + "a" * 8 + "_" + "b" * 43 + "\n", "' OR 1=1 --"]
    for key in keys:
        assert raw(app, "GET", "/api/v1/users", [("authorization", f"Bearer {key}")])[0] == 401
        assert raw(app, "GET", "/api/v1/users", [("cookie", f"__Host-session={key}")])[0] == 401
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_the_counts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RATE_BUCKETS", 10)
    buckets = limits.Buckets()
    for index in range(100):
        buckets.take(str(index), 1, 1)
    assert [index for index in range(100) if buckets.get(str(index))] == [*range(90, 100)]


def test_a_database_that_does_not_answer_is_no_wrong_key(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    app = Application(database, SETTINGS)
    database.write(lambda connection: connection.exec_driver_sql("ALTER TABLE tokens RENAME TO others"))
    status, headers = raw(app, "GET", "/", [("authorization", f"Bearer {key}")])
    assert (status, headers["retry-after"]) == (503, "1")
    database.write(lambda connection: connection.exec_driver_sql("ALTER TABLE others RENAME TO tokens"))
    assert raw(app, "GET", "/", [("authorization", f"Bearer {key}")])[0] == 200
