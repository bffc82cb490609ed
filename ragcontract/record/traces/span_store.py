"""Spans that arrive while calls are under way, kept for those who wait for them."""

import threading
from collections.abc import Callable, Iterable
from time import monotonic

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.record.interface import CallFailed
from ragcontract.record.traces.spans import Span


class Arrived(Struct, frozen=True, kw_only=True):
    """How many spans arrived: those of calls under way, and others."""

    expected: int
    others: int


class SpanStore:
    """Keeps the spans of the traces that somebody expects, and counts all others."""

    def __init__(self) -> None:
        """Start without any."""
        self._changed = threading.Condition()
        self._spans: dict[str, list[Span]] = {}
        self._expected = self._others = 0

    @property
    def arrived(self) -> Arrived:
        """How many have arrived."""
        return Arrived(expected=self._expected, others=self._others)

    def expect(self, trace: str) -> None:
        """Keep the spans of a trace from now on."""
        with self._changed:
            self._spans[trace] = []

    def forget(self, trace: str) -> None:
        """Drop the spans of a trace, and those that are still to come."""
        with self._changed:
            self._spans.pop(trace, None)

    def add(self, spans: Iterable[Span]) -> None:
        """Keep the spans that are expected; beyond the limit of a trace, one is kept to show that there were more."""
        with self._changed:
            for span in spans:
                kept = self._spans.get(span.trace)
                if kept is None:
                    self._others += 1
                else:
                    self._expected += 1
                    if len(kept) <= bounds.TRACE_SPANS:
                        kept.append(span)
            self._changed.notify_all()

    def wait(self, trace: str, seconds: float, enough: Callable[[list[Span]], bool]) -> list[Span]:
        """Return the spans of a trace once they are ``enough``, or those that have arrived in ``seconds``.

        Raises CallFailed if they are too many.
        """
        until = monotonic() + seconds
        seen = 0
        while True:
            with self._changed:
                while len(self._spans[trace]) == seen and (left := until - monotonic()) > 0:
                    self._changed.wait(left)
                spans = list(self._spans[trace])
            if len(spans) > bounds.TRACE_SPANS:
                raise CallFailed("too_large", f"the call made more than {bounds.TRACE_SPANS:,} spans")
            if len(spans) == seen or enough(spans):
                return spans
            seen = len(spans)
