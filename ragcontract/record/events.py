"""The events of a recording, for a progress bar, a stream of events and the details; and their counts so far."""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.record.interface import Response
from ragcontract.statistics.means import nearest_rank


class Start(Struct, frozen=True, kw_only=True, tag="start", tag_field="event"):
    """Recording begins."""

    target: str
    total: int  # how many answers are wanted
    kept: int  # how many of them the journal has


class Failure(Struct, frozen=True, kw_only=True):
    """Why an attempt failed, without secrets."""

    kind: str  # a word to count failures by
    message: str
    detail: Mapping[str, Any] | None = None


class QuestionDone(Struct, frozen=True, kw_only=True, tag="case", tag_field="event"):
    """A question is done: with a response, or with a failure."""

    query_id: str
    repeat: int
    attempts: int
    ms: float  # of the last attempt; of a conversation, the sum over its turns
    response: Response | None = None
    failure: Failure | None = None  # of the last attempt

    @property
    def ok(self) -> bool:
        return self.response is not None


class Retry(Struct, frozen=True, kw_only=True, tag="retry", tag_field="event"):
    """An attempt failed, and another one follows."""

    query_id: str
    repeat: int
    attempt: int
    pause: float  # seconds until the next attempt
    failure: Failure


class RecordingProgress(Struct, frozen=True, kw_only=True, tag="progress", tag_field="event"):
    """How far the recording is."""

    done: int
    total: int
    retried: int
    failed: int
    rate: float  # questions per second
    p95_ms: float | None  # of the latest questions that were answered
    seconds_left: float | None  # None if it is not known


class End(Struct, frozen=True, kw_only=True, tag="end", tag_field="event"):
    """Recording is over."""

    done: int
    failed: int
    retried: int
    written: bool  # whether there is a run now
    failures: Mapping[str, int]  # how many of each kind


Event = Start | QuestionDone | Retry | RecordingProgress | End
Watch = Callable[[Event], None]


class Failed(Struct, frozen=True, kw_only=True):
    """A question that failed."""

    query_id: str
    repeat: int
    failure: Failure


class Counts:
    """Counts events; times are seconds of a clock that never goes back."""

    def __init__(self, *, total: int, kept: int, now: float) -> None:
        self.done = self.kept = kept
        self.total = total
        self.retried = 0
        self.unanswered = 0  # questions whose row has an error in place of the answer
        self.without_results = 0  # rows without results, although the golden query names documents
        self.again = 0  # questions that needed more than one attempt
        self.failures: Counter[str] = Counter()
        self.failed: list[Failed] = []  # the first few
        self.questions: set[str] = set()  # the ids of those that failed, in any repeat
        self.examples: dict[str, Failed] = {}
        self.in_a_row = 0
        self._started = now
        self.recent: deque[float] = deque(maxlen=bounds.RECENT)

    def restart(self, now: float) -> None:
        self._started = now

    def count(self, event: Event) -> None:
        if isinstance(event, Retry):
            self.retried += event.repeat > 0
        elif isinstance(event, QuestionDone):
            self.done += 1
            self.again += event.attempts > 1
            if event.failure is None:
                self.in_a_row = 0
                self.unanswered += event.response is not None and event.response.error is not None
                self.recent.append(event.ms)
            else:
                self._fail(Failed(query_id=event.query_id, repeat=event.repeat, failure=event.failure))

    def _fail(self, failed: Failed) -> None:
        self.in_a_row += 1
        self.failures[failed.failure.kind] += 1
        self.questions.add(failed.query_id)
        self.examples.setdefault(failed.failure.kind, failed)
        if len(self.failed) < bounds.DETAILED_FAILURES:
            self.failed.append(failed)

    def progress(self, now: float) -> RecordingProgress:
        asked = self.done - self.kept
        rate = asked / max(now - self._started, 1e-9)
        slowest = sorted(self.recent)
        return RecordingProgress(
            done=self.done,
            total=self.total,
            retried=self.retried,
            failed=self.failures.total(),
            rate=rate,
            p95_ms=nearest_rank(slowest, 95) if slowest else None,
            seconds_left=(self.total - self.done) / rate if asked else None,
        )

    def end(self, *, written: bool) -> End:
        return End(
            done=self.done,
            failed=self.failures.total(),
            retried=self.retried,
            written=written,
            failures=dict(self.failures),
        )
