"""Makes many things, several at a time, within a time limit each, at a rate, until somebody asks to stop.

Each is made in a thread, which is abandoned if it takes too long. Everything else is called from one thread. Something
may take several turns, such as further attempts after a pause.

After the first Ctrl-C, what is under way may end. A second one ends it at once.
"""

import heapq
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import Generic, TypeVar

from msgspec import Struct

from ragcontract.core import bounds, numbers
from ragcontract.core.errors import InputError
from ragcontract.net.pacing import RateLimiter

STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether somebody asked to stop, and the function that wakes up whoever waits."""

    def __init__(self) -> None:
        self.asked = False
        self._wake: Callable[[], object] = lambda: None

    def on_asking(self, wake: Callable[[], object]) -> None:
        """Set the function to call when somebody asks; it must be safe in a signal handler."""
        self._wake = wake

    def ask(self) -> None:
        """Ask to stop; the second time raises KeyboardInterrupt."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._wake()


@contextmanager
def by_signals(stop: Stop) -> Iterator[None]:
    """Ask to stop on SIGINT and SIGTERM, except on those that are ignored, as in a shell's background job.

    Python lets only the main thread handle signals; in others, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.ask()

    before = {number: signal.getsignal(number) for number in STOPPING}
    changed = [number for number, handler in before.items() if handler not in {signal.SIG_IGN, None}]
    for number in changed:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, before[number])


TICK = 1.0  # s; the longest time between two calls of `tick`
STUCK_TICK = 0.05  # s; how often abandoned threads are checked while they keep others from starting
GRACE = 0.5  # s; who watches their own time say more about why it took too long
Job = TypeVar("Job")
Made = TypeVar("Made")


class Ended(Struct, Generic[Made], frozen=True, kw_only=True):
    """A turn that is over, with what was made or the exception."""

    made: Made | None = None
    error: BaseException | None = None
    is_given_up: bool = False  # because it took too long


class _Worker(Generic[Job, Made]):
    """A thread that takes one turn after another. It is kept, because systems keep connections for each thread."""

    def __init__(
        self, make: Callable[[Job], Made], results: "SimpleQueue[tuple[_Worker[Job, Made], Ended[Made]] | None]"
    ) -> None:
        self.inbox: SimpleQueue[tuple[Job] | None] = SimpleQueue()
        self.due = math.inf
        self._abandoned = False
        self._make = make
        self._results = results
        self.thread = threading.Thread(target=self._work, name="asking", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        """Let the thread end after its turn, whose result is dropped."""
        self._abandoned = True
        self.inbox.put(None)

    def _work(self) -> None:
        while not self._abandoned and (job := self.inbox.get()) is not None:
            ended = self._turn(*job)
            if not self._abandoned:
                self._results.put((self, ended))

    def _turn(self, job: Job) -> Ended[Made]:
        try:
            return Ended(made=self._make(job))
        except BaseException as error:  # noqa: BLE001 (another thread decides)
            return Ended(error=error)


class Pool(Generic[Job, Made]):
    """Makes at most ``size`` things at a time. Only one thread may use it; close it at the end."""

    def __init__(
        self,
        make: Callable[[Job], Made],
        *,
        size: int,
        stop: Stop,
        seconds: float = math.inf,
        rate: float | None = None,
        tick: Callable[[], object] = lambda: None,
        when_stuck: str = "",
    ) -> None:
        """Prepare to make things; ``seconds`` limits one turn, ``rate`` the turns a second.

        ``tick`` is called at least once a second. ``when_stuck`` says what to do if threads cannot be stopped.
        """
        self.limiter = RateLimiter(rate)
        self._make = make
        self._size = size
        self._seconds = seconds
        self._stop = stop
        self._tick = tick
        self._when_stuck = when_stuck
        self._results: SimpleQueue[tuple[_Worker[Job, Made], Ended[Made]] | None] = SimpleQueue()
        self._idle: list[_Worker[Job, Made]] = []
        self._busy: dict[_Worker[Job, Made], Job] = {}
        self._abandoned: list[_Worker[Job, Made]] = []
        self._waiting: list[tuple[float, int, Job]] = []  # for their next turn
        self._order = count()
        self._is_all = False  # nothing else is to come
        self._stuck_since: float | None = None
        self._fatal: BaseException | None = None
        self._end_by: float | None = None
        stop.on_asking(lambda: self._results.put(None))

    @property
    def is_ending(self) -> bool:
        """Whether nothing more is started."""
        return self._stop.asked or self._fatal is not None

    def run(self, jobs: Iterator[Job], settle: Callable[[Job, Ended[Made]], float | None]) -> None:
        """Make things until all are done, or until somebody asks to stop.

        ``settle`` gets each job after its turn, and returns the time from which on it has another turn; None if it is
        done. What ``settle`` raises is raised after the turns under way, which have a moment to end, as they have if
        somebody asks to stop. Raises InputError if threads that cannot be stopped are in the way.
        """
        self._is_all = False
        while True:
            now = monotonic()
            if self.is_ending:
                self._wind_up(now)
            else:
                self._start(jobs, now)
            if self._is_all and not self._busy and not self._waiting:
                break
            for job, ended in self._wait(now):
                self._settle(job, ended, settle)
            self._tick()
        if self._fatal:
            raise self._fatal

    def close(self) -> None:
        """Let the idle threads end now, and the others after their turns."""
        for worker in (*self._idle, *self._busy):
            worker.leave()

    def _start(self, jobs: Iterator[Job], now: float) -> None:
        """Start what may start. What waits keeps its place, so a failing system is asked more slowly."""
        while self._has_room and self.limiter.next <= now:
            if self._waiting and self._waiting[0][0] <= now:
                job = heapq.heappop(self._waiting)[2]
            elif len(self._waiting) + len(self._busy) >= self._size:
                return
            elif (following := next(jobs, None)) is not None:
                job = following
            else:
                self._is_all = True
                return
            worker = self._idle.pop() if self._idle else _Worker(self._make, self._results)
            worker.due = monotonic() + self._seconds + GRACE
            self._busy[worker] = job
            worker.inbox.put((job,))
            self.limiter.started(now)
        self._mind_stuck(now)

    @property
    def _has_room(self) -> bool:
        return len(self._busy) < self._size and not self._is_stuck

    @property
    def _is_stuck(self) -> bool:
        """Whether as many abandoned threads still run as there may be turns."""
        if self._abandoned:
            self._abandoned = [worker for worker in self._abandoned if worker.thread.is_alive()]
        return len(self._abandoned) >= self._size

    def _mind_stuck(self, now: float) -> None:
        """Give up if abandoned threads keep others from starting for as long as one turn may take."""
        if not self._is_stuck:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= self._seconds:
            many = f"{numbers.count(self._size, 'call')} still running after more than {self._seconds:g} s"
            self._fatal = InputError([f"{many} cannot be stopped; {self._when_stuck}"])

    def _wind_up(self, now: float) -> None:
        """Start nothing more, and abandon what is under way after a while."""
        self._waiting.clear()
        self._is_all = True
        self._end_by = self._end_by or now + bounds.WIND_UP
        if now >= self._end_by:
            for worker in self._busy:
                worker.leave()
            self._busy.clear()

    def _wait(self, now: float) -> Iterator[tuple[Job, Ended[Made]]]:
        """Wait until a turn has ended or something is due, and yield the jobs whose turn has ended."""
        until = min([worker.due for worker in self._busy] + [self._end_by or now + TICK, now + TICK])
        if self._stuck_since is not None:
            until = min(until, now + STUCK_TICK)
        elif self._has_room and self._waiting:
            until = min(until, max(self._waiting[0][0], self.limiter.next))
        elif self._has_room and not self._is_all and self.limiter.next > now:
            until = min(until, self.limiter.next)
        with suppress(Empty):
            result = self._results.get(timeout=max(until - now, 0))
            while True:
                if result is not None and result[0] in self._busy:  # not given up before
                    worker, ended = result
                    self._idle.append(worker)
                    yield self._busy.pop(worker), ended
                result = self._results.get_nowait()
        for worker in [worker for worker in self._busy if worker.due <= monotonic()]:
            worker.leave()
            self._abandoned.append(worker)
            yield self._busy.pop(worker), Ended(is_given_up=True)

    def _settle(self, job: Job, ended: Ended[Made], settle: Callable[[Job, Ended[Made]], float | None]) -> None:
        try:
            due = settle(job, ended)
        except Exception as error:  # noqa: BLE001 (raised again when those under way have ended)
            self._fatal = self._fatal or error
        else:
            if due is not None:
                heapq.heappush(self._waiting, (due, next(self._order), job))
