"""Threads that take one thing after another."""

import threading

import pytest

from ragcontract.judge.interface import NoReply
from ragcontract.judge.judging_session import in_threads
from ragcontract.judge.spending import Spending
from ragcontract.net.stopping import Stop


def test_something_is_made_of_each() -> None:
    made = in_threads(range(50), lambda one: one * 2, at_once=4, spending=Spending(), stop=Stop())
    assert sorted(made) == list(range(0, 100, 2))


def test_of_nothing_nothing_is_made() -> None:
    assert list(in_threads([], str, at_once=4, spending=Spending(), stop=Stop())) == []


def test_so_many_are_under_way_at_the_same_time() -> None:
    barrier = threading.Barrier(4, timeout=10)
    list(in_threads(range(8), lambda _: barrier.wait(), at_once=4, spending=Spending(), stop=Stop()))


def test_what_is_raised_ends_it_after_what_is_under_way() -> None:
    spending = Spending()

    def make(one: int) -> int:
        if one == 3:
            raise ZeroDivisionError
        return one

    made: list[int] = []
    with pytest.raises(ZeroDivisionError):
        made.extend(in_threads(range(1_000), make, at_once=2, spending=spending, stop=Stop()))
    assert spending.over is not None


def test_nothing_is_begun_once_the_budget_is_spent() -> None:
    spending = Spending()

    def make(one: int) -> int:
        if one == 3:
            spending.stop(NoReply("budget", "spent", final=True))
        return one

    assert list(in_threads(range(1_000), make, at_once=1, spending=spending, stop=Stop())) == [0, 1, 2, 3]


def test_nothing_is_begun_once_somebody_asks_to_stop() -> None:
    stop, spending = Stop(), Spending()
    made = []
    for one in in_threads(range(100_000), str, at_once=2, spending=spending, stop=stop):
        made.append(one)
        if not stop.asked:
            stop.ask()
    assert len(made) < 100_000
    assert spending.over is not None
    assert spending.over.kind == "stopped"
