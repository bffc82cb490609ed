"""Clocks and waiting, which tests replace.

Stops many calls on Ctrl-C: once lets those under way end, twice ends at once.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from msgspec import Struct


class Timing(Struct, frozen=True, kw_only=True):
    """Clocks in seconds and a sleep function, which tests replace to avoid waiting."""

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


STOPPING = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """Whether somebody asked to stop, and who waits to hear of it."""

    def __init__(self) -> None:
        """Start with nobody asking."""
        self.asked = False
        self._wake: Callable[[], object] = lambda: None

    def on_asking(self, wake: Callable[[], object]) -> None:
        """Call a function that a signal handler may call when somebody asks."""
        self._wake = wake

    def ask(self) -> None:
        """Ask to stop; the second time raises KeyboardInterrupt."""
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._wake()


@contextmanager
def by_signals(stop: Stop) -> Iterator[None]:
    """Ask to stop on SIGINT and SIGTERM; those that are ignored, as in a shell's background job, still are.

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
