"""Whoever may ask the service for something: people by key and by session, machines, and those who may not."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from httpx import Response
from litestar.testing import TestClient
from msgspec import Struct
from sqlalchemy import Connection, select

from ragcontract.service.accounts import (
    ROLES,
    SCOPES,
    add_machine_key,
    add_personal_key,
    add_user,
    create_key,
    digest,
    revoke_key,
    update_user,
)
from ragcontract.service.audit import Author
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.logging_in import create_link, log_in_with_key
from ragcontract.service.tables import projects, sessions, users
from ragcontract.service.web.app import Application, Settings
from ragcontract.service.web.authentication import SECURE_COOKIE

HOST = "service.local"
ORIGIN = f"https://{HOST}"
SETTINGS = Settings(allowed_hosts=[HOST])
FROM_OWN_PAGE = {"Sec-Fetch-Site": "same-origin"}


class Asker(Struct, frozen=True, kw_only=True):
    """Somebody who asks. ``may`` is the role or the scope that counts; None without any."""

    headers: Mapping[str, str] = {}
    may: str | None = None
    is_valid_key: bool = True
    project: str | None = None  # the only project that it may see


@contextmanager
def client_of(database: Database, settings: Settings = SETTINGS) -> Iterator[TestClient[Any]]:
    """Return a client of the service, over TLS, whose errors are answers."""
    app = Application(database, settings)
    with TestClient(app, base_url=ORIGIN, raise_server_exceptions=False) as client:
        client.follow_redirects = False
        yield client


def author(at: int | None = None) -> Author:
    return Author(actor="a test", at=now_ms() if at is None else at)


def by_key(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def by_session(cookie: str, **more: str) -> dict[str, str]:
    return {"Cookie": f"{SECURE_COOKIE}={cookie}", **FROM_OWN_PAGE, **more}


def new_user(connection: Connection, name: str, role: str = "admin") -> str:
    """Add a user and return the user's key."""
    return add_personal_key(connection, add_user(connection, name, role, author()), author()).text


def new_session(connection: Connection, key: str, at: int | None = None) -> str:
    """Return the cookie of a new session of the user who has a key."""
    login = log_in_with_key(connection, key, now_ms() if at is None else at, None)
    assert login
    return login.cookie


def new_project(connection: Connection, slug: str) -> int:
    row = {"slug": slug, "name": slug, "secret": secrets.token_hex(), "created_at": now_ms()}
    number: int = connection.execute(projects.insert().values(row).returning(projects.c.id)).scalar_one()
    return number


def askers(connection: Connection) -> dict[str, Asker]:
    """Make everybody, and the projects ``docs`` and ``other``."""
    own, other = new_project(connection, "docs"), new_project(connection, "other")
    everybody = {"nobody": Asker()}
    for role in ROLES:
        key = new_user(connection, role, role)
        everybody[f"{role} by key"] = Asker(headers=by_key(key), may=role)
        everybody[f"{role} by session"] = Asker(headers=by_session(new_session(connection, key)), may=role)
    for scope in SCOPES:
        for name, project in (("all", None), ("docs", own), ("other", other)):
            text = add_machine_key(connection, f"{scope} {name}", [scope], author(), project_id=project).text
            everybody[f"{scope}, {name}"] = Asker(
                headers=by_key(text), may=scope, project=None if project is None else name
            )
    revoked = add_machine_key(connection, "revoked", SCOPES, author())
    revoke_key(connection, revoked.prefix, author())
    expired = add_machine_key(connection, "expired", SCOPES, author(now_ms() - 2 * DAY), days=1)
    gone = new_user(connection, "gone")
    session_of_gone = new_session(connection, gone)
    update_user(connection, "gone", author(), disabled=True)
    # As if the login had been committed just after that.
    number = connection.execute(select(users.c.id).where(users.c.name == "gone")).scalar_one()
    late = {"sha256": digest(session_of_gone), "user_id": number, "created_at": now_ms(), "seen_at": now_ms()}
    connection.execute(sessions.insert().values(late))
    link = create_link(connection, "admin", author())
    unknown = create_key(connection, name="unknown", now=now_ms())
    connection.exec_driver_sql(f"DELETE FROM tokens WHERE id = {unknown.id}")
    for name, text in {
        "a revoked key": revoked.text,
        "an expired key": expired.text,
        "the key of a disabled user": gone,
        "a link as a key": link,
        "an unknown key": unknown.text,
        "no key at all": "x" * 10_000,
    }.items():
        everybody[name] = Asker(headers=by_key(text), is_valid_key=False)
    everybody["the session of a disabled user"] = Asker(headers=by_session(session_of_gone))
    return everybody


def ask(client: TestClient[Any], method: str, path: str, headers: Mapping[str, str] = {}, **body: Any) -> Response:
    """Send a request; the client keeps no cookie of its own."""
    client.cookies.clear()
    answer: Response = client.request(method, path, headers=dict(headers), **body)
    return answer
