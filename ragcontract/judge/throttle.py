"""How many calls an endpoint gets at the same time: fewer once it says that these are too many."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ragcontract.http.rate_limiter import RateLimiter

TICK = 0.02  # s; how soon a place that is free again is taken
PATIENCE = 4  # times the calls at a time; so many must succeed before one more is allowed


class Throttle:
    """Lets only so many calls be under way; threads share it. Times are those of ``clock``, in seconds."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        """Allow ``most`` calls at a time, until somebody says otherwise."""
        self.limit = most
        self._most = most
        self._clock = clock
        self._under_way = self._succeeded = 0
        self._halved = -1.0
        self._pauses = RateLimiter()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, wait: Callable[[float], None]) -> Iterator[float]:
        """Wait for a place, and hold it; yields when that was. ``wait`` is called with seconds, and may raise."""
        while (seconds := self._seconds()) > 0:
            wait(seconds)
        started = self._clock()
        try:
            yield started
        finally:
            with self._lock:
                self._under_way -= 1

    def succeeded(self) -> None:
        """Note a call that was answered; after enough of them, one more is allowed at a time."""
        with self._lock:
            self._succeeded += 1
            if self._succeeded >= PATIENCE * self.limit and self.limit < self._most:
                self.limit += 1
                self._succeeded = 0

    def too_many(self, started: float) -> None:
        """Halve the calls at a time; those that were under way together halve it once."""
        with self._lock:
            if started > self._halved:
                self.limit = max(1, self.limit // 2)
                self._halved = self._clock()
            self._succeeded = 0

    def pause(self, seconds: float) -> None:
        """Let nobody begin a call for a time that the server asks for."""
        with self._lock:
            self._pauses.pause(seconds, self._clock())

    def _seconds(self) -> float:
        """Take a place and return 0, or return how long to wait before looking again."""
        with self._lock:
            left = self._pauses.next - self._clock()
            if left > 0:
                return left
            if self._under_way >= self.limit:
                return TICK
            self._under_way += 1
            return 0.0
