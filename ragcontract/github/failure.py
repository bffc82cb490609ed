"""How a conversation with GitHub fails, and how long it may take. Needs no requests, unlike the conversation."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct


class GitHubError(Exception):
    """A call that did not work; ``status`` is None where no answer came.

    ``maybe_done`` says that GitHub may have carried the call out although no answer said so.
    """

    def __init__(self, message: str, *, status: int | None = None, maybe_done: bool = False) -> None:
        """Keep the facts beside the message, which never holds the token."""
        super().__init__(message)
        self.status = status
        self.maybe_done = maybe_done


class Timing(Struct, frozen=True, kw_only=True):
    """Clocks in seconds, and the means to wait: handed in, so that tests wait for nothing."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End whatever goes on inside after so many seconds with a :class:`GitHubError`; main thread only.

    Socket timeouts count from one byte to the next, so an answer that drips could otherwise go on for ever.
    """

    def expire(*_: object) -> None:
        raise GitHubError(f"GitHub did not answer within the {seconds:g} seconds of github-timeout")

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
