"""Limits on recordings: what a user may ask for, how long is waited, and what is counted."""

import json
import random
from threading import Event

from ragcontract import CallFailed, Context, Response
from ragcontract.core import bounds
from ragcontract.net.pacing import FIRST_BACKOFF, RateLimiter, backoff
from ragcontract.net.secrets import wrong_names
from ragcontract.record.events import Counts
from ragcontract.record.events import QuestionDone as Done
from ragcontract.record.record_options import RecordOptions, rate_of
from tests.bounds.judge_calls import fits as asks
from tests.bounds.lab import Case, Cases, Lab, all_of
from tests.record.workplace import Toy, Workplace, finds


def fits(**options: object) -> bool:
    """Return whether options are accepted."""
    return not RecordOptions(golden=["golden.jsonl"], **options).wrong({})  # type: ignore[arg-type]


def seconds(_: Lab, size: float) -> bool:
    judge = (asks(timeout=size), asks(connect_timeout=size))
    return all_of(fits(timeout=size), fits(connect_timeout=size), *judge)


def rounds(_: Lab, size: int) -> bool:
    return all_of(fits(repeats=size), fits(warmup=size))


def a_rate(_: Lab, size: int) -> bool:
    return all_of(rate_of(f"{size}/s") is not None, rate_of(f"{size}/min") is not None)


def before_another_attempt(_: Lab, size: float) -> bool:
    found = backoff(50, first=FIRST_BACKOFF, longest=bounds.BACKOFF, chance=random.Random(1))
    return found >= size * random.Random(1).uniform(0.5, 1)


def a_pause(_: Lab, size: float) -> bool:
    pace = RateLimiter()
    pace.pause(size, 0)
    return pace.next == size


def in_a_row(lab: Lab, size: int) -> bool:
    def answer(_query: str, context: Context) -> Response:
        if context.query_id != f"q{size}":
            raise CallFailed("busy", "is busy")
        return finds()

    toy = Toy(answer)
    Workplace(lab.folder, size).record(toy)
    return len(toy.asked) == size


def what_is_under_way(lab: Lab, size: float) -> bool:
    place = Workplace(lab.folder, 1)

    def answer(_query: str, _context: Context) -> Response:
        place.stop.ask()
        Event().wait(0.1 if size < 2 else 30)  # far from the limit: a busy machine decides nothing
        return finds()

    place.record(answer)
    return any("row" in json.loads(line) for line in place.journal.read_bytes().splitlines())


def recent(_: Lab, size: int) -> bool:
    tally = Counts(total=size, kept=0, now=0)
    for ms in range(size):
        tally.count(Done(query_id="q", repeat=1, attempts=1, ms=float(ms), response=finds()))
    return len(tally.recent) == size


CASES: Cases = {
    "RECORDED_TOP": Case(lambda _, size: fits(top=size)),
    "CONCURRENCY": Case(lambda _, size: all_of(fits(concurrency=size), asks(concurrency=size))),
    "CALL_SECONDS": Case(seconds),
    "RETRIES": Case(lambda _, size: all_of(fits(retries=size), asks(retries=size))),
    "RATE": Case(a_rate),
    "ROUNDS": Case(rounds),
    "SECRET_LEAST": Case(lambda _, size: not wrong_names(["S"], {"S": "s" * size}), past=lambda size: size - 1),
    "BACKOFF": Case(before_another_attempt),
    "ASKED_PAUSE": Case(a_pause),
    "WIND_UP": Case(what_is_under_way, small=1),
    "FAILED_IN_A_ROW": Case(in_a_row),
    "RECENT": Case(recent, small=20),
}
