"""Kills workers at random moments: every run must end, none twice, and no answer that is journalled is asked for again.

    python -m benchmarks.workers [--db URL] [--runs 200] [--workers 4] [--kills 15] [--seed 1]

The database is a new SQLite file unless another empty one is named. Fails if anything that it saw is wrong.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, func, select

from ragcontract.core import bounds
from ragcontract.service.database import Database
from ragcontract.service.migrate import migrate, opened
from ragcontract.service.projects_and_runs import add_project, project_id
from ragcontract.service.tables import points, runs
from ragcontract.service.workers.run_queue import enqueue, time_of
from ragcontract.service.workers.worker import place_of
from ragcontract.service.workers.worker_processes import WorkerProcesses

QUESTIONS = 5
WAITING = ("queued", "running")
APP = """
import os, time

def search(query, top):
    line = f"{os.environ['RAG_CONTRACT_RUN']} {os.getpid()} {query}\\n".encode()
    file = os.open(ASKED, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line)
    os.close(file)
    time.sleep(SECONDS)
    return [{"doc_id": query}]
"""


class Seen(Struct, frozen=True, kw_only=True):
    """What became of the runs."""

    runs: int
    states: dict[str, int]
    attempts: dict[int, int]  # runs by how many they had
    kills: int
    entries: int
    keys: int  # different ones
    doubled_points: int
    asked_again: int  # questions of a run that were asked twice
    asked_again_too_often: int  # by more than the one that each lost attempt was at
    mixed: int  # runs of which two attempts were at work at once
    seconds: float

    def wrong(self) -> list[str]:
        """Return what must not be."""
        completed = self.states.get("completed", 0)
        lost_thrice = self.runs - completed  # a run whose workers were killed three times
        checks = {
            "a run is not over": any(self.states.get(state) for state in WAITING),
            "a run failed without three attempts": lost_thrice > self.attempts.get(bounds.RUN_ATTEMPTS, 0),
            "more attempts than kills": sum((each - 1) * n for each, n in self.attempts.items()) > self.kills,
            "a fourth attempt": max(self.attempts) > bounds.RUN_ATTEMPTS,
            "a run without its entry, or an entry twice": not self.entries == self.keys == completed,
            "a mean twice": self.doubled_points > 0,
            "a journalled question was asked again": self.asked_again_too_often > 0,
            "two attempts at once": self.mixed > 0,
        }
        return [problem for problem, is_so in checks.items() if is_so]


def mounted(folder: Path, projects: int, seconds: float) -> Path:
    """Make the folders of projects whose target notes each question."""
    for number in range(projects):
        home = folder / f"projects/p{number}"
        home.mkdir(parents=True)
        app = f"ASKED, SECONDS = {str(folder / 'asked')!r}, {seconds}\n{APP}"
        golden = [f'{{"id": "q{n}", "query": "d{n}", "relevant_doc_ids": ["d{n}"]}}\n' for n in range(QUESTIONS)]
        files = {
            "app.py": app,
            "record.yml": 'python: {object: "app:search"}\n',
            "golden.jsonl": "".join(golden),
            "ragcontract.yml": "minimums: {recall_at_k: 0.9}\n",
            "project.yml": "timeout: 600\n",
        }
        for name, text in files.items():
            (home / name).write_text(text)
    return folder / "projects"


def trial(
    database: Database,
    db: str,
    folder: Path,
    *,
    number: int,
    workers: int,
    kills: int,
    seed: int,
    seconds: float = 0.2,
) -> Seen:
    """Make runs while workers are killed."""
    projects = -(-number // (bounds.RUNS_QUEUED // 2))
    home = mounted(folder, projects, seconds)

    def add(connection: Connection) -> None:
        now = time_of(connection)
        for count in range(number):
            slug = f"p{count % projects}"
            add_project(connection, slug, slug, now)
            of_project = project_id(connection, slug) or 0
            enqueue(connection, of_project, event="manual", created_by="benchmark", note=None, now=now)

    database.write(add)
    chance, begun, done = random.Random(seed), time.monotonic(), 0
    # A worker is killed some time after as many runs are over; with the last ones, when nobody waits any more.
    moments = sorted(chance.randrange(number - workers) for _ in range(kills))
    processes = WorkerProcesses(database, place_of(db, home, folder / "runs"), workers)
    processes.start()
    try:
        while left := waiting(database):
            time.sleep(chance.uniform(0.1, 1.5))
            if done < kills and number - left >= moments[done] and (pids := processes.pids):
                os.kill(chance.choice(pids), signal.SIGKILL)
                done += 1
    finally:
        processes.close()
    return seen(database, folder / "asked", kills=done, seconds=time.monotonic() - begun)


def waiting(database: Database) -> int:
    """Return how many runs are not over."""
    with database.read() as connection:
        of_state = select(func.count()).select_from(runs).where(runs.c.state.in_(WAITING))
        return int(connection.execute(of_state).scalar_one())


def seen(database: Database, asked: Path, *, kills: int, seconds: float) -> Seen:
    """Look at the database and at what was asked."""
    with database.read() as connection:
        rows = connection.execute(select(runs)).all()
        of_points = select(points.c.run_id, points.c.metric, points.c.tag, func.count()).group_by(
            points.c.run_id, points.c.metric, points.c.tag
        )
        doubled = sum(row[3] > 1 for row in connection.execute(of_points))
    lines = [line.split() for line in asked.read_text().splitlines()]
    attempts = sorted((row.attempt for row in rows), reverse=True)
    again: Counter[str] = Counter()
    mixed = 0
    for mark in {line[0] for line in lines}:
        of_run = [(pid, query) for each, pid, query in lines if each == mark]
        again[mark] = len(of_run) - len({query for _, query in of_run})
        order = [pid for number, (pid, _) in enumerate(of_run) if not number or of_run[number - 1][0] != pid]
        mixed += len(order) != len(set(order))
    lost = [attempt - 1 for attempt in attempts]
    most = sorted(again.values(), reverse=True)
    return Seen(
        runs=len(rows),
        states=dict(Counter(row.state for row in rows)),
        attempts=dict(Counter(attempts)),
        kills=kills,
        entries=sum(row.entry is not None for row in rows),
        keys=len({(row.project_id, row.key) for row in rows if row.entry is not None}),
        doubled_points=doubled,
        asked_again=sum(again.values()),
        asked_again_too_often=sum(had > may for had, may in zip(most, lost, strict=False)),
        mixed=mixed,
        seconds=round(seconds, 1),
    )


def main() -> int:
    """Run the trial once."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--db")
    for name, default in (("runs", 200), ("workers", 4), ("kills", 15), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        db = chosen.db or str(Path(name, "service.db"))
        with opened(db, create=True) as database:
            migrate(database)
            of = {"number": chosen.runs, "workers": chosen.workers, "kills": chosen.kills, "seed": chosen.seed}
            result = trial(database, db, Path(name), **of)
    sys.stdout.write(f"{result}\n")
    for problem in result.wrong():
        sys.stdout.write(f"WRONG: {problem}\n")
    return bool(result.wrong())


if __name__ == "__main__":
    sys.exit(main())
