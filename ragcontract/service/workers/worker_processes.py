"""The workers that `serve` starts: processes that are watched, and started again when one dies."""

import logging
import subprocess
import sys
import threading
from collections.abc import Callable

import msgspec
from msgspec import Struct
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ragcontract.core import bounds
from ragcontract.service.database import BusyError, Database, seconds
from ragcontract.service.workers.run_queue import give_back, time_of
from ragcontract.service.workers.worker import Place, WorkerStart, new_owner

log = logging.getLogger(__name__)
LOOK = 0.5  # s; how often the processes are looked at
LEAST_LIFE = 5  # s; a worker that died sooner than this is started again only then
TO_END = bounds.RUN_GRACE + 3  # s; those that a worker has to give its run back


class _Process(Struct, frozen=True, kw_only=True):
    owner: str
    process: "subprocess.Popen[bytes]"
    started: float


class WorkerProcesses:
    """The thread that watches workers."""

    def __init__(
        self, database: Database, place: Place, number: int, failed: Callable[[], None] = lambda: None
    ) -> None:
        """``failed`` counts workers that died."""
        self._database, self._place, self._number, self._failed = database, place, number, failed
        self._ended = threading.Event()
        self._running: list[_Process] = []
        self._thread = threading.Thread(target=self._run, name="workers", daemon=True)

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that live."""
        return [each.process.pid for each in self._running if each.process.returncode is None]

    def start(self) -> None:
        """Start the thread, which starts the workers."""
        self._thread.start()

    def close(self) -> None:
        """End the workers, which give back the runs that they hold."""
        self._ended.set()
        self._thread.join()
        for each in self._running:
            if each.process.stdin is not None:
                each.process.stdin.close()
        until = seconds() + TO_END
        for each in self._running:
            try:
                each.process.wait(max(0, until - seconds()))
            except subprocess.TimeoutExpired:
                each.process.kill()
                each.process.wait()
                self._tried_to_give_back(each, died=False)

    def _run(self) -> None:
        waiting = [0.0] * self._number  # when each that is missing is to be started
        while True:
            now = seconds()
            waiting += [self._buried(each) for each in self._running if each.process.poll() is not None]
            self._running = [each for each in self._running if each.process.returncode is None]
            due = sum(when <= now for when in waiting)
            waiting = [when for when in waiting if when > now]
            try:
                while due:
                    self._running.append(self._started())
                    due -= 1
            except OSError as error:  # such as no memory for another process
                self._failed()
                log.error("no worker can be started, which is tried again: %s", error.strerror)  # noqa: TRY400
                waiting += [now + LEAST_LIFE] * due
            if self._ended.wait(LOOK):
                return

    def _started(self) -> _Process:
        owner = new_owner()
        process = subprocess.Popen(
            [sys.executable, "-m", "ragcontract.service.workers.worker"], stdin=subprocess.PIPE, start_new_session=True
        )
        if process.stdin is not None:
            try:
                # Not in its arguments, which all users of the machine see: the address may have a password.
                process.stdin.write(msgspec.json.encode(WorkerStart(place=self._place, owner=owner)) + b"\n")
                process.stdin.flush()
            except OSError:
                log.warning("a worker ended at once")
        return _Process(owner=owner, process=process, started=seconds())

    def _buried(self, dead: _Process) -> float:
        """Give back what a dead worker held; return when another one may start."""
        self._failed()
        log.error("a worker died: exit code %s; another one starts", dead.process.returncode)
        if dead.process.stdin is not None:
            try:
                dead.process.stdin.close()
            except OSError:
                log.debug("its pipe is closed already")
        self._tried_to_give_back(dead, died=True)
        return dead.started + LEAST_LIFE

    def _tried_to_give_back(self, of: _Process, *, died: bool) -> None:
        def job(connection: Connection) -> int:
            return give_back(connection, of.owner, time_of(connection), died=died)

        try:
            self._database.write(job)
        except (BusyError, SQLAlchemyError) as error:
            log.warning("its run is free when its lease has ended: %s", type(error).__name__)
