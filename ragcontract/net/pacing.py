"""How long to wait before a call is sent again: what a server asks for, in every form that is in use, or a guess.

Servers write ``Retry-After`` as seconds or as a date (RFC 9110, section 10.2.3); some write durations such as
``1m30s``, times as in ISO 8601, or milliseconds in ``retry-after-ms``. Without it, the headers of a rate limit say when
it is over, one for each thing that is counted: ``x-ratelimit-reset-tokens`` beside ``x-ratelimit-remaining-tokens``.

When the next call may start: the rate that the user allows, and the pauses that the server asks for.
"""

import math
import random
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ragcontract.core import bounds

JITTER = random.Random()  # noqa: S311 (not a secret; a separate instance leaves the global random state unchanged)
EPOCH = 1_000_000_000  # in seconds, the year 2001: larger numbers are times, smaller ones are seconds from now
EPOCH_MS = 1_000 * EPOCH
UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
# Compiled on first use, since most calls need no pause.
_PART = r"(\d+(?:\.\d+)?)(ms|us|µs|ns|d|h|m|s)"
_RESET = r"(?:[a-z]+-)*ratelimit-(?:[a-z-]+-)?reset(?:-[a-z-]+)?"


def backoff(
    attempt: int, *, first: float = bounds.FIRST_PAUSE, longest: float = math.inf, chance: random.Random = JITTER
) -> float:
    """Return the seconds to wait after a failed attempt, which is counted from 1, where no server asks for a pause.

    The time is random, so that those who failed together do not come back together: at most ``first`` seconds, doubled
    with each further attempt up to ``longest``, and at least half of that.
    """
    most = min(first * 2.0 ** (attempt - 1), longest)  # there are few tries
    return most * chance.uniform(0.5, 1.0)


def asked_pause(headers: Mapping[str, str], now: float) -> float | None:
    """Return for how many seconds a server asks to be left alone; None if its answer does not say.

    ``headers`` have names in lower case, or in any case if looking them up ignores it; ``now`` is the time in seconds
    since 1970. The longest pause counts, of the limits that are used up if the answer says which ones these are.
    """
    milliseconds = number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    pause = seconds_in(headers.get("retry-after"), now)
    if pause is not None:
        return pause
    resets = dict(_resets(headers, now))
    used_up = [pause for name, pause in resets.items() if headers.get(name.replace("reset", "remaining")) == "0"]
    return max(used_up or resets.values(), default=None)


def _resets(headers: Mapping[str, str], now: float) -> Iterator[tuple[str, float]]:
    for name in map(str.lower, headers):
        if re.fullmatch(_RESET, name) and (pause := seconds_in(headers.get(name), now)) is not None:
            yield name, pause


def seconds_in(text: str | None, now: float) -> float | None:
    """Return the seconds from now that a text stands for; None if it is none of the forms, or says the past."""
    text = (text or "").strip()
    found = number(text)
    if found is not None:
        if found >= EPOCH:
            found = (found / 1_000 if found >= EPOCH_MS else found) - now
    elif re.fullmatch(f"(?:{_PART})+", text):
        found = sum(float(amount) * UNITS[unit] for amount, unit in re.findall(_PART, text))
    else:
        found = _time(text, now)
    return found if found is not None and 0 <= found < math.inf else None


def number(text: str | None) -> float | None:
    """Return the number that a text is; None if it is none, negative, or not finite."""
    try:
        found = float(text or "")
    except ValueError:
        return None
    return found if 0 <= found < math.inf else None


def _time(text: str, now: float) -> float | None:
    """Return the seconds until a date of HTTP or of ISO 8601; without a zone, it is UTC."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = read(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() - now
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


FIRST_BACKOFF = 0.5  # s; what a server gets to recover from a first failure


class RateLimiter:
    """Times are seconds of a clock that never goes back, such as ``time.monotonic``."""

    def __init__(self, rate: float | None = None) -> None:
        """Allow ``rate`` calls a second, evenly spaced; None for as many as there are."""
        self._gap = 1 / rate if rate else 0.0
        self.next = 0.0

    def started(self, now: float) -> None:
        """Note a call; the next one may start a gap later, counted from when this one was due if it is hardly late."""
        if self._gap:
            was_due = now - self.next < self._gap
            self.next = (self.next if was_due else now) + self._gap

    def pause(self, seconds: float, now: float) -> None:
        """Let no call start for some time, whoever makes it."""
        self.next = max(self.next, now + min(max(seconds, 0.0), bounds.ASKED_PAUSE))
