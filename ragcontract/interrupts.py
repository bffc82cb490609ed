"""Signals that ask a process to stop, and the exit code of a process that they stopped."""

import signal
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130  # 128 + SIGINT, as in shells


def raise_on_signals() -> None:
    """Raise KeyboardInterrupt on the signals, except on those that are ignored, as in a shell's background job.

    As process 1 of a container, a process has no default handlers.
    """
    for number in STOPPING:
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, _raise_once)


def _raise_once(_signal: int, _frame: FrameType | None) -> None:
    """Stop as on Ctrl-C, so that temporary files are removed; a second signal must not interrupt that."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt
