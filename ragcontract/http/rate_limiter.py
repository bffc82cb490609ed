"""When the next call may start: the rate that the user allows, and the pauses that the server asks for."""

from ragcontract.core import bounds

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
