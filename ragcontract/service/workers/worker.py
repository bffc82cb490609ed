"""A worker: claims runs of mounted projects, one after the other, and makes them.

It says that it lives, and holds its run, every few seconds. If it cannot, it ends the run's processes before another
worker may take the run. A worker that `serve` has started ends with it, however that ends.
"""

import logging
import os
import re
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import Connection, select
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.core.errors import InputError, OutputError, RagContractError
from ragcontract.history.entry import is_folder_name
from ragcontract.service.database import SQLITE, BusyError, Database, database_url, seconds
from ragcontract.service.database_store import prepared_recording
from ragcontract.service.json_log import log_json
from ragcontract.service.migrate import check_revision, opened
from ragcontract.service.mounted import RECORD, project_in
from ragcontract.service.tables import runs
from ragcontract.service.workers.project_run import ProjectRun, RunFailedError, StoppedError, lock_of
from ragcontract.service.workers.run_queue import (
    Claim,
    Ended,
    beat,
    claim,
    end,
    finish,
    give_back,
    renew,
    sign_off,
    time_of,
)

T = TypeVar("T")
Heard = Literal["ours", "cancelled", "lost"]
log = logging.getLogger(__name__)
RUNS = "rag-contract-runs"  # the folder of the runs' folders
RENEWED = 5  # s; how often a worker is heard
IDLE = 1  # s; how often a worker looks for runs
ANOTHER_SECOND = 1.1  # s; entries of the same results differ in theirs
CHECKS = 5  # how often a run is checked again for that
FOLDER = re.compile("run-([0-9]{1,18})")  # what a database can count
GIT_CEILING = "GIT_CEILING_DIRECTORIES"


class Place(Struct, frozen=True, kw_only=True):
    """What a worker works with: paths are absolute, because it changes its current folder."""

    db: str
    projects: str  # the folder of the mounted projects
    runs: str  # the folder for those of runs


def place_of(db: str, projects: Path, runs_dir: Path | None) -> Place:
    """Return the place of workers; folders of runs are beside an SQLite file, or in the current folder, by default.

    Raises :class:`InputError` on Windows, where a run's processes could not be ended.
    """
    if os.name == "nt":
        raise InputError(["--projects: workers need Linux or macOS; add --workers 0"])
    url = database_url(db)
    default = Path(RUNS)
    if url.get_backend_name() == SQLITE and url.database:
        file = Path(url.database).resolve()
        url, default = url.set(database=str(file)), file.with_name(f"{file.name}.runs")
    name = url.render_as_string(hide_password=False)
    return Place(db=name, projects=str(projects.resolve()), runs=str((runs_dir or default).resolve()))


def new_owner() -> str:
    """Return a name for a worker, which no other one has."""
    return f"{socket.gethostname()}:{uuid.uuid4().hex[:12]}"


class Worker:
    """Makes runs until it is ``ended``."""

    def __init__(
        self,
        database: Database,
        place: Place,
        ended: threading.Event,
        owner: str,
        clock: Callable[[Connection], int] = time_of,
    ) -> None:
        self._database, self._ended, self._owner, self._clock = database, ended, owner, clock
        self._projects, self._runs = Path(place.projects), Path(place.runs)
        self._heart = _Heart(database, owner, clock)

    def work(self) -> None:
        """Claim runs and make them."""
        self._heart.start()
        try:
            self._sweep()
            while not self._ended.is_set():
                held = self._claimed()
                if held is None:
                    self._ended.wait(IDLE)
                    continue
                try:
                    self._make(held)
                except (BusyError, SQLAlchemyError) as error:
                    log.warning("run %s is left, because the database failed: %s", held.run_id, type(error).__name__)
                    self._ended.wait(IDLE)
        finally:
            self._heart.close()
            with suppress(BusyError, SQLAlchemyError):
                self._write(partial(give_back, owner=self._owner))
                self._database.write(partial(sign_off, owner=self._owner))

    def _write(self, job: "Callable[..., T]") -> T:
        return self._database.write(lambda connection: job(connection, now=self._clock(connection)))

    def _claimed(self) -> Claim | None:
        try:
            slugs = {entry.name for entry in self._projects.iterdir() if can_run(entry)}
            return self._write(partial(claim, owner=self._owner, slugs=slugs))
        except (BusyError, SQLAlchemyError, OSError) as error:  # OSError: the folder of the projects is away
            log.warning("no run can be claimed now: %s", type(error).__name__)
            return None

    def _make(self, held: Claim) -> None:
        """Make a run, and store how it ended."""
        try:
            project = project_in(self._projects, held.slug)
        except InputError as error:
            self._ended_with(held, "failed", "\n".join(error.problems), "")
            return
        if project is None:
            self._ended_with(held, "failed", f"the folder {held.slug} is no longer mounted", "")
            return
        run = ProjectRun(project, held, self._runs / f"run-{held.run_id}", os.environ, self._stopped)
        self._heart.hold(held, run.log.text)
        try:
            state = self._tried(held, run)
        finally:
            self._heart.release()
        if state is not None:
            run.delete()

    def _stopped(self) -> bool:
        return self._ended.is_set() or self._heart.standing != "ours"

    def _tried(self, held: Claim, run: ProjectRun) -> Ended | None:
        """Return how a run ended; None if it goes on, with another attempt or worker."""
        try:
            run.prepare(self._database)
            run.record()
            return self._recorded(held, run)
        except StoppedError:
            if self._heart.standing == "cancelled":
                return self._ended_with(held, "cancelled", None, run.log.text())
            return None
        except RunFailedError as error:
            return self._ended_with(held, "failed", str(error), run.log.text())
        except (BusyError, SQLAlchemyError):
            raise  # another attempt may store it
        except Exception as error:
            log.exception("run %s could not be made", held.run_id)
            return self._ended_with(held, "failed", f"the service failed: {type(error).__name__}", run.log.text())

    def _recorded(self, held: Claim, run: ProjectRun) -> Ended | None:
        """Check a run and store its entry, which needs another time than one with the same results."""
        for _ in range(CHECKS):
            recording, sent = prepared_recording(run.check())
            if self._stopped():
                raise StoppedError
            job = partial(finish, claim=held, recording=recording, blobs_sent=sent, log=run.log.text())
            try:
                done = self._write(job)
            except InputError as error:
                raise RunFailedError("\n".join(error.problems)) from error
            if done == "recorded":
                return "completed" if recording.entry.verdict == "pass" else "blocked"
            if done == "lost":
                return None
            self._ended.wait(ANOTHER_SECOND)
        raise RunFailedError("other runs of the same second have the same results; start it again")

    def _ended_with(self, held: Claim, state: Ended, problem: str | None, text: str) -> Ended | None:
        job = partial(end, claim=held, state=state, problem=problem, log=text)
        return state if self._write(job) else None

    def _sweep(self) -> None:
        """Delete the folders of runs that are over: their workers were killed before they could."""
        numbered = {int(match[1]): each for each in self._runs.iterdir() if (match := FOLDER.fullmatch(each.name))}
        with self._database.read() as connection:
            going_on = runs.c.id.in_(numbered), runs.c.state.in_(["queued", "running"])
            kept = {*connection.execute(select(runs.c.id).where(*going_on)).scalars()}
        for number in numbered.keys() - kept:
            rmtree(numbered[number], ignore_errors=True)
            lock_of(numbered[number]).unlink(missing_ok=True)


class _Heart:
    """The thread that says that a worker lives, and holds its run."""

    def __init__(self, database: Database, owner: str, clock: Callable[[Connection], int]) -> None:
        self._database, self._owner, self._clock = database, owner, clock
        self._held: tuple[Claim, Callable[[], str]] | None = None
        self._changing = threading.Lock()
        self._ended = threading.Event()
        self._heard = seconds()
        self._standing: Heard = "ours"
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)

    @property
    def standing(self) -> Heard:
        """How the run stood when the database last answered; lost if that was long ago.

        Others take the run when its lease has ended, and then nothing of it may run here.
        """
        return "lost" if seconds() - self._heard > bounds.LEASE_SECONDS / 2 else self._standing

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def hold(self, held: Claim, text: Callable[[], str]) -> None:
        """Hold a run from now on, and store what ``text`` returns."""
        with self._changing:
            self._held, self._standing, self._heard = (held, text), "ours", seconds()

    def release(self) -> None:
        with self._changing:
            self._held = None

    def _run(self) -> None:
        while True:
            with self._changing:
                self._beat()
            if self._ended.wait(RENEWED):
                return

    def _beat(self) -> None:
        held = self._held

        def job(connection: Connection, text: str) -> Heard:
            now = self._clock(connection)
            beat(connection, self._owner, now)
            return renew(connection, held[0], text, now) if held else "ours"

        try:
            text = held[1]() if held else ""  # not in the transaction: redacting takes a while, and others would wait
            self._standing = self._database.write(partial(job, text=text))
            self._heard = seconds()
        except Exception as error:  # noqa: BLE001 (whatever it is, nobody hears of this worker)
            log.warning("the database does not hear of this worker: %s", type(error).__name__)


def can_run(entry: Path) -> bool:
    """Return whether a folder has a project that a worker can run; one that nobody may read has none."""
    # Unlike Path.is_file, this does not raise if the folder cannot be read.
    return is_folder_name(entry.name) and not entry.is_symlink() and os.path.isfile(entry / RECORD)  # noqa: PTH113


def work(place: Place, owner: str, ended: threading.Event) -> None:
    """Open the database and work until ``ended`` is set, which SIGTERM and Ctrl-C do.

    Raises :class:`InputError` if the database or a folder cannot be used.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    os.environ[GIT_CEILING] = place.runs  # a repository around it is none of the projects'
    with opened(place.db) as database:
        check_revision(database)
        try:
            Path(place.runs).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError([f"--runs-dir {place.runs}: cannot be written ({error.strerror})"]) from error
        Worker(database, place, ended, owner).work()


def work_alone(*, db: str, projects: Path, runs_dir: Path | None) -> None:
    """Work for a service that runs elsewhere."""
    log_json()
    work(place_of(db, projects, runs_dir), new_owner(), threading.Event())


class WorkerStart(Struct, frozen=True, kw_only=True):
    """What `serve` gives a worker to start with."""

    place: Place
    owner: str


def main() -> None:
    """Work for the service that has started this process: until it closes the pipe, as it does when it is killed."""
    start = msgspec.json.decode(sys.stdin.buffer.readline(), type=WorkerStart)
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.buffer.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    log_json()
    try:
        work(start.place, start.owner, ended)
    except RagContractError as error:
        log.error("the worker cannot work: %s", "; ".join(error.problems))  # noqa: TRY400 (no traceback)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
