"""Limits of the team service on accounts, requests and bodies."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from litestar.testing import TestClient
from sqlalchemy import select

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.service.accounts import add_machine_key, add_user, note_key_use
from ragcontract.service.audit import record
from ragcontract.service.database import DAY, Database, database_url, now_ms
from ragcontract.service.logging_in import create_link
from ragcontract.service.retention import Retention
from ragcontract.service.tables import audit, metadata, sessions, tokens
from ragcontract.service.trends import Trends
from ragcontract.service.web import request_limits as limits
from ragcontract.service.web.problem_details import ProblemError
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.service.askers import FROM_OWN_PAGE, ask, author, by_key, by_session, client_of, new_session, new_user

SECOND = 1000
EARLY = 5 * SECOND  # more than a trial takes


@contextmanager
def database_in(lab: Lab) -> Iterator[Database]:
    database = Database(database_url(str(lab.folder / "service.db")))
    database.write(metadata.drop_all)
    database.write(metadata.create_all)
    try:
        yield database
    finally:
        database.close()


@contextmanager
def serving(lab: Lab) -> Iterator[tuple[Database, TestClient[Any], str]]:
    """Return a database, a client, and the key of an administrator."""
    with database_in(lab) as database, client_of(database) as client:
        yield database, client, database.write(lambda connection: new_user(connection, "ana"))


def accepts(change: Callable[[], object]) -> bool:
    try:
        change()
    except InputError:
        return False
    return True


def account_name(lab: Lab, size: int) -> bool:
    name = "a" * size
    with database_in(lab) as database:
        return all_of(
            accepts(lambda: database.write(lambda connection: add_user(connection, name, "viewer", author()))),
            accepts(lambda: database.write(lambda connection: add_machine_key(connection, name, ["read"], author()))),
        )


def key_days(lab: Lab, days: int) -> bool:
    with database_in(lab) as database:
        return accepts(
            lambda: database.write(lambda connection: add_machine_key(connection, "a", ["read"], author(), days=days))
        )


def link(lab: Lab, seconds: int) -> bool:
    with serving(lab) as (database, client, _):
        made = author(now_ms() - seconds * SECOND + EARLY)
        secret = database.write(lambda connection: create_link(connection, "ana", made))
        return ask(client, "POST", "/login", FROM_OWN_PAGE, data={"link": secret}).status_code == 200


def idle(lab: Lab, seconds: int) -> bool:
    return session_lives(lab, seen=seconds)


def whole_session(lab: Lab, seconds: int) -> bool:
    return session_lives(lab, begun=seconds)


def session_lives(lab: Lab, begun: int = 0, seen: int = 0) -> bool:
    with serving(lab) as (database, client, key):
        now = now_ms() + EARLY
        cookie = database.write(lambda connection: new_session(connection, key))
        times = {"created_at": now - begun * SECOND, "seen_at": now - seen * SECOND}
        database.write(lambda connection: connection.execute(sessions.update().values(times)))
        return ask(client, "GET", "/", by_session(cookie)).status_code == 200


def not_noted_again(lab: Lab, seconds: int) -> bool:
    with database_in(lab) as database:
        key = database.write(lambda connection: add_machine_key(connection, "a", ["read"], author()))
        database.write(lambda connection: note_key_use(connection, key.id, 1))
        database.write(lambda connection: note_key_use(connection, key.id, seconds * SECOND))
        with database.read() as connection:
            return bool(connection.execute(select(tokens.c.last_used_at)).scalar_one() == 1)


def audit_row(lab: Lab, days: int) -> bool:
    with database_in(lab) as database:
        database.write(lambda connection: record(connection, author(1), "login", "user:ana"))
        Retention(database, bounds.KEEP_RUNS, Trends(database)).delete(days * DAY + 1)
        with database.read() as connection:
            return len(connection.execute(select(audit)).all()) == 1


def page(lab: Lab, size: int) -> bool:
    with serving(lab) as (_, client, key):
        paths = [f"/api/v1/{name}?limit={size}" for name in ("users", "tokens", "audit")]
        return all_of(*(ask(client, "GET", path, by_key(key)).status_code == 200 for path in paths))


def at_once(lab: Lab, number: int, headers: Callable[[Database, str], dict[str, str]]) -> bool:
    """Send requests at once, while no time passes."""
    lab.patch.setattr(limits, "seconds", lambda: 0)
    lab.make_smaller("BURST_SECONDS", 1)
    with serving(lab) as (database, client, key):
        sent = headers(database, key)
        return all(ask(client, "GET", "/healthz", sent).status_code == 200 for _ in range(number))


def requests(lab: Lab, number: int) -> bool:
    return all_of(at_once(lab, number, lambda _, key: by_key(key)), at_once(lab, number, lambda *_: {}))


def ingested(lab: Lab, number: int) -> bool:
    def key_of(database: Database, _: str) -> dict[str, str]:
        return by_key(database.write(lambda connection: add_machine_key(connection, "a", ["ingest"], author())).text)

    return at_once(lab, number, key_of)


def burst(lab: Lab, seconds: int) -> bool:
    lab.patch.setattr(limits, "seconds", lambda: 0)
    lab.make_smaller("REQUESTS_A_SECOND", 1)
    with serving(lab) as (_, client, key):
        return all(ask(client, "GET", "/healthz", by_key(key)).status_code == 200 for _ in range(seconds))


def failed_logins(lab: Lab, number: int) -> bool:
    lab.patch.setattr(limits, "seconds", lambda: 0)
    with serving(lab) as (_, client, _):
        return all(ask(client, "GET", "/", by_key("rc_x")).status_code == 401 for _ in range(number))


def buckets(_: Lab, number: int) -> bool:
    counted = limits.Buckets()
    for index in range(number):
        counted.take(f"{index}", 1, 1)
    return counted.get("0") is not None


def body(lab: Lab, size: int) -> bool:
    with serving(lab) as (_, client, key):
        headers = {**by_key(key), "Content-Type": "application/json"}
        return ask(client, "POST", "/api/v1/users", headers, content=b" " * size).status_code != 413


def form(lab: Lab, size: int) -> bool:
    with serving(lab) as (_, client, _):
        headers = {**FROM_OWN_PAGE, "Content-Type": "application/x-www-form-urlencoded"}
        return ask(client, "POST", "/login", headers, content=b"key=".ljust(size, b"x")).status_code != 413


def bodies(lab: Lab, size: int) -> bool:
    with serving(lab) as (_, client, key):
        headers = {**by_key(key), "Content-Type": "application/json"}
        return ask(client, "POST", "/api/v1/users", headers, content=b" " * size).status_code != 503


def bodies_of_strangers(lab: Lab, size: int) -> bool:
    with serving(lab) as (_, client, _):
        headers = {**FROM_OWN_PAGE, "Content-Type": "application/x-www-form-urlencoded"}
        return ask(client, "POST", "/login", headers, content=b"key=".ljust(size, b"x")).status_code != 503


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose time passes when it is told to."""

    now = 0.0

    def time(self) -> float:
        return self.now


def in_time(_: Lab, seconds: int) -> bool:
    """Receive a body whose last byte comes just before this time is over."""
    loop = _Loop()

    async def receive() -> Any:
        loop.now += seconds - 0.5
        for _ in range(3):
            await asyncio.sleep(0)  # so that the loop looks at its clock
        return {"type": "http.request", "body": b"", "more_body": False}

    scope: Any = {"method": "POST", "path": "/", "headers": []}
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        try:
            runner.run(limits.Bodies().of(scope, receive, is_known=True).receive())
        except ProblemError as error:
            return error.status != 408
    return True


def headers(_: Lab, size: int) -> bool:
    scope: Any = {"raw_path": b"/login", "query_string": b"next=/", "headers": [(b"x", b"")]}
    scope["headers"].append((b"y", b"a" * (size - len("/loginnext=/xy"))))
    try:
        limits.check_size_of_headers(scope)
    except ProblemError as error:
        return error.status != 431
    return True


def local_path(lab: Lab, size: int) -> bool:
    with serving(lab) as (_, client, key):
        path = "/".ljust(size, "a")
        answer = ask(client, "POST", "/login", FROM_OWN_PAGE, data={"key": key, "next": path})
        return bool(answer.headers["location"] == path)


CASES: Cases = {
    "ACCOUNT_NAME": Case(account_name),
    "KEY_DAYS": Case(key_days),
    "LINK_SECONDS": Case(link, past=lambda value: value + EARLY // SECOND),
    "SESSION_IDLE": Case(idle, past=lambda value: value + EARLY // SECOND),
    "SESSION_SECONDS": Case(whole_session, past=lambda value: value + EARLY // SECOND),
    "USE_NOTED": Case(not_noted_again),
    "AUDIT_DAYS": Case(audit_row),
    "PAGE_ITEMS": Case(page),
    "REQUESTS_A_SECOND": Case(requests, small=5),
    "INGESTED_A_SECOND": Case(ingested, small=7),
    "BURST_SECONDS": Case(burst),
    "FAILED_LOGINS": Case(failed_logins),
    "RATE_BUCKETS": Case(buckets, small=10),
    "SERVICE_BODY": Case(body),
    "SERVICE_FORM": Case(form),
    "SERVICE_BODIES": Case(bodies, small=1000),
    "STRANGERS_BODIES": Case(bodies_of_strangers, small=1000),
    "BODY_SECONDS": Case(in_time),
    "SERVICE_HEADERS": Case(headers),
    "LOCAL_PATH": Case(local_path),
}
