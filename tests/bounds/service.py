"""Limits on the team service: what its database and its API take at once."""

import asyncio
import socket
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Thread
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from uvicorn.server import ServerState

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.history.entry_of_report import entry_of_report
from ragcontract.history.folder import Folder
from ragcontract.history.service_files import WITHOUT
from ragcontract.history.service_store import ServiceStore
from ragcontract.net.pacing import Timing
from ragcontract.report.html import page
from ragcontract.service.accounts import Principal
from ragcontract.service.database import BusyError, Database, database_url, index_key
from ragcontract.service.database_store import milliseconds, record, recording_of
from ragcontract.service.serving import configuration
from ragcontract.service.tables import metadata
from ragcontract.service.web.app import enough_threads
from tests.bounds.lab import Case, Cases, Lab
from tests.builders import golden
from tests.history.entries import new_entry, runs
from tests.net.service import Reply, Service
from tests.service.listening import listening, refuses
from tests.service.running import serving
from tests.service.served import Served

KEY = f"rc_1a2b3c4d_{'x' * 43}"


def a_database(lab: Lab) -> Database:
    return Database(database_url(str(lab.folder / "service.db")))


def reading_at_once(lab: Lab, number: int) -> bool:
    lab.make_smaller("SERVICE_DATABASE_WAIT", 0)
    database = a_database(lab)
    with ExitStack() as stack:
        stack.callback(database.close)
        try:
            for _ in range(number):
                stack.enter_context(database.read())
        except PoolTimeoutError:
            return False
    return True


def waiting_for(lab: Lab, seconds: int) -> bool:
    database = a_database(lab)
    with database.read() as connection:
        milliseconds: int = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    database.close()
    return seconds * 1_000 <= milliseconds


def writes_waiting(lab: Lab, number: int) -> bool:
    database, started, go_on = a_database(lab), Event(), Event()

    def wait(_connection: object) -> None:
        started.set()
        go_on.wait()

    threads = [Thread(target=database.write, args=[wait])]
    threads[0].start()
    started.wait()
    refused = Event()

    def write() -> None:
        try:
            database.write(lambda _connection: None)
        except BusyError:
            refused.set()

    threads += [Thread(target=write) for _ in range(number)]
    for thread in threads[1:]:
        thread.start()
    while not refused.is_set() and database.waiting < min(number, bounds.SERVICE_WRITES_WAITING):
        pass
    refused.wait(0 if number <= bounds.SERVICE_WRITES_WAITING else None)
    go_on.set()
    for thread in threads:
        thread.join()
    database.close()
    return not refused.is_set()


def served(lab: Lab) -> Served:
    database = a_database(lab)
    database.write(metadata.create_all)
    return Served(database)


def items(lab: Lab, number: int) -> bool:
    status = served(lab).request("GET", "/projects", params={"limit": f"{number}"}).status_code
    assert status in {200, 422}
    return bool(status == 200)


def entries_in_an_answer(lab: Lab, size: int) -> bool:
    """Ask for two entries of this size together."""
    service, (first, second) = served(lab), runs(2)
    half = size // 2
    for new, length in ((first, half), (second, size - half)):
        service.add(replace(new, content=new.content.ljust(length)))
    answer = service.get("/projects/docs/entries/contents", id=[first.entry.id, second.entry.id])
    assert len(answer["items"]) + len(answer["rest"]) == 2
    return not answer["rest"]


def a_contract_of_a_day(lab: Lab, size: int) -> bool:
    """Record a check whose golden file and config make a blob of this size."""
    row, config = msgspec.json.encode(golden()).decode(), "k: 5\n"
    bare = len(msgspec.json.encode({"golden": [f"{row}\n"], "config": config}))
    lab.check(f"{row}{' ' * (size - bare)}\n".encode(), config=config)
    new = entry_of_report(Path("report.json"), Folder("history"), {}, for_service=True)
    assert (new.golden is None) == any(WITHOUT in why for why in new.left_out)
    return new.golden is not None and len(new.golden) == size


def pages(_: Lab, number: int) -> bool:
    """Read a list of this many pages."""
    page = Reply(content={"items": [], "next": "more"})
    with Service(*[page] * (number - 1), Reply(content={"items": []})) as service:
        try:
            return ServiceStore(service.url, KEY, seconds=60, timing=Timing()).result_sets() == set()
        except InputError as error:
            assert "a list has more than" in str(error)  # noqa: PT017
            return False


def a_head(lab: Lab, size: int) -> bool:
    """Send the head of a request that does not end: one that is too large is answered."""
    with serving(cwd=lab.folder) as served, socket.create_connection(served.address) as end:
        start = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
        end.sendall(start.ljust(size, b"x"))
        end.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: end.recv(4096), b""))
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")
    return answer == b""


def last_requests(_: Lab, seconds: int) -> bool:
    wait = configuration(nothing, "127.0.0.1").timeout_graceful_shutdown
    return wait is not None and seconds <= wait


async def nothing(_scope: object, _receive: object, _send: object) -> None:
    """Stand in for an application that is never called. Without all three arguments, uvicorn calls it to get one."""


def digests(lab: Lab, number: int) -> bool:
    """Ask for the digests of so many result sets."""
    service = served(lab)
    for new in runs(number):
        service.add(new)
    return service.get("/blobs")["next"] is None


def pages_of_reports(lab: Lab, number: int) -> bool:
    """Show so many reports, and the first one again; return whether its page was kept."""
    lab.check()
    service, rendered = served(lab), count()
    lab.patch.setattr(page, "render", lambda _report: b"%d" % next(rendered))
    for place, new in enumerate(runs(number, "", hours=1)):
        report = (lab.folder / "report.json").read_bytes() + b"\n" * place
        service.add(new, report=service.send_blob(report, "report"))
    for run in [*range(1, number + 1), 1]:
        assert service.request("GET", f"/runs/{run}/report.html").status_code == 200
    return next(rendered) == number


def threads(_: Lab, number: int) -> bool:
    """Have so many requests wait for each other."""
    together = Barrier(number)

    def wait() -> bool:
        try:
            together.wait(3)
        except BrokenBarrierError:
            return False
        return True

    async def run() -> list[bool]:
        enough_threads()
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(None, wait) for _ in range(number)))

    return all(asyncio.run(run()))


def connections(_: Lab, number: int) -> bool:
    """Open so many connections; return whether the first one is still there."""
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with listening(refuses) as (_server, address), ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(address)) for _ in range(number)]
        clients[-1].sendall(request)
        assert clients[-1].recv(100)  # so all were accepted
        try:
            clients[0].sendall(request)
            return clients[0].recv(100) != b""
        except OSError:
            return False


def silent_for(_: Lab, seconds: int) -> bool:
    """Return whether the first look at a new connection is after this time."""
    looks: list[float] = []

    class Loop(asyncio.SelectorEventLoop):
        def call_later(self, delay: float, *args: Any, **options: Any) -> asyncio.TimerHandle:  # type: ignore[override]
            looks.append(delay)
            return super().call_later(delay, *args, **options)

    async def connect() -> None:
        config = configuration(nothing, "127.0.0.1")
        config.lifespan = "off"
        protocol: Any = config.http
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: protocol(config, ServerState(), {}), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()):
            await asyncio.sleep(0.05)
        server.close()

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(connect())
    return any(seconds <= delay for delay in looks)


def ahead(lab: Lab, seconds: int) -> bool:
    """Record an entry whose time is so long after that of the service."""
    database, new = a_database(lab), new_entry()
    database.write(metadata.create_all)
    recording, now = recording_of("docs", new.content), milliseconds(new.entry.created_at) - seconds * 1000
    try:
        database.write(lambda connection: record(connection, recording, Principal(actor="key:ci"), now))
    except InputError as error:
        assert "in the future" in str(error)  # noqa: PT017
        return False
    finally:
        database.close()
    return True


CASES: Cases = {
    "SERVICE_CLOCK_AHEAD": Case(ahead),
    "SERVICE_THREADS": Case(threads, small=3),
    "SERVICE_CONNECTIONS": Case(connections, small=3),
    "CONNECTION_SECONDS": Case(silent_for),
    "SERVICE_HEADERS": Case(a_head),
    "SERVICE_LAST_REQUESTS": Case(last_requests),
    "BLOB": Case(a_contract_of_a_day, small=1_000),
    "PAGE_ITEMS": Case(items),
    "PAGE_DIGESTS": Case(digests, small=3),
    "REPORT_PAGES": Case(pages_of_reports),
    "ENTRIES_ANSWER": Case(entries_in_an_answer, small=10_000),
    "SERVICE_PAGES": Case(pages),
    "INDEXED_TEXT": Case(lambda _lab, size: index_key("x" * size) == "x" * size),
    "SERVICE_READERS": Case(reading_at_once),
    "SERVICE_DATABASE_WAIT": Case(waiting_for),
    "SERVICE_WRITES_WAITING": Case(writes_waiting),
}
