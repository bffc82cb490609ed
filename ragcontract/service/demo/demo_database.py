"""Fills a database with the demo. Each project is checked in a process of its own, which halves the time and more."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from heapq import merge
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import sqlalchemy
from sqlalchemy import select

from ragcontract.history.entry import NewEntry
from ragcontract.service import trends
from ragcontract.service.accounts import Principal
from ragcontract.service.database import DAY, Database
from ragcontract.service.database_store import DatabaseStore, milliseconds
from ragcontract.service.demo import demo_traffic
from ragcontract.service.demo.demo_checks import send_entries
from ragcontract.service.demo.demo_story import NIGHTS, PROJECTS, newest_config
from ragcontract.service.production.drift_watch import DriftWatch
from ragcontract.service.projects_and_runs import add_project
from ragcontract.service.serving import serve
from ragcontract.service.tables import projects

Done = Callable[[float], None]  # is called with the share of the nights that are recorded
CI = Principal(actor="key:demo", scopes=frozenset({"record"}))
AT_ONCE = 20  # entries in a transaction


def serve_demo(*, now: datetime, progress: AbstractContextManager[Done], **options: Any) -> None:
    """Serve the demo as :func:`~ragcontract.service.serving.serve` does; its database is deleted at the end."""

    def filled(database: Database) -> None:
        with progress as done:
            fill(database, now, done)

    with TemporaryDirectory(prefix="rag-contract-demo-") as folder:
        mounted = mount(Path(folder, "projects"), now)
        db = str(Path(folder, "service.db"))
        serve(**options, db=db, projects=mounted, workers=1, keep_runs=0, fill=filled)


def mount(folder: Path, now: datetime) -> Path:
    """Make the folder of the projects of the demo as an operator would mount it at a time, and return it.

    The contract of each is that of its newest run, without scores: runs of the service have none. The systems answer
    from a good run.
    """
    target = Path(__file__).with_name("demo_target.py")
    for project in PROJECTS:
        home = folder / project.slug
        home.mkdir(parents=True)
        for name in ("golden.jsonl", "run.jsonl"):
            (home / name).write_bytes((project.folder / name).read_bytes())
        (home / "target.py").write_bytes(target.read_bytes())
        texts = {
            "ragcontract.yml": _without_scores(newest_config(project, now)),
            "record.yml": f"python:\n  object: target.py:demo\n{project.versions}",
            "project.yml": f"name: {project.title}\nkeep_runs: 0\n",
        }
        for name, text in texts.items():
            (home / name).write_text(text, encoding="utf-8")
    return folder


def _without_scores(config: str) -> str:
    names = re.findall(r"(?m)^  (\w+): {from: scores", config)
    kept = [line for line in config.splitlines(keepends=True) if line.partition(":")[0].strip() not in names]
    return re.sub(r"(?m)^metrics:\n(?!  )", "", "".join(kept))


def fill(database: Database, now: datetime, done: Done = lambda _: None) -> None:
    """Record all runs of the demo until a time, compute the trends of its projects, and measure its production.

    All that is recorded depends on the time alone, and what is there already is kept.
    """
    store, first = DatabaseStore(database, CI), milliseconds(now.isoformat()) - NIGHTS * DAY
    database.write(lambda connection: _add_projects(connection, first))
    with _checked(now) as entries:
        while some := [*islice(entries, AT_ONCE)]:
            store.add_all(some)
            done((milliseconds(some[-1].entry.created_at) - first) / (NIGHTS * DAY))
    with database.read() as connection:
        slugs = [project.slug for project in PROJECTS]
        numbers = [*connection.execute(select(projects.c.id).where(projects.c.slug.in_(slugs))).scalars()]
        is_asked = projects.c.slug == demo_traffic.PROJECT.slug
        asked = connection.execute(select(projects.c.id).where(is_asked)).scalar()
    for number in numbers:
        trends.compute(database, number, None)
    if asked is not None:
        database.write(lambda connection: demo_traffic.add_traffic(connection, asked, now))
        DriftWatch(database, None, clock=lambda: milliseconds(now.isoformat()), is_alone=True).look()


def _add_projects(connection: sqlalchemy.Connection, at: int) -> None:
    for project in PROJECTS:
        add_project(connection, project.slug, project.title, at, repository=project.repository)


@contextmanager
def _checked(now: datetime) -> Iterator[Iterator[NewEntry]]:
    """Start a process for each project, and give the entries of all, the oldest first; the processes end with it."""
    context = get_context("spawn")
    readers, processes = [], []
    with TemporaryDirectory(prefix="rag-contract-demo-") as folder:
        try:
            for project in PROJECTS:
                reader, writer = context.Pipe(duplex=False)
                home = Path(folder, project.slug)
                process = context.Process(target=send_entries, args=(writer, project, now, home), daemon=True)
                process.start()
                writer.close()  # so that the end is seen
                readers.append(reader)
                processes.append(process)
            yield merge(*map(_received, readers), key=lambda new: new.entry.created_at)
        except BaseException:
            for process in processes:
                process.terminate()
            raise
        finally:
            for process in processes:
                process.join()
        if any(process.exitcode for process in processes):
            raise RuntimeError("a process that checks a project of the demo has failed")


def _received(reader: Connection) -> Iterator[NewEntry]:
    """Yield what a process sends; a thread takes it at once, so that the process need not wait."""
    received: SimpleQueue[NewEntry | None] = SimpleQueue()

    def receive() -> None:
        with reader, suppress(EOFError, OSError):
            while True:
                received.put(reader.recv())
        received.put(None)

    Thread(target=receive, daemon=True).start()
    while (new := received.get()) is not None:
        yield new
