"""What keeps one client, or a database that others have locked, from stopping the service for everybody."""

import asyncio
import hashlib
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from sqlalchemy import URL

from ragcontract.core import bounds
from ragcontract.service.database import BusyError, Database
from ragcontract.service.web.app import Application
from tests.service.askers import SETTINGS, by_key, client_of, new_user
from tests.service.conftest import open_database
from tests.service.listening import listening, refuses, until
from tests.service.running import running
from tests.service.served import Served
from tests.service.test_refused_requests import raw

HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
MANY = 40  # more than the threads that Python has for this without being told


@contextmanager
def writer_at_work(database: Database) -> Iterator[None]:
    """Keep the writer busy until the block ends."""
    started, go_on = Event(), Event()

    def job(_connection: object) -> None:
        started.set()
        go_on.wait()

    thread = Thread(target=database.write, args=[job])
    thread.start()
    started.wait()
    try:
        yield
    finally:
        go_on.set()
        thread.join()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_reading_goes_on_while_many_wait_to_write(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SERVICE_DATABASE_WAIT", 60)
    with running(database) as service:
        headers = by_key(service.key)

        def send(number: int) -> None:
            data = b"%d" % number
            path = f"{service.url}/api/v1/blobs/{hashlib.sha256(data).hexdigest()}?kind=golden"
            assert httpx.put(path, content=data, headers=headers, timeout=60).status_code == 201

        senders = [Thread(target=send, args=[number]) for number in range(MANY)]
        with writer_at_work(database):
            for thread in senders:
                thread.start()
            until(lambda: database.waiting == MANY)
            assert httpx.get(f"{service.url}/api/v1/projects", headers=headers).status_code == 200
        for thread in senders:
            thread.join()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_write_that_waits_for_too_long_is_not_done(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[object] = []
    with writer_at_work(database):
        monkeypatch.setattr(bounds, "SERVICE_DATABASE_WAIT", 0.01)
        with pytest.raises(BusyError):
            database.write(done.append)
    assert database.write(lambda _connection: "later") == "later"
    assert not done


@pytest.mark.parametrize("kind", ["postgres"])
def test_a_table_that_another_program_locks_is_not_waited_for_without_end(
    migrated: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "SERVICE_DATABASE_WAIT", 1)
    with open_database(migrated) as database, open_database(migrated) as other, Served(database) as served:
        digest = hashlib.sha256(b"x").hexdigest()
        with other.engine.begin() as connection:
            connection.exec_driver_sql("LOCK TABLE blobs")
            answer = served.request("PUT", f"/blobs/{digest}", params={"kind": "golden"}, content=b"x")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert served.send_blob(b"x", "golden") == digest


@pytest.mark.parametrize("kind", ["sqlite"])
def test_bodies_without_a_key_leave_room_for_those_with_one(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "STRANGERS_BODIES", 100)
    key = database.write(lambda connection: new_user(connection, "ana"))
    app = Application(database, SETTINGS)
    form = [("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")]
    with client_of(database):
        for _ in range(2):
            assert raw(app, "POST", "/login", form, [b"key=".ljust(60, b"x"), b"x" * 60])[0] == 503
        as_json = [("authorization", f"Bearer {key}"), ("content-type", "application/json")]
        body = b'{"name": "bob", "role": "viewer"}'.ljust(200)
        assert raw(app, "POST", "/api/v1/users", as_json, [body])[0] == 201
        assert raw(app, "POST", "/login", form, [b"key=".ljust(90, b"x")])[0] == 401  # all was given back


async def answers_much(_scope: object, _receive: object, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"50000000")]})
    await send({"type": "http.response.body", "body": bytes(50_000_000)})


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        (b"", b""),
        (HEAD, b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET", b"x"),
    ],
)
def test_a_connection_without_a_request_is_closed(start: bytes, rest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CONNECTION_SECONDS", 0.2)
    with listening(refuses) as (server, address), socket.create_connection(address) as client:
        client.sendall(start)
        until(lambda: server.server_state.connections)

        def is_closed() -> bool:
            try:
                client.sendall(rest)
            except OSError:
                return True
            return not server.server_state.connections

        until(is_closed)


def test_a_client_that_does_not_take_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CONNECTION_SECONDS", 0.2)
    with listening(answers_much) as (server, address), socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: server.server_state.total_requests)
        until(lambda: not server.server_state.connections)


def test_a_request_that_takes_long_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CONNECTION_SECONDS", 0.05)
    go_on = Event()

    async def waits(scope: object, receive: object, send: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(None, go_on.wait)
        await refuses(scope, receive, send)

    with listening(waits) as (_, address), socket.create_connection(address) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(0.3)  # several looks
        go_on.set()
        assert client.recv(100).startswith(b"HTTP/1.1 403")


def test_of_too_many_connections_the_oldest_idle_one_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SERVICE_CONNECTIONS", 3)
    with listening(refuses) as (_, address), ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(5)]
        for client in reversed(clients[2:]):
            client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 403")
        for client in clients[:2]:
            assert client.recv(100) == b""
