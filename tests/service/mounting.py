"""Mounted projects of tests, with a target that notes what it is asked, and workers in this process."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from ragcontract.service.database import Database
from ragcontract.service.projects_and_runs import add_project, project_id
from ragcontract.service.tables import runs
from ragcontract.service.workers.run_queue import ask_to_cancel, enqueue, time_of
from ragcontract.service.workers.worker import Worker, new_owner, place_of
from tests.builders import golden, write_jsonl

SLUG = "docs"
NAMES = ("q1", "q2", "q3")
ANSWERS = "return [{'doc_id': query}]"
PATIENCE = 120  # s; on a loaded machine, processes take long to start


class Mounted:
    """A folder of mounted projects and the queue of a database. ``asked`` is where the target notes questions."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder = database, folder / "projects"
        self.asked, self.runs = folder / "asked", folder / "runs"
        self.home = self.folder / SLUG
        self.home.mkdir(parents=True)
        write_jsonl(self.home / "golden.jsonl", [golden(name, name, query=name) for name in NAMES])
        self.write("ragcontract.yml", "minimums: {recall_at_k: 0.9}\nfail_on: {recall_at_5_drop_gt: 0.01}\n")
        self.write("record.yml", 'python: {object: "app:search"}\n')
        self.write("project.yml", "timeout: 100\n")
        self.target(ANSWERS)
        database.write(lambda connection: add_project(connection, SLUG, SLUG, 0))

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        (self.home / name).write_text(text)

    def target(self, *lines: str) -> None:
        """Write the target: the lines of its function, after it has noted the question."""
        note = f"print(query, file=open({str(self.asked)!r}, 'a'), flush=True)"
        body = "\n".join(f"    {line}" for line in (note, *lines))
        self.write("app.py", f"import os, signal, subprocess, sys, time\n\ndef search(query, top):\n{body}\n")

    def questions(self) -> list[str]:
        """Return what the target was asked."""
        return self.asked.read_text().split() if self.asked.exists() else []

    def add(self, event: str = "manual") -> int:
        def job(connection: Connection) -> int:
            number = project_id(connection, SLUG)
            assert number is not None
            return enqueue(connection, number, event=event, created_by="user:ana", note=None, now=time_of(connection))

        return self.database.write(job)

    def cancel(self, number: int) -> bool:
        return self.database.write(lambda connection: ask_to_cancel(connection, number, time_of(connection)))

    def row(self, number: int) -> Any:
        with self.database.read() as connection:
            return connection.execute(select(runs).where(runs.c.id == number)).one()

    def is_over(self, number: int) -> bool:
        return self.row(number).state not in {"queued", "running"}

    @contextmanager
    def worker(self, clock: Callable[[Connection], int] = time_of) -> Iterator[threading.Event]:
        """Let a worker work in a thread until the block ends, or the event is set."""
        ended = threading.Event()
        place = place_of(str(self.database.file or self.database.url), self.folder, self.runs)
        self.runs.mkdir(exist_ok=True)
        thread = threading.Thread(target=Worker(self.database, place, ended, new_owner(), clock).work, daemon=True)
        thread.start()
        try:
            yield ended
        finally:
            ended.set()
            thread.join()

    def made(self) -> Any:
        """Add a run and return its row when it is over."""
        number = self.add()
        with self.worker():
            wait_until(lambda: self.is_over(number))
        return self.row(number)


def wait_until(is_so: Callable[[], object]) -> None:
    """Wait for something that happens in another process."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until, "it has not happened"
        time.sleep(0.05)


def is_gone(pid: int) -> bool:
    """Return whether a process has ended: a zombie has, even if nobody waits for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
