"""Users, keys and the audit log, as an administrator looks after them."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from litestar.testing import TestClient
from sqlalchemy import Connection, select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.accounts import update_user
from ragcontract.service.audit import record
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.retention import Retention
from ragcontract.service.tables import audit, deletions, users
from ragcontract.service.trends import Trends
from tests.service.askers import ask, author, by_key, by_session, client_of, new_project, new_session, new_user


class Admin:
    """An administrator with a key."""

    def __init__(self, client: TestClient[Any], database: Database) -> None:
        self.client = client
        self.key = database.write(lambda connection: new_user(connection, "root"))

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = ask(
            self.client, method, f"/api/v1/{path}", by_key(self.key), **({} if body is None else {"json": body})
        )
        return answer.status_code, answer.json() if answer.content else None


def test_a_user_is_added_and_logs_in_with_a_link(database: Database) -> None:
    with client_of(database) as client:
        admin = Admin(client, database)
        status, user = admin.ask("POST", "users", {"name": "ana@example.com", "role": "editor"})
        assert (status, user["name"], user["role"], user["disabled_at"]) == (201, "ana@example.com", "editor", None)
        status, link = admin.ask("POST", "users/ana@example.com/link")
        assert status == 201
        page = ask(client, "GET", link["path"])
        assert "Log in with this link" in page.text
        assert [each["name"] for each in admin.ask("GET", "users")[1]["items"]] == ["ana@example.com", "root"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "root", "role": "viewer"}, 409),
        ({"name": "Ana", "role": "viewer"}, 422),
        ({"name": "", "role": "viewer"}, 422),
        ({"name": "ana\n", "role": "viewer"}, 422),
        ({"name": "аna", "role": "viewer"}, 422),  # a Cyrillic letter
        ({"name": "a" * (bounds.ACCOUNT_NAME + 1), "role": "viewer"}, 422),
        ({"name": "ana", "role": "owner"}, 422),
        ({"name": "ana"}, 422),
        ({"name": "ana", "role": "viewer", "admin": True}, 422),
        ({"name": ["ana"], "role": "viewer"}, 422),
        ([], 422),
        (None, 415),
    ],
)
def test_a_user_who_cannot_be_added_is_refused(body: Any, status: int, database: Database) -> None:
    with client_of(database) as client:
        assert Admin(client, database).ask("POST", "users", body)[0] == status
    with database.read() as connection:
        assert connection.execute(select(users.c.name)).scalars().all() == ["root"]


def test_a_user_who_is_disabled_is_out_at_once(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with client_of(database) as client:
        admin = Admin(client, database)
        assert admin.ask("PATCH", "users/ana", {"disabled": True})[0] == 200
        assert ask(client, "GET", "/", by_key(key)).status_code == 401
        assert ask(client, "GET", "/", by_session(cookie)).status_code == 303
        assert admin.ask("POST", "users/ana/link")[0] == 409
        assert admin.ask("PATCH", "users/ana", {"disabled": False})[1]["disabled_at"] is None
        assert ask(client, "GET", "/", by_session(cookie)).status_code == 303  # the session does not come back


def test_a_role_counts_at_once(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    with client_of(database) as client:
        admin = Admin(client, database)
        assert ask(client, "GET", "/api/v1/users", by_key(key)).status_code == 200
        assert admin.ask("PATCH", "users/ana", {"role": "viewer"}) == (
            200,
            {**admin.ask("GET", "users")[1]["items"][1], "role": "viewer"},
        )
        assert ask(client, "GET", "/api/v1/users", by_key(key)).status_code == 403


@pytest.mark.parametrize("change", [{"disabled": True}, {"role": "editor"}])
def test_the_last_administrator_stays_one(change: Any, database: Database) -> None:
    database.write(lambda connection: new_user(connection, "ana"))
    with client_of(database) as client:
        admin = Admin(client, database)
        assert admin.ask("PATCH", "users/ana", {"disabled": True})[0] == 200
        status, problem = admin.ask("PATCH", "users/root", change)
        assert (status, problem["detail"]) == (409, "root is the last administrator; make another user one first")


def test_two_administrators_who_disable_each_other_at_once_leave_one(database: Database) -> None:
    names = ["ana", "bob"]
    database.write(lambda connection: [new_user(connection, name) for name in names])

    def disable(name: str) -> bool:
        try:
            return database.write(lambda connection: update_user(connection, name, author(), disabled=True))
        except InputError:
            return False

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(disable, names)) == [False, True]


def test_a_key_of_a_machine_is_shown_once(database: Database) -> None:
    database.write(lambda connection: new_project(connection, "docs"))
    with client_of(database) as client:
        admin = Admin(client, database)
        body = {"name": "CI of docs", "scopes": ["record", "read"], "project": "docs", "expires_in_days": 1}
        status, made = admin.ask("POST", "tokens", body)
        assert status == 201
        listed = admin.ask("GET", "tokens")[1]["items"]
        assert [key["user"] for key in listed] == [None, "root"]
        assert listed[0]["scopes"] == ["read", "record"]
        assert listed[0]["project"] == "docs"
        assert listed[0]["expires_at"] - listed[0]["created_at"] == DAY
        assert listed[1]["last_used_at"] > 0
        assert made["key"].split("_")[1] == made["prefix"] == listed[0]["prefix"]
        assert made["key"].split("_")[2] not in str(listed)
        assert "sha256" not in listed[0]
        assert ask(client, "GET", "/", by_key(made["key"])).status_code == 200
        assert [admin.ask("DELETE", f"tokens/{made['prefix']}")[0] for _ in range(2)] == [204, 204]
        assert ask(client, "GET", "/", by_key(made["key"])).status_code == 401


@pytest.mark.parametrize(
    "change",
    [
        {"scopes": []},
        {"scopes": ["admin"]},
        {"scopes": ["link"]},
        {"scopes": "read"},
        {"name": ""},
        {"name": "a\r\nb"},
        {"name": "x" * (bounds.ACCOUNT_NAME + 1)},
        {"project": "none"},
        {"expires_in_days": 0},
        {"expires_in_days": bounds.KEY_DAYS + 1},
        {"expires_in_days": 10**30},
    ],
)
def test_a_key_that_cannot_be_made_is_refused(change: Any, database: Database) -> None:
    with client_of(database) as client:
        admin = Admin(client, database)
        assert admin.ask("POST", "tokens", {"name": "ci", "scopes": ["read"], **change})[0] == 422
        assert len(admin.ask("GET", "tokens")[1]["items"]) == 1


def test_with_the_key_of_a_user_the_sessions_end_too(database: Database) -> None:
    key = database.write(lambda connection: new_user(connection, "ana"))
    cookie = database.write(lambda connection: new_session(connection, key))
    with client_of(database) as client:
        assert Admin(client, database).ask("DELETE", f"tokens/{key.split('_')[1]}")[0] == 204
        assert ask(client, "GET", "/", by_session(cookie)).status_code == 303


def test_the_audit_log_is_read_page_by_page(database: Database) -> None:
    with client_of(database) as client:
        admin = Admin(client, database)
        for index in range(3):
            admin.ask("POST", "users", {"name": f"user{index}", "role": "viewer"})
        first = admin.ask("GET", "audit?limit=2")[1]
        assert [row["subject"] for row in first["items"]] == ["user:user2", "user:user1"]
        assert (first["items"][0]["actor"], first["items"][0]["ip"]) == ("user:root", "testclient")
        second = admin.ask("GET", f"audit?limit=100&cursor={first['next']}")[1]
        assert (second["items"][0]["subject"], second["next"]) == ("user:user0", None)


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "cursor=x", "cursor=-1", "cursor=" + "9" * 30])
def test_a_list_refuses_other_pages(query: str, database: Database) -> None:
    with client_of(database) as client:
        admin = Admin(client, database)
        for path in ("users", "tokens", "audit"):
            assert admin.ask("GET", f"{path}?{query}")[0] == 422


def test_rows_of_the_audit_log_go_after_400_days(database: Database) -> None:
    now = now_ms()
    ages = (0, bounds.AUDIT_DAYS * DAY, bounds.AUDIT_DAYS * DAY + 1)

    def fill(connection: Connection) -> None:
        for age in ages:
            record(connection, author(now - age), "login", f"{age}")

    database.write(fill)
    Retention(database, bounds.KEEP_RUNS, Trends(database)).delete(now)
    with database.read() as connection:
        assert len(connection.execute(select(audit)).all()) == 2
        assert connection.execute(select(deletions)).all() == []
