"""What has happened so far in a recording, in numbers."""

from collections import Counter, deque

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.record.watching.recording_events import Case, End, Event, Failure, Progress, Retry
from ragcontract.statistics.latency import nearest_rank


class Failed(Struct, frozen=True, kw_only=True):
    """A question without an answer."""

    query_id: str
    repeat: int
    failure: Failure


class Counts:
    """Counts events; times are seconds of a clock that never goes back."""

    def __init__(self, *, total: int, kept: int, now: float) -> None:
        """Start with what a journal has."""
        self.done = self.kept = kept
        self.total = total
        self.retried = 0
        self.unanswered = 0  # questions of which the run has results, and an error in place of the answer
        self.without_results = 0  # rows whose golden query names documents
        self.again = 0  # questions that needed more than one attempt
        self.failures: Counter[str] = Counter()
        self.failed: list[Failed] = []  # the first few
        self.examples: dict[str, Failed] = {}
        self.in_a_row = 0
        self._started = now
        self.recent: deque[float] = deque(maxlen=bounds.RECENT)

    def restart(self, now: float) -> None:
        """Count the time from now on."""
        self._started = now

    def count(self, event: Event) -> None:
        """Count a question that is done, or an attempt that is made again."""
        if isinstance(event, Retry):
            self.retried += event.repeat > 0
        elif isinstance(event, Case):
            self.done += 1
            self.again += event.attempts > 1
            if event.failure is None:
                self.in_a_row = 0
                self.unanswered += event.response is not None and event.response.error is not None
                self.recent.append(event.ms)
            else:
                self._fail(Failed(query_id=event.query_id, repeat=event.repeat, failure=event.failure))

    def _fail(self, one: Failed) -> None:
        self.in_a_row += 1
        self.failures[one.failure.kind] += 1
        self.examples.setdefault(one.failure.kind, one)
        if len(self.failed) < bounds.DETAILED_FAILURES:
            self.failed.append(one)

    def progress(self, now: float) -> Progress:
        """Return how far the recording is."""
        asked = self.done - self.kept
        rate = asked / max(now - self._started, 1e-9)
        slowest = sorted(self.recent)
        return Progress(
            done=self.done,
            total=self.total,
            retried=self.retried,
            failed=self.failures.total(),
            rate=rate,
            p95_ms=nearest_rank(slowest, 95) if slowest else None,
            seconds_left=(self.total - self.done) / rate if asked else None,
        )

    def end(self, *, written: bool) -> End:
        """Return how the recording ended."""
        return End(
            done=self.done,
            failed=self.failures.total(),
            retried=self.retried,
            written=written,
            failures=dict(self.failures),
        )
