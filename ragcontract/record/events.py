"""What happens while a system is recorded, for those who watch: a progress bar, a stream of events, the details.

What has happened so far in a recording, in numbers.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.record.interface import Response
from ragcontract.statistics.means import nearest_rank


class Start(Struct, frozen=True, kw_only=True, tag="start", tag_field="event"):
    """Recording begins: ``total`` answers are wanted, of which a journal has ``kept``."""

    target: str
    total: int
    kept: int


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt failed: a word, a message, and what else is known. Nothing in it is a secret."""

    kind: str
    message: str
    detail: Mapping[str, Any] | None = None


class Case(Struct, frozen=True, kw_only=True, tag="case", tag_field="event"):
    """A question is done: it has a response, or the failure of its last attempt. ``ms`` is what that attempt took."""

    query_id: str
    repeat: int
    attempts: int
    ms: float
    response: Response | None = None
    failure: Failure | None = None

    @property
    def ok(self) -> bool:
        """Whether the system responded."""
        return self.response is not None


class Retry(Struct, frozen=True, kw_only=True, tag="retry", tag_field="event"):
    """An attempt failed and another one follows after ``pause`` seconds."""

    query_id: str
    repeat: int
    attempt: int
    pause: float
    failure: Failure


class Progress(Struct, frozen=True, kw_only=True, tag="progress", tag_field="event"):
    """How far recording is: ``rate`` in questions a second, ``p95_ms`` of those done, ``seconds_left`` if known."""

    done: int
    total: int
    retried: int
    failed: int
    rate: float
    p95_ms: float | None
    seconds_left: float | None


class End(Struct, frozen=True, kw_only=True, tag="end", tag_field="event"):
    """Recording is over; ``failures`` counts by kind. ``written`` says whether there is a run now."""

    done: int
    failed: int
    retried: int
    written: bool
    failures: Mapping[str, int]


Event = Start | Case | Retry | Progress | End
Watch = Callable[[Event], None]


def to_all(watching: Sequence[Watch]) -> Watch:
    """Return a function that hands an event to everyone who watches."""

    def hand(event: Event) -> None:
        for watch in watching:
            watch(event)

    return hand


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
