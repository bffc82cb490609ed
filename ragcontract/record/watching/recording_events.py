"""What happens while a system is recorded, for those who watch: a progress bar, a stream of events, the details."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.record.interface import Response


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
