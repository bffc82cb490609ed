"""Shows how far a recording is: a bar on a terminal, now and then a line in a pipe."""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

import click

from ragcontract.files.streams import Unfailing
from ragcontract.record.watching.recording_events import End, Event, Progress, Start

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

MINUTE, HOUR = 60, 3_600  # s


def progress_shown(
    every: float, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> "Bar | Lines | None":
    """Return what shows progress on a stream, standard error by default: a bar if it is a terminal, else lines.

    A line is written at most each ``every`` seconds; with 0, nothing is shown at all. ``clock`` counts seconds.
    """
    stream = stream or sys.stderr
    if every <= 0 or stream is None:
        return None
    return Bar(stream) if stream.isatty() else Lines(stream, every, clock)


class Lines:
    """Writes a line now and then, as ``412/1000 asked, 3 retried, 0 failed, 8.1/s, p95 210 ms, about 1 min left``."""

    def __init__(self, stream: TextIO, every: float, clock: Callable[[], float]) -> None:
        """Store where lines are written; nothing is written for the first ``every`` seconds."""
        self._stream = Unfailing(stream)
        self._every = every
        self._clock = clock
        self._next = clock() + every

    def __call__(self, event: Event) -> None:
        """Write a line if it is time."""
        if isinstance(event, Progress) and self._clock() >= self._next:
            self._next = self._clock() + self._every
            self._stream.write(line_of(event) + "\n")

    def close(self) -> None:
        """Do nothing: every line is complete."""


class Bar:
    """A bar on a terminal, with the same figures beside it."""

    def __init__(self, stream: TextIO) -> None:
        """Store the terminal."""
        self._stream = stream
        self._bar: ProgressBar[Any] | None = None

    def __call__(self, event: Event) -> None:
        """Draw the bar with the new figures."""
        if isinstance(event, Start) and event.total:
            bar = click.progressbar(
                length=event.total,
                label="asking",
                file=self._stream,
                show_eta=False,
                show_pos=True,
                item_show_func=_beside,
                width=0,  # as wide as what stands beside it leaves room for
            )
            self._bar = bar.__enter__()
        elif isinstance(event, Progress) and self._bar is not None:
            self._bar.update(event.done - self._bar.pos, event)
        elif isinstance(event, End):
            self.close()

    def close(self) -> None:
        """End the bar's line, also after a failure."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None


def line_of(progress: Progress) -> str:
    """Return how far a recording is as a sentence."""
    parts = [f"{progress.done}/{progress.total} asked", f"{progress.retried} retried", f"{progress.failed} failed"]
    parts.append(f"{progress.rate:.1f}/s")
    if progress.p95_ms is not None:
        parts.append(f"p95 {progress.p95_ms:,.0f} ms")
    return ", ".join([*parts, *_left(progress)])


def _beside(progress: Progress | None) -> str | None:
    """Return what stands beside a bar, which needs most of the line."""
    if progress is None:
        return None
    counts = {"retried": progress.retried, "failed": progress.failed}
    notable = [f"{count} {what}" for what, count in counts.items() if count]
    return ", ".join([*notable, f"{progress.rate:.1f}/s", *_left(progress)])


def _left(progress: Progress) -> list[str]:
    return [] if progress.seconds_left is None else [f"about {duration(progress.seconds_left)} left"]


def duration(seconds: float) -> str:
    """Return a time in the unit that a person would name: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE:.0f} min" if seconds < 2 * HOUR else f"{seconds / HOUR:.1f} h"
