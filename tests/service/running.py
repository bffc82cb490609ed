"""The service as a server on this machine: in a thread, or as users run it, in a process that says where it answers."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn
from msgspec import Struct

from ragcontract.history.service_store import ServiceStore
from ragcontract.net.pacing import Timing
from ragcontract.service.accounts import create_key
from ragcontract.service.database import Database
from ragcontract.service.web.app import Application, Settings
from tests.forking import plain_environ
from tests.process import COMMAND

SERVES = "The team service answers at "


class Running(Struct, frozen=True, kw_only=True):
    """A server, with the key of a machine that may read and record."""

    url: str
    key: str

    @property
    def environ(self) -> Mapping[str, str]:
        """The variables with which a command uses it."""
        return {"RAG_CONTRACT_HISTORY": self.url, "RAG_CONTRACT_TOKEN": self.key}

    def store(self) -> ServiceStore:
        """Return the store of a client."""
        return ServiceStore(self.url, self.key, seconds=60, timing=Timing())


@contextmanager
def running(database: Database, projects: Path | None = None) -> Iterator[Running]:
    """Serve what a database has, with the mounted projects of a folder if one is named, until the block ends."""
    app = Application(database, Settings(projects=projects))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    key = database.write(lambda connection: create_key(connection, name="ci", now=0, scopes=("read", "record")))
    try:
        yield Running(url=f"http://127.0.0.1:{port}", key=key.text)
    finally:
        server.should_exit = True
        thread.join()


class Process:
    """A process of `rag-contract serve`. ``url`` is where it answers."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._err: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        line = self.next_line()
        assert line.startswith(SERVES), (line, self.ended())
        self.url = line.removeprefix(SERVES)
        self.address = ("127.0.0.1", int(self.url.rpartition(":")[2]))
        self.client = httpx.Client(base_url=self.url)

    def _read(self) -> None:
        assert self.process.stderr
        self._err += self.process.stderr

    def next_line(self) -> str:
        """Return the next line that it prints."""
        assert self.process.stdout
        return self.process.stdout.readline().removesuffix("\n")

    def ended(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Stop it with a signal; return its exit code, and what it has printed since it answers."""
        self.process.send_signal(number)
        assert self.process.stdout
        rest = self.process.stdout.read()
        self._reading.join()
        return self.process.wait(), rest, "".join(self._err)


@contextmanager
def serving(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Iterator[Process]:
    """Start a service at a free port, and kill it when the block ends."""
    env = plain_environ() | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, _paths()))} | dict(environ or {})
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", *argv],
        cwd=cwd,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        running = Process(process)
        with running.client:
            yield running
    finally:
        process.kill()
        process.communicate()


def _paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
