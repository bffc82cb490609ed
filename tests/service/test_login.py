"""Logging in and out: with a link, with a key, and what ends a session."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from httpx import Response
from litestar.testing import TestClient
from sqlalchemy import select

from ragcontract.core import bounds
from ragcontract.service.accounts import add_machine_key, revoke_key, update_user
from ragcontract.service.database import Database, now_ms
from ragcontract.service.logging_in import create_link, first_admin, log_in_with_link
from ragcontract.service.tables import audit, sessions, tokens
from ragcontract.service.web.app import Settings
from tests.service.askers import (
    FROM_OWN_PAGE,
    HOST,
    ORIGIN,
    ask,
    author,
    by_key,
    by_session,
    client_of,
    new_session,
    new_user,
)

HOUR, DAY = 3_600_000, 86_400_000


def log_in(client: TestClient[Any], **fields: str) -> Response:
    return ask(client, "POST", "/login", FROM_OWN_PAGE, data=fields)


def cookie_of(answer: Response) -> str:
    return answer.headers["set-cookie"].partition("=")[2].partition(";")[0]


def is_logged_in(client: TestClient[Any], cookie: str) -> bool:
    return ask(client, "GET", "/", by_session(cookie)).status_code == 200


def test_a_link_logs_in_once_and_shows_a_key(database: Database) -> None:
    link = database.write(lambda connection: first_admin(connection, now_ms()))
    assert link
    with client_of(database) as client:
        for _ in range(2):  # a program that previews links does not use it up
            page = ask(client, "GET", f"/login?link={link}")
            assert (page.status_code, link in page.text) == (200, True)
        first, second = log_in(client, link=link), log_in(client, link=link)
        assert (first.status_code, second.status_code) == (200, 401)
        assert "used already" in second.text
        assert "set-cookie" not in second.headers
        key = first.text.partition('<code id="key">')[2].partition("<")[0]
        assert ask(client, "GET", "/api/v1/users", by_key(key)).status_code == 200
        assert is_logged_in(client, cookie_of(first))
    assert key not in page.text


def test_of_two_who_use_a_link_at_once_one_logs_in(database: Database) -> None:
    link = database.write(lambda connection: first_admin(connection, now_ms())) or ""
    with ThreadPoolExecutor(8) as pool:
        logins = pool.map(
            lambda _: database.write(lambda connection: log_in_with_link(connection, link, now_ms(), None)), range(8)
        )
    assert sum(login is not None for login in logins) == 1


@pytest.mark.parametrize("why", ["too old", "replaced", "of a disabled user"])
def test_a_link_that_is_no_longer_valid_logs_nobody_in(why: str, database: Database) -> None:
    age = bounds.LINK_SECONDS * 1000 if why == "too old" else 0
    database.write(lambda connection: new_user(connection, "root"))
    database.write(lambda connection: new_user(connection, "ana"))
    link = database.write(lambda connection: create_link(connection, "ana", author(now_ms() - age)))
    if why == "replaced":
        database.write(lambda connection: create_link(connection, "ana", author()))
    if why == "of a disabled user":
        database.write(lambda connection: update_user(connection, "ana", author(), disabled=True))
    with client_of(database) as client:
        assert log_in(client, link=link).status_code == 401


def test_the_first_start_makes_an_administrator_until_somebody_has_logged_in(database: Database) -> None:
    first, second = (database.write(lambda connection: first_admin(connection, now_ms())) for _ in range(2))
    with client_of(database) as client:
        assert log_in(client, link=first or "").status_code == 401  # the second replaces it
        assert log_in(client, link=second or "").status_code == 200
    assert database.write(lambda connection: first_admin(connection, now_ms())) is None


def test_a_key_logs_in_and_leads_to_where_one_wanted_to_go(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana", "viewer"))
    with client_of(database) as client:
        asked = ask(client, "GET", "/?x=1&y=%20")
        assert asked.headers["location"] == "/login?next=%2F%3Fx%3D1%26y%3D%2520"
        page = ask(client, "GET", asked.headers["location"])
        assert 'value="/?x=1&amp;y=%20"' in page.text
        answer = log_in(client, key=f" {key} ", next="/?x=1&y=%20")
        assert (answer.status_code, answer.headers["location"]) == (303, "/?x=1&y=%20")
        home = ask(client, "GET", "/", by_session(cookie_of(answer)))
        assert "Log out <bdi>ana</bdi>" in home.text


@pytest.mark.parametrize(
    "target",
    [
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "/a\r\nSet-Cookie: x=1",
        "",
        "/" + "a" * bounds.LOCAL_PATH,
        '/"><script>',
        "/ü",
    ],
)
def test_a_login_leads_to_no_other_site(target: str, database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    with client_of(database) as client:
        answer = log_in(client, key=key, next=target)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        page = client.get("/login", params={"next": target})
        assert '<input type="hidden" name="next" value="/">' in page.text


@pytest.mark.parametrize("kind", ["wrong", "of a machine", "revoked", "empty"])
def test_a_key_that_is_not_of_a_person_does_not_log_in(kind: str, database: Database) -> None:
    of_machine = database.write(lambda connection: add_machine_key(connection, "ci", ["read"], author()).text)
    revoked = database.write(lambda connection: new_user(connection, "ana"))
    database.write(lambda connection: revoke_key(connection, revoked.split("_")[1], author()))
    key = {"of a machine": of_machine, "revoked": revoked, "empty": "", "wrong": "rc_" + "<b>" * 9}[kind]
    with client_of(database) as client:
        answer = log_in(client, key=key)
    assert answer.status_code == 401
    assert "not a valid key" in answer.text
    assert "set-cookie" not in answer.headers
    assert "<b>" not in answer.text


def test_a_login_is_a_new_session_and_ends_the_one_before(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    before = database.write(lambda connection: new_session(connection, key))
    with client_of(database) as client:
        after = cookie_of(ask(client, "POST", "/login", by_session(before), data={"key": key}))
        assert after != before
        assert (is_logged_in(client, before), is_logged_in(client, after)) == (False, True)


def test_a_chosen_cookie_is_never_a_session(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    chosen = "c" * 43
    with client_of(database) as client:
        answer = ask(client, "POST", "/login", by_session(chosen), data={"key": key})
        assert cookie_of(answer) != chosen
        assert not is_logged_in(client, chosen)


def test_a_log_out_ends_the_session_for_good(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie, other = (database.write(lambda connection: new_session(connection, key)) for _ in range(2))
    with client_of(database) as client:
        answer = ask(client, "POST", "/logout", by_session(cookie))
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert (is_logged_in(client, cookie), is_logged_in(client, other)) == (False, True)


@pytest.mark.parametrize(
    ("begun", "seen", "lives"),
    [
        (0, 0, True),
        (13 * HOUR, 11 * HOUR, True),
        (13 * HOUR, 12 * HOUR, False),
        (7 * DAY - HOUR, 0, True),
        (7 * DAY, 0, False),
    ],
)
def test_a_session_ends_when_it_is_idle_or_old(begun: int, seen: int, lives: bool, database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    now = now_ms()
    cookie = database.write(lambda connection: new_session(connection, key, now - begun))
    database.write(lambda connection: connection.execute(sessions.update().values(seen_at=now - seen)))
    with client_of(database) as client:
        assert is_logged_in(client, cookie) == lives


def test_the_use_of_keys_and_sessions_is_noted_once_a_minute(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    long_ago = now_ms() - HOUR
    cookie = database.write(lambda connection: new_session(connection, key, long_ago))

    def noted(client: TestClient[Any]) -> tuple[int, int]:
        ask(client, "GET", "/", by_key(key))
        ask(client, "GET", "/", by_session(cookie))
        with database.read() as connection:
            used = connection.execute(select(tokens.c.last_used_at)).scalar_one()
            return used, connection.execute(select(sessions.c.seen_at)).scalar_one()

    with client_of(database) as client:
        first = noted(client)
        assert min(first) > long_ago
        assert noted(client) == first
        monkeypatch.setattr(bounds, "USE_NOTED", 0)
        assert min(noted(client)) >= max(first)


def test_the_cookie_is_only_for_this_host_and_for_no_script(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    with client_of(database) as client:
        secure = log_in(client, key=key).headers["set-cookie"]
    assert secure.startswith("__Host-session=")
    assert {"HttpOnly", "Secure", "SameSite=lax", "Path=/"} <= set(secure.split("; "))
    assert "Domain" not in secure
    with client_of(database, Settings()) as client:
        local = client.post("http://127.0.0.1/login", data={"key": key}, headers=FROM_OWN_PAGE).headers["set-cookie"]
    assert local.startswith("session=")
    assert {"HttpOnly", "SameSite=lax"} <= set(local.split("; "))
    assert "Secure" not in local


def test_two_cookies_of_that_name_are_none(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie, other = (database.write(lambda connection: new_session(connection, key)) for _ in range(2))
    twice = {"Cookie": f"__Host-session={cookie}; a=b; __Host-session={other}"}
    local = {"Cookie": f"session={cookie}"}  # over TLS, any host of the domain may have set it
    with client_of(database) as client:
        assert [ask(client, "GET", "/", headers).status_code for headers in (twice, local)] == [303, 303]


def test_the_audit_log_has_logins_and_no_secret(database: Database) -> None:
    link = database.write(lambda connection: first_admin(connection, now_ms())) or ""
    with client_of(database) as client:
        answer = log_in(client, link=link)
        log_in(client, key="rc_wrong")
        ask(client, "POST", "/logout", by_session(cookie_of(answer)))
    with database.read() as connection:
        rows = connection.execute(select(audit).order_by(audit.c.id)).all()
    assert [(row.actor, row.action) for row in rows] == [
        ("command line", "user.add"),
        ("command line", "link.add"),
        ("user:admin", "login"),
        ("user:admin", "key.add"),
        ("nobody", "login.failed"),
        ("user:admin", "logout"),
    ]
    assert rows[2].ip == "testclient"
    written = json.dumps([[*map(str, row)] for row in rows])
    key = answer.text.partition('<code id="key">')[2].partition("<")[0]
    assert not any(secret.rpartition("_")[2] in written for secret in (link, key))
    assert cookie_of(answer) not in written
    assert "wrong" not in written


def test_what_the_database_has_opens_nothing(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with database.read() as connection:
        of_key = connection.execute(select(tokens.c.prefix, tokens.c.sha256)).one()
        of_session = connection.execute(select(sessions.c.sha256)).scalar_one()
    with client_of(database) as client:
        assert ask(client, "GET", "/", by_key(f"rc_{of_key.prefix}_{of_key.sha256[:43]}")).status_code == 401
        assert ask(client, "GET", "/", by_key(of_key.sha256)).status_code == 401
        assert not is_logged_in(client, of_session)
    assert key.rpartition("_")[2] not in of_key.sha256
    assert cookie not in of_session


def test_a_page_says_its_host_nowhere(database: Database) -> None:
    with client_of(database) as client:
        answer = ask(client, "GET", "/", {"X-Forwarded-Host": "evil.example", "Host": f"{HOST}:8443"})
        assert answer.headers["location"] == "/login"
        assert ORIGIN not in ask(client, "GET", "/login").text
