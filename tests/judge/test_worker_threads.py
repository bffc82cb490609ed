"""Threads that take one thing after another."""

import threading
from collections.abc import Callable, Sequence

import pytest

from ragcontract.judge.interface import NoReply
from ragcontract.judge.judging_session import in_threads
from ragcontract.judge.model_calls import Spending
from ragcontract.net.pool import Stop


def made_of(items: Sequence[int], make: Callable[[int], int], at_once: int, spending: Spending) -> list[int]:
    """Return what is made of all items, in the order in which it comes."""
    made: list[int] = []
    in_threads(items, make, made.append, at_once=at_once, spending=spending, stop=Stop())
    return made


def test_something_is_made_of_each() -> None:
    assert sorted(made_of(range(50), lambda one: one * 2, 4, Spending())) == list(range(0, 100, 2))


def test_of_nothing_nothing_is_made() -> None:
    assert made_of([], abs, 4, Spending()) == []


def test_so_many_are_under_way_at_the_same_time() -> None:
    barrier = threading.Barrier(4, timeout=10)
    made_of(range(8), lambda _: barrier.wait(), 4, Spending())


def test_what_is_raised_ends_it_after_what_is_under_way() -> None:
    spending = Spending()

    def make(one: int) -> int:
        if one == 3:
            raise ZeroDivisionError
        return one

    with pytest.raises(ZeroDivisionError):
        made_of(range(1_000), make, 2, spending)
    assert spending.over is not None


def test_nothing_is_begun_once_the_budget_is_spent() -> None:
    spending = Spending()

    def make(one: int) -> int:
        if one == 3:
            spending.stop(NoReply("budget", "spent", final=True))
        return one

    assert made_of(range(1_000), make, 1, spending) == [0, 1, 2, 3]


def test_nothing_is_begun_once_somebody_asks_to_stop() -> None:
    stop, spending = Stop(), Spending()
    made: list[int] = []

    def take(one: int) -> None:
        made.append(one)
        if not stop.asked:
            stop.ask()

    in_threads(range(100_000), abs, take, at_once=2, spending=spending, stop=stop)
    assert len(made) < 100_000
    assert spending.over is not None
    assert spending.over.kind == "stopped"
