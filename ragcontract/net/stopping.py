"""Stops many calls on Ctrl-C, and the clocks for waiting, which tests replace.

After the first Ctrl-C, calls that are under way may end. A second one ends them at once.
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
