"""A service that runs as users run it: a process, which says where it answers."""

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx

from tests.forking import plain_environ
from tests.process import COMMAND

SERVES = "rag-contract serves "


class Served:
    """A process of `rag-contract serve`. ``url`` is where it answers."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self._err: list[str] = []
        self._reading = Thread(target=self._read, daemon=True)
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
def serving(*argv: str, cwd: Path, environ: Mapping[str, str] | None = None) -> Iterator[Served]:
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
        served = Served(process)
        with served.client:
            yield served
    finally:
        process.kill()
        process.communicate()


def _paths() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
