"""`rag-contract serve`: where it answers, what it refuses to start with, what it logs, and how it ends."""

import json
import logging
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest
from litestar.testing import TestClient
from sqlalchemy import URL, Connection, select

from ragcontract.core import bounds
from ragcontract.service.audit import record
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.migrate import migrate, newest
from ragcontract.service.tables import audit, users
from ragcontract.service.web.app import Application, Settings
from tests.process import rag_contract
from tests.service.askers import author
from tests.service.conftest import name_of, open_database
from tests.service.listening import until
from tests.service.postgres import Cluster
from tests.service.running import serving

KEY = "rc_abcd1234_" + "s" * 43


def refused(*argv: str) -> str:
    """Return why the service does not start."""
    ended = rag_contract("serve", *argv)
    assert (ended.code, ended.out) == (2, ""), ended
    return ended.err.removeprefix("error: ").removesuffix("\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_answers_and_ends_when_asked_to(number: int, tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as served:
        assert served.url.startswith("http://127.0.0.1:")
        for path in ("/healthz", "/readyz"):
            assert (answer := served.client.get(path)).json() == {"status": "ok"}
            assert "server" not in answer.headers
            assert len(answer.headers["x-request-id"]) == 32
        assert served.next_line().startswith("Log in as admin")
        code, out, err = served.ended(number)
        assert (code, out) == (0, ""), err
    assert [path.name for path in tmp_path.iterdir()] == ["service.db"]


def test_no_answer_waits_for_the_receipt_of_its_beginning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """asyncio sends small parts at once only over a socket that names its protocol."""
    protocols: list[int] = []
    monkeypatch.setattr("uvicorn.Server.run", lambda _, sockets: protocols.extend(each.proto for each in sockets))
    monkeypatch.setattr(logging.root, "handlers", [])  # without the one that serving adds, afterwards
    monkeypatch.chdir(tmp_path)
    assert rag_contract("serve", "--port", "0").code == 0
    assert protocols == [socket.IPPROTO_TCP]


def test_one_file_has_one_service(tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as first:
        message = refused("--port", "0", "--db", str(tmp_path / "service.db"))
        assert message.startswith(f"--db {tmp_path / 'service.db'}: another `rag-contract` serves or migrates it; ")
        (tmp_path / "link.db").symlink_to("service.db")
        assert "another `rag-contract`" in refused("--port", "0", "--db", str(tmp_path / "link.db"))
        assert first.client.get("/readyz").status_code == 200
        first.process.kill()
        first.process.wait()
        with serving(cwd=tmp_path) as second:
            assert second.client.get("/readyz").status_code == 200


def test_the_first_start_prints_a_link_that_logs_the_administrator_in(tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as served:
        before, _, link = served.next_line().partition("?link=")
        assert before == f"Log in as admin within 15 minutes: {served.url}/login"
        same_origin = {"Sec-Fetch-Site": "same-origin"}
        assert served.client.post("/login", data={"link": link}, headers=same_origin).status_code == 200
        assert link not in served.ended()[2]
    with serving(cwd=tmp_path) as again:
        assert again.ended()[1] == ""


@pytest.mark.parametrize("kind", ["postgres"])
def test_one_postgres_may_have_several(migrated: URL, tmp_path: Path) -> None:
    db = ("--db", name_of(migrated))
    with serving(*db, cwd=tmp_path) as first, serving(cwd=tmp_path, environ={"RAG_CONTRACT_DB": db[1]}) as second:
        assert [each.client.get("/readyz").status_code for each in (first, second)] == [200, 200]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["postgres"])
def test_postgres_is_not_migrated_by_serving(empty: URL) -> None:
    message = refused("--port", "0", "--db", name_of(empty))
    assert message == (
        f"the database has no tables yet, this rag-contract needs {newest()}; run `rag-contract service migrate`"
    )


def test_a_newer_database_is_not_served(migrated: URL) -> None:
    with open_database(migrated) as database:
        database.write(lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9007'"))
    assert refused("--port", "0", "--db", name_of(migrated)) == (
        f"the database is at 9007, this rag-contract knows {newest()}; use the newer version or restore the backup"
    )


def test_an_address_that_cannot_be_had_is_named_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        taken = "another program has this port; end it, or choose another one with --port"
        assert refused("--port", port) == f"127.0.0.1:{port}: {taken}"
    foreign = "this machine does not have this address; name one of its own with --host"
    assert refused("--host", "203.0.113.7") == f"203.0.113.7:8000: {foreign}"
    assert refused("--host", "no such host") == "--host no such host: is not an address of this machine"
    assert "Invalid value for '--port'" in refused("--port", "65536")
    assert "Invalid value for '--projects'" in refused("--projects", "none")
    assert not list(tmp_path.iterdir())


def test_others_reach_it_only_if_it_has_a_user(migrated: URL, tmp_path: Path) -> None:
    argv = ("--host", "0.0.0.0", "--db", name_of(migrated))
    message = refused("--port", "0", *argv)
    assert message.startswith("--host 0.0.0.0: others could reach a service that has no user yet")
    assert "`rag-contract service user add NAME --role admin`" in message

    def add(connection: Connection) -> None:
        connection.execute(users.insert().values(name="ana", role="admin", created_at=1))

    with open_database(migrated) as database:
        database.write(add)
    with serving(*argv, cwd=tmp_path) as served:
        assert served.url.startswith("http://0.0.0.0:")
        assert served.ended()[:2] == (0, "")


@pytest.mark.parametrize(("host", "here"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]")])
def test_the_first_link_is_one_that_a_browser_here_can_open(host: str, here: str, tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as first:
        first.next_line()
        first.ended()
    with serving("--host", host, cwd=tmp_path) as served:
        line = served.next_line()
        port = served.address[1]
        assert line.startswith(f"Log in as admin within 15 minutes: http://{here}:{port}/login?link=")
        link = line.partition(": ")[2]
        assert httpx.get(link).status_code == 200


def test_the_log_has_a_line_of_json_for_each_request_without_queries_and_keys(tmp_path: Path) -> None:
    with serving(cwd=tmp_path) as served:
        headers = {"Authorization": f"Bearer {KEY}"}
        answers = [
            served.client.get("/healthz?q=private"),
            served.client.get("/private/path?q=private", headers=headers),
            served.client.get("/private/path"),
        ]
        with socket.create_connection(served.address) as other:  # of which the server itself has a line
            other.sendall(b"private\r\n\r\n")
            assert other.recv(1_000).startswith(b"HTTP/1.1 400 ")
        lines = [json.loads(line) for line in served.ended()[2].splitlines()]
    assert [line["level"] for line in lines if line["message"].startswith("Invalid HTTP request")] == ["warning"]
    requests = [line for line in lines if line["message"] == "request"]
    assert [line["request"] for line in requests] == [answer.headers["x-request-id"] for answer in answers]
    assert [(line["method"], line["route"], line["status"], line["key"]) for line in requests] == [
        ("GET", "/healthz", 200, None),
        ("GET", None, 401, "rc_abcd1234"),
        ("GET", None, 404, None),
    ]
    assert all(line["ms"] >= 0 and line["level"] == "info" and line["time"].endswith("Z") for line in requests)
    assert "private" not in json.dumps(lines)
    assert "s" * 43 not in json.dumps(lines)


def test_a_start_deletes_rows_of_the_audit_log_that_are_too_old(migrated: URL, tmp_path: Path) -> None:
    def fill(connection: Connection) -> None:
        for days in (bounds.AUDIT_DAYS - 1, bounds.AUDIT_DAYS + 1):
            record(connection, author(now_ms() - days * DAY), "login", "user:ana")

    with open_database(migrated) as database:
        database.write(fill)

        def actions() -> list[str]:
            with database.read() as connection:
                return [*connection.execute(select(audit.c.action).order_by(audit.c.id)).scalars()]

        with serving("--db", name_of(migrated), cwd=tmp_path):
            until(lambda: actions() == ["login", "user.add", "link.add"])


@pytest.fixture
def client(database: Database) -> Iterator[TestClient[Application]]:
    with TestClient(Application(database, Settings())) as client:
        yield client


def not_ready(client: TestClient[Application]) -> list[str]:
    """Return why the service is not ready; it must still say that it is there."""
    assert client.get("/healthz").status_code == 200
    answer = client.get("/readyz")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.headers["content-type"].startswith("application/problem+json")
    problems: list[str] = answer.json()["problems"]
    return problems


def test_it_is_ready_if_the_tables_are_those_of_this_version(
    client: TestClient[Application], database: Database
) -> None:
    assert client.get("/readyz").json() == {"status": "ok"}
    database.write(lambda connection: connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9007'"))
    assert not_ready(client) == [
        f"the database is at 9007, this rag-contract knows {newest()}; use the newer version or restore the backup"
    ]


@pytest.mark.parametrize("kind", ["sqlite"])
def test_it_is_not_ready_while_too_many_writes_wait(client: TestClient[Application], database: Database) -> None:
    started, go_on = Event(), Event()

    def wait(_connection: object) -> None:
        started.set()
        go_on.wait()

    first = Thread(target=database.write, args=[wait])
    first.start()
    started.wait()
    others = [Thread(target=database.write, args=[wait]) for _ in range(bounds.SERVICE_WRITES_WAITING)]
    for thread in others:
        thread.start()
    while database.waiting < bounds.SERVICE_WRITES_WAITING:
        pass
    try:
        assert not_ready(client) == [f"{bounds.SERVICE_WRITES_WAITING} writes wait, as many as may"]
    finally:
        go_on.set()
        for thread in (first, *others):
            thread.join()
    assert client.get("/readyz").status_code == 200


def test_it_is_there_while_the_database_is_gone(cluster: Cluster, tmp_path: Path) -> None:
    with cluster.new_database() as url, open_database(url) as database:
        migrate(database)
        with serving("--db", name_of(url), cwd=tmp_path) as served:
            assert served.client.get("/readyz").status_code == 200
            cluster.rename(str(url.database), "away")
            assert served.client.get("/healthz").status_code == 200
            answer = served.client.get("/readyz")
            assert (answer.status_code, answer.json()["problems"]) == (503, ["the database does not answer"])
            cluster.rename("away", str(url.database))
            assert served.client.get("/readyz").status_code == 200
