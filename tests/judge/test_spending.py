"""Limits on what calls cost: nothing is begun that could exceed one."""

import threading
from contextlib import ExitStack, suppress

import pytest

from ragcontract.judge.interface import NoReply
from ragcontract.judge.model_calls import Budget, Spending
from tests.judge.lab import Clock


def spend(spending: Spending, tokens_in: int = 10, tokens_out: int = 5, most_out: int = 100) -> None:
    with spending.call(tokens_in, most_out, again=False) as bill:
        bill.is_for(tokens_in, tokens_out)


def calls_until_over(budget: Budget, **tokens: int) -> tuple[int, NoReply]:
    spending = Spending(budget)
    for done in range(100):
        try:
            spend(spending, **tokens)
        except NoReply as over:
            return done, over
    raise AssertionError("without end")


def test_no_more_calls_are_made_than_allowed() -> None:
    done, over = calls_until_over(Budget(max_calls=7))
    assert (done, over.kind, over.final) == (7, "budget", True)
    assert str(over) == "7 calls were made, as many as --max-calls allows"


def test_a_call_that_could_exceed_the_tokens_is_not_begun() -> None:
    done, over = calls_until_over(Budget(max_tokens=200))
    assert done == 7  # after 6 calls, 90 are spent and 110 might be; after 7, 105 and 110
    assert str(over) == "105 tokens are spent, and another call might exceed the 200 of --max-tokens"


def test_a_call_that_could_exceed_the_money_is_not_begun() -> None:
    budget = Budget(max_usd=0.002, price_in=10, price_out=5)
    done, over = calls_until_over(budget)
    assert done == 12
    assert budget.usd(12 * 10, 12 * 5) <= 0.002
    assert str(over).endswith("another call might exceed the 0.0020 of --max-usd")


def test_calls_under_way_are_waited_for_if_they_may_turn_out_to_cost_less() -> None:
    spending = Spending(Budget(max_tokens=120))
    entered = threading.Event()
    with ExitStack() as under_way:
        first = under_way.enter_context(spending.call(10, 100, again=False))

        def another() -> None:
            spend(spending)
            entered.set()

        thread = threading.Thread(target=another)
        thread.start()
        assert not entered.wait(0.05)
        first.is_for(5, 0)
    thread.join()
    assert entered.is_set()
    assert spending.spent.calls == 2


def test_what_was_refused_costs_nothing_and_what_had_no_answer_costs_its_estimate() -> None:
    spending = Spending(Budget(price_in=1_000_000, price_out=1_000_000))
    with spending.call(10, 100, again=False) as bill:
        bill.is_void()
    with spending.call(10, 100, again=True):
        pass
    spent = spending.spent
    assert (spent.calls, spent.retried, spent.estimated, spent.tokens_in, spent.usd) == (2, 1, 1, 10, 110)


def test_calls_whose_cost_nobody_names_cannot_exceed_the_money_either() -> None:
    spending = Spending(Budget(max_usd=0.5, price_in=0, price_out=1_000))
    with suppress(NoReply):
        while True:
            with spending.call(10, 100, again=False):
                pass
    assert spending.spent.calls == 5


def test_without_prices_there_is_no_sum() -> None:
    assert Spending().spent.usd is None


def test_the_deadline_ends_all() -> None:
    clock = Clock()
    spending = Spending(Budget(deadline=60), clock.timing)
    spending.wait(59)
    spend(spending)
    with pytest.raises(NoReply, match="the deadline is nearer than the 2 s to wait before the next call"):
        spending.wait(2)
    with pytest.raises(NoReply):
        spend(spending)
    assert sum(clock.slept) == pytest.approx(59)


def test_who_waits_notices_that_all_is_stopped() -> None:
    clock = Clock()
    spending = Spending(timing=clock.timing)
    spending.stop(NoReply("stopped", "somebody asked to stop", final=True))
    with pytest.raises(NoReply, match="somebody asked to stop"):
        spending.wait(1)
    assert clock.slept == []
