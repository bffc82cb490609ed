"""When a call may be sent: after the pause that a server asks for or a guess, and at the rate that the user allows.

Servers write ``Retry-After`` as seconds or as a date (RFC 9110, section 10.2.3). Some write durations such as
``1m30s``, times as in ISO 8601, or milliseconds in ``retry-after-ms``. Without it, the headers of rate limits show when
these are over. There is one for each thing that is counted: ``x-ratelimit-reset-tokens`` beside
``x-ratelimit-remaining-tokens``.
"""

import math
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime

from msgspec import Struct

from ragcontract.core import bounds

JITTER = random.Random()  # noqa: S311 (not a secret; a separate instance leaves the global random state unchanged)
EPOCH = 1_000_000_000  # in seconds, the year 2001. Larger numbers are times, smaller ones are seconds from now.
EPOCH_MS = 1_000 * EPOCH
UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
# Compiled on first use, since most calls need no pause.
_PART = r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)"
_RESET = r"(?:[a-z]+-)*ratelimit-(?:[a-z-]+-)?reset(?:-[a-z-]+)?"


def backoff(
    attempt: int, *, first: float = bounds.FIRST_PAUSE, longest: float = math.inf, chance: random.Random = JITTER
) -> float:
    """Return the seconds to wait after a failed attempt, counted from 1, if no server asks for a pause.

    It is at most ``first`` seconds, doubled with each further attempt up to ``longest``, and at least half of that. It
    is random, so that callers that failed together do not come back together.
    """
    most = min(first * 2.0 ** (attempt - 1), longest)  # there are few tries
    return most * chance.uniform(0.5, 1.0)


def asked_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Return the pause that a server asks for, in seconds; None if its answer asks for none.

    ``headers`` have names in lower case, or ignore case; ``now`` is the time in seconds since 1970. Of several pauses,
    the longest counts. If the answer shows which limits are used up, only theirs count.
    """
    milliseconds = number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    pause = seconds_in(headers.get("retry-after"), now)
    if pause is not None:
        return pause
    names = [name for name in map(str.lower, headers) if re.fullmatch(_RESET, name)]
    resets = {name: pause for name in names if (pause := seconds_in(headers.get(name), now)) is not None}
    used_up = [pause for name, pause in resets.items() if headers.get(name.replace("reset", "remaining")) == "0"]
    return max(used_up or resets.values(), default=None)


def seconds_in(text: str | None, now: float) -> float | None:
    """Return the seconds from now that a text stands for; None if it has another form, or stands for the past."""
    text = (text or "").strip()
    seconds = number(text)
    if seconds is not None:
        if seconds >= EPOCH:
            seconds = (seconds / 1_000 if seconds >= EPOCH_MS else seconds) - now
    elif re.fullmatch(f"(?:{_PART})+", text):
        seconds = sum(float(amount) * UNITS[unit] for amount, unit in re.findall(_PART, text))
    else:
        seconds = _time(text, now)
    return seconds if seconds is not None and 0 <= seconds < math.inf else None


def number(text: str | None) -> float | None:
    """Return the number in a text; None if the text is not a number, or if that is negative or not finite."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None


def _time(text: str, now: float) -> float | None:
    """Return the seconds until a date of HTTP or ISO 8601. A date without a zone is UTC."""
    from email.utils import parsedate_to_datetime  # 20 modules, and few servers name a date

    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            date = read(text)
            return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


class Timing(Struct, frozen=True, kw_only=True):
    """Clocks in seconds and a sleep function, which tests replace to avoid waiting."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


FIRST_BACKOFF = 0.5  # s; the time that a server gets to recover from a first failure


class RateLimiter:
    """Allows ``rate`` calls per second, evenly spaced, or any number for None.

    Times are seconds of a clock that never goes back, such as ``time.monotonic``.
    """

    def __init__(self, rate: float | None = None) -> None:
        self._gap = 1 / rate if rate else 0.0
        self.next = 0.0

    def started(self, now: float) -> None:
        """Note a call. The next one may start a gap after this one, or after this one was due if it is hardly late."""
        if self._gap:
            was_due = now - self.next < self._gap
            self.next = (self.next if was_due else now) + self._gap

    def pause(self, seconds: float, now: float) -> None:
        self.next = max(self.next, now + min(max(seconds, 0.0), bounds.ASKED_PAUSE))


TICK = 0.02  # s; how soon a free place is taken
PATIENCE = 4  # so many times the calls at a time must succeed before one more is allowed


class Throttle:
    """Limits how many calls are under way at a time. Threads share it."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.limit = most  # calls at a time
        self._most = most
        self._clock = clock  # in seconds
        self._under_way = self._succeeded = 0
        self._halved = -1.0
        self._pauses = RateLimiter()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, wait: Callable[[float], None]) -> Iterator[float]:
        """Wait for a place, and hold it; yield the time when it was taken. ``wait`` gets seconds, and may raise."""
        while (seconds := self._seconds()) > 0:
            wait(seconds)
        started = self._clock()
        try:
            yield started
        finally:
            with self._lock:
                self._under_way -= 1

    def succeeded(self) -> None:
        """Note a call that was answered. After enough of them, one more is allowed at a time."""
        with self._lock:
            self._succeeded += 1
            if self._succeeded >= PATIENCE * self.limit and self.limit < self._most:
                self.limit += 1
                self._succeeded = 0

    def too_many(self, started: float) -> None:
        """Halve the limit. Calls that were under way together halve it only once."""
        with self._lock:
            if started > self._halved:
                self.limit = max(1, self.limit // 2)
                self._halved = self._clock()
            self._succeeded = 0

    def pause(self, seconds: float) -> None:
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
