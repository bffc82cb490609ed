"""Attempts within a time limit: each in a thread, which is abandoned if it takes longer."""

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from time import monotonic, perf_counter

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.record.interface import CallFailed, Context, Response, System

GRACE = 0.5  # s; a system that watches its own time says more about why it took too long


class Ended(Struct, frozen=True, kw_only=True):
    """An attempt that is over: the response, or what was raised. ``token`` is that of its start."""

    token: int
    ms: float
    response: Response | None = None
    error: BaseException | None = None


class _Job(Struct, frozen=True, kw_only=True):
    token: int
    query: str
    context: Context


class _Worker:
    """A thread that makes one attempt after another. Threads are kept, because systems keep connections in them."""

    def __init__(self, system: System, ended_attempts: "SimpleQueue[Ended | None]", number: int) -> None:
        self.inbox: SimpleQueue[_Job | None] = SimpleQueue()
        self.due = 0.0
        self.abandoned = False
        self._system = system
        self._ended = ended_attempts
        self.thread = threading.Thread(target=self._work, name=f"asking-{number}", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        """Let the thread end after what it does, of which nothing is wanted any more."""
        self.abandoned = True
        self.inbox.put(None)

    def _work(self) -> None:
        while not self.abandoned and (job := self.inbox.get()) is not None:
            ended = _made(self._system, job)
            if not self.abandoned:
                self._ended.put(ended)


def _made(system: System, job: _Job) -> Ended:
    started = perf_counter()
    response, raised = None, None
    try:
        response = system.ask(job.query, job.context)
    except BaseException as error:  # noqa: BLE001 (whatever users' code raises, the recording goes on)
        raised = error
    ms = (perf_counter() - started) * 1000
    if response is not None and ms > job.context.seconds * 1000:
        response, raised = None, too_long(job.context.seconds)
    if isinstance(response, Response) and response.latency_ms is not None:
        own = response.latency_ms
        if isinstance(own, int | float) and 0 <= own <= bounds.MILLISECONDS:
            ms = float(own)
        else:
            why = f"latency_ms: expected milliseconds, found {shorten(repr(own), bounds.RETURNED_SHOWN)}"
            response, raised = None, CallFailed("invalid", why)
    return Ended(token=job.token, ms=ms, response=response, error=raised)


def too_long(seconds: float) -> CallFailed:
    """Return the failure of an attempt that was given up."""
    return CallFailed("timeout", f"no answer within {seconds:g} s; --timeout allows more")


class Pool:
    """At most ``size`` attempts at a time; what ends is put into a queue. Only one thread may use a pool."""

    def __init__(
        self, system: System, *, size: int, seconds: float, ended_attempts: "SimpleQueue[Ended | None]"
    ) -> None:
        """Prepare; threads are started when they are needed."""
        self._system = system
        self._size = size
        self._seconds = seconds
        self._ended_attempts = ended_attempts
        self._idle: list[_Worker] = []
        self._busy: dict[int, _Worker] = {}
        self._abandoned: list[_Worker] = []
        self._started = self._token = 0

    @property
    def has_room(self) -> bool:
        """Whether another attempt may start; threads that were abandoned and still run count against the system."""
        return len(self._busy) < self._size and not self.is_stuck

    @property
    def busy(self) -> int:
        """How many attempts are under way."""
        return len(self._busy)

    @property
    def is_stuck(self) -> bool:
        """Whether as many abandoned threads still run as there may be attempts."""
        if self._abandoned:
            self._abandoned = [worker for worker in self._abandoned if worker.thread.is_alive()]
        return len(self._abandoned) >= self._size

    @property
    def due(self) -> float:
        """When the next attempt is given up, by ``time.monotonic``; infinite if none is under way."""
        return min((worker.due for worker in self._busy.values()), default=float("inf"))

    def start(self, query: str, context: Context) -> int:
        """Begin an attempt, for which there must be room, and return a number that stands for it."""
        if self._idle:
            worker = self._idle.pop()
        else:
            self._started += 1
            worker = _Worker(self._system, self._ended_attempts, self._started)
        worker.due = monotonic() + self._seconds + GRACE
        self._token += 1
        self._busy[self._token] = worker
        worker.inbox.put(_Job(token=self._token, query=query, context=context))
        return self._token

    def took(self, ended: Ended) -> bool:
        """Note that an attempt ended; returns False if it was given up before."""
        worker = self._busy.pop(ended.token, None)
        if worker is not None:
            self._idle.append(worker)
        return worker is not None

    def overdue(self, now: float) -> Iterator[Ended]:
        """Give up the attempts that have taken too long, and yield how they ended."""
        for token in [token for token, worker in self._busy.items() if worker.due <= now]:
            worker = self._busy.pop(token)
            worker.leave()
            self._abandoned.append(worker)
            yield Ended(token=token, ms=self._seconds * 1000, error=too_long(self._seconds))

    def close(self) -> None:
        """Let the threads that wait end; those under way are left alone."""
        for worker in (*self._idle, *self._busy.values()):
            worker.leave()
