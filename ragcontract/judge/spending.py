"""The cost of a judge's calls, and limits on it. No call is begun that could exceed a limit."""

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from ragcontract.core.numbers import count
from ragcontract.judge.interface import NoReply
from ragcontract.net.stopping import Timing

MILLION = 1_000_000
REACHED = "the deadline is reached"
TICK = 0.1  # s; how soon a waiting thread notices that no more calls may be made


class Budget(Struct, frozen=True, kw_only=True):
    """Limits and prices; None for no limit."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    price_in: float | None = None  # USD for a million tokens
    price_out: float | None = None  # USD for a million tokens
    deadline: float | None = None  # s, from the start

    def cost(self, tokens_in: float, tokens_out: float) -> float | None:
        """Return what tokens cost; None without prices."""
        priced = self.price_in is not None or self.price_out is not None
        return self.usd(tokens_in, tokens_out) if priced else None

    def usd(self, tokens_in: float, tokens_out: float) -> float:
        """Return what tokens cost; 0 without prices."""
        return (tokens_in * (self.price_in or 0) + tokens_out * (self.price_out or 0)) / MILLION


class Spent(Struct, frozen=True, kw_only=True):
    """What was spent."""

    calls: int = 0  # those sent again included
    retried: int = 0
    estimated: int = 0  # calls whose tokens no answer named
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = None


class Bill:
    """The tokens of one call: an estimate and the longest reply, until an answer names them."""

    def __init__(self, tokens_in: int, most_out: int) -> None:
        self.tokens_in = tokens_in
        self.tokens_out = most_out
        self.is_estimate = True

    def is_at_most(self, tokens_out: int) -> None:
        """Note an upper bound from the length of an answer that names no tokens."""
        self.tokens_out = min(self.tokens_out, tokens_out)

    def is_for(self, tokens_in: int, tokens_out: int) -> None:
        """Note what the endpoint bills."""
        self.tokens_in, self.tokens_out, self.is_estimate = tokens_in, tokens_out, False

    def is_void(self) -> None:
        """Note that the call was refused."""
        self.is_for(0, 0)


class Spending:
    """Counts what all threads spend, and stops them."""

    def __init__(self, budget: Budget | None = None, timing: Timing | None = None) -> None:
        self.budget = budget or Budget()
        self._timing = timing or Timing()
        self._end = self._timing.monotonic() + (math.inf if self.budget.deadline is None else self.budget.deadline)
        self._changed = threading.Condition()
        self._reserved: dict[Bill, tuple[int, int]] = {}
        self._calls = self._retried = self._estimated = self._tokens_in = self._tokens_out = 0
        self._over: NoReply | None = None

    @property
    def over(self) -> NoReply | None:
        """Why no more calls are begun; None if they are."""
        return self._over

    @property
    def spent(self) -> Spent:
        """What has been spent."""
        with self._changed:
            return Spent(
                calls=self._calls,
                retried=self._retried,
                estimated=self._estimated,
                tokens_in=self._tokens_in,
                tokens_out=self._tokens_out,
                usd=self.budget.cost(self._tokens_in, self._tokens_out),
            )

    @property
    def seconds_left(self) -> float:
        """How long until the deadline; infinite without one."""
        return self._end - self._timing.monotonic()

    def stop(self, why: NoReply) -> None:
        """Begin no more calls in any thread."""
        with self._changed:
            self._over = self._over or why
            self._changed.notify_all()

    def check(self) -> None:
        """Raise NoReply if no more calls may be begun."""
        if self._over is None and self.seconds_left <= 0:
            self.stop(NoReply("deadline", REACHED, final=True))
        if self._over is not None:
            raise self._over

    def wait(self, seconds: float) -> None:
        """Wait before a call; raise NoReply if no more calls may be begun, at once if the deadline comes first."""
        end = self._timing.monotonic() + seconds
        if end > self._end:
            nearer = f"the deadline is nearer than the {seconds:,.0f} s to wait before the next call"
            self.stop(NoReply("deadline", nearer if seconds >= 1 else REACHED, final=True))
        self.check()
        while (left := end - self._timing.monotonic()) > 0:
            self._timing.sleep(min(left, TICK))
            self.check()

    @contextmanager
    def call(self, tokens_in: int, most_out: int, *, again: bool) -> Iterator[Bill]:
        """Count a call with an estimate of its tokens; raise NoReply if it could exceed a limit.

        While other calls are under way, which may cost less than estimated, wait for them.
        """
        bill = Bill(tokens_in, most_out)
        with self._changed:
            while True:
                self.check()
                exceeded = self._exceeded(tokens_in, most_out)
                if not exceeded:
                    break
                if not self._reserved or exceeded == "calls":
                    self.stop(NoReply("budget", self._spent_all(exceeded), final=True))
                else:
                    self._changed.wait(TICK)
            self._calls += 1
            self._retried += again
            self._reserved[bill] = (tokens_in, most_out)
        try:
            yield bill
        finally:
            with self._changed:
                del self._reserved[bill]
                self._tokens_in += bill.tokens_in
                self._tokens_out += bill.tokens_out
                self._estimated += bill.is_estimate
                self._changed.notify_all()

    def _exceeded(self, tokens_in: int, most_out: int) -> str:
        """Return the limit that a call might exceed; empty if there is none."""
        budget = self.budget
        all_in = self._tokens_in + tokens_in + sum(tokens for tokens, _ in self._reserved.values())
        all_out = self._tokens_out + most_out + sum(most for _, most in self._reserved.values())
        if budget.max_calls is not None and self._calls >= budget.max_calls:
            return "calls"
        if budget.max_tokens is not None and all_in + all_out > budget.max_tokens:
            return "tokens"
        if budget.max_usd is not None and budget.usd(all_in, all_out) > budget.max_usd:
            return "usd"
        return ""

    def _spent_all(self, limit: str) -> str:
        if limit == "calls":
            return f"{count(self._calls, 'call')} were made, as many as --max-calls allows"
        if limit == "tokens":
            spent = f"{self._tokens_in + self._tokens_out:,} tokens are spent"
            return f"{spent}, and another call might exceed the {self.budget.max_tokens:,} of --max-tokens"
        spent = f"{self.budget.usd(self._tokens_in, self._tokens_out):,.4f} USD are spent"
        return f"{spent}, and another call might exceed the {self.budget.max_usd:,.4f} of --max-usd"
