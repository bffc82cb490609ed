"""A pool: several things at a time, within a time limit, in several turns, until somebody asks to stop."""

import threading
from contextlib import closing
from time import monotonic
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.net.pool import Ended, Pool, Stop

LONG = 60  # s; a test that waits for it hangs


def settled(pool: Pool[Any, Any], jobs: range) -> list[tuple[Any, Ended[Any]]]:
    """Run a pool with jobs of one turn, and return how each ended."""
    ended: list[tuple[Any, Ended[Any]]] = []
    with closing(pool):
        pool.run(iter(jobs), lambda *turn: ended.append(turn))
    return ended


def test_each_job_is_settled_with_what_was_made_or_raised() -> None:
    ended = dict(settled(Pool(lambda job: 6 // job, size=2, stop=Stop()), range(4)))
    assert {job: turn.made for job, turn in ended.items()} == {0: None, 1: 6, 2: 3, 3: 2}
    assert isinstance(ended[0].error, ZeroDivisionError)


def test_a_job_may_have_another_turn_and_keeps_its_place() -> None:
    turns: list[int] = []
    pool: Pool[int, None] = Pool(turns.append, size=1, stop=Stop())
    with closing(pool):
        pool.run(iter(range(2)), lambda job, _: 0.0 if turns.count(job) == 1 else None)
    assert turns == [0, 0, 1, 1]


def test_what_takes_too_long_is_given_up_and_the_others_go_on() -> None:
    over = threading.Event()
    pool: Pool[int, Any] = Pool(lambda job: job or over.wait(LONG), size=2, stop=Stop(), seconds=0.1)
    ended = dict(settled(pool, range(3)))
    over.set()
    assert {job: turn.is_given_up for job, turn in ended.items()} == {0: True, 1: False, 2: False}


def test_threads_that_cannot_be_stopped_end_it_with_advice() -> None:
    over = threading.Event()
    pool: Pool[int, Any] = Pool(
        lambda _: over.wait(LONG), size=1, stop=Stop(), seconds=0.05, when_stuck="wait for longer"
    )
    with pytest.raises(InputError) as raised:
        settled(pool, range(3))
    over.set()
    problem = "1 call still running after more than 0.05 s cannot be stopped; wait for longer"
    assert raised.value.problems == [problem]


def test_what_is_under_way_when_somebody_asks_to_stop_has_a_moment_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "WIND_UP", 0.05)
    stop, over = Stop(), threading.Event()

    def make(job: int) -> int:
        if job == 1:
            stop.ask()
            over.wait(LONG)
        return job

    ended = settled(Pool(make, size=1, stop=stop), range(9))
    over.set()
    assert [job for job, _ in ended] == [0]


def test_turns_keep_to_a_rate() -> None:
    began = monotonic()
    assert len(settled(Pool(abs, size=4, stop=Stop(), rate=40), range(5))) == 5
    assert monotonic() - began >= 4 / 40  # at least, on any machine
