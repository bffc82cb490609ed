"""Calls to a judge's endpoint: sent again if that may help, fewer at a time after a 429, and counted.

No call is begun that could exceed a limit on their number, tokens or cost.
"""

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.files.json_text import check_nesting
from ragcontract.judge.endpoint import KEY, OPENAI_KEY, Endpoint
from ragcontract.judge.interface import NoReply
from ragcontract.net.pacing import FIRST_BACKOFF, Throttle, Timing, backoff
from ragcontract.net.sending import Failed, HttpAnswer, HttpCall, Service, reason_in

TOO_MANY, TOO_LARGE = 429, 413
ADVICE = {  # what to do about a status that people meet first
    401: f"; is the key in {KEY} (for OpenAI itself, also {OPENAI_KEY}) the one for this server?",
    404: "; does the server have this --model, and is --judge-url the address that it wants (OpenAI's API: up to /v1)?",
}
READ_OF_REFUSAL = 4_096  # bytes that are searched for the name of a parameter
# No other call would succeed, because the address, the key, the account or the model is wrong.
FINAL_STATUSES = {401, 402, 403, 404, 405}
FINAL_CODES = {"insufficient_quota", "invalid_api_key", "model_not_found"}
FINAL_KINDS = {"machine", "unreachable", "connect_timeout", "proxy_error", "tls_error", "bad_request"}
TOO_LONG_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
TOO_LONG = (
    "context length",
    "maximum context",
    "context size",
    "context window",
    "too many tokens",
    "prompt is too long",
)
# A function that returns the tokens in and out that decoded JSON names; None if it names none.
Billing: TypeAlias = Callable[[Any], tuple[int, int] | None]


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
        self.over: NoReply | None = None  # why no more calls are begun; None if they are

    @property
    def spent(self) -> Spent:
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
            self.over = self.over or why
            self._changed.notify_all()

    def check(self) -> None:
        """Raise NoReply if no more calls may be begun."""
        if self.over is None and self.seconds_left <= 0:
            self.stop(NoReply("deadline", REACHED, final=True))
        if self.over is not None:
            raise self.over

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


class CallLimits(Struct, frozen=True, kw_only=True):
    """How calls are made."""

    concurrency: int = 8
    retries: int = 4
    seconds: float = 120.0  # the longest silence of a server after a call is sent
    connect_seconds: float = 10.0


class Refused(NoReply):
    """The endpoint refuses what was sent."""

    def __init__(self, message: str, *, status: int, texts: tuple[str, ...], final: bool) -> None:
        super().__init__("http_error", message, final=final)
        self.status = status
        self.texts = texts  # of the refusal; the most precise one first


class _Failure(Struct, frozen=True, kw_only=True):
    """A failed attempt."""

    error: NoReply
    again: bool = False  # whether another attempt may succeed
    pause: float | None = None  # s; what the server asks for


class ModelCalls:
    """Makes calls to an endpoint and counts what they cost; threads share it."""

    def __init__(
        self,
        endpoint: Endpoint,
        spending: Spending,
        limits: CallLimits | None = None,
        *,
        timing: Timing | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.throttle = Throttle((limits or CallLimits()).concurrency, (timing or Timing()).monotonic)
        self._limits = limits or CallLimits()
        self._spending = spending
        self._timing = timing or Timing()
        self._service = Service(
            endpoint.url,
            secrets=endpoint.secrets,
            connect_seconds=self._limits.connect_seconds,
            at_once=self._limits.concurrency,
        )
        self.close = self._service.close

    def post(
        self, path: str, body: Any, *, tokens_in: int, most_out: int, bill: Billing, again: bool = False
    ) -> tuple[Any, int]:
        """Return the decoded JSON of a successful answer, and how often the call was sent again; raise NoReply.

        Raise :class:`Refused` if the endpoint refuses what is sent. ``tokens_in`` is an estimate; ``bill`` returns the
        tokens in and out that an answer names. With ``again``, the first call counts as sent again, too.
        """
        if self.endpoint.lacks_key:
            why = f"{self.endpoint.host} wants a key; set {KEY} (or OPENAI_API_KEY) in the environment"
            raise NoReply("no_key", why, final=True)
        call = HttpCall(method="POST", url=self.endpoint.url + path, headers=self._headers(), json=body)
        retried = 0
        while True:
            with (
                self.throttle.turn(self._spending.wait) as started,
                self._spending.call(tokens_in, most_out, again=again or retried > 0) as open_bill,
            ):
                done = self._attempt(call, open_bill, bill, started)
            if not isinstance(done, _Failure):
                self.throttle.succeeded()
                return done, retried
            if done.pause is not None:
                self.throttle.pause(done.pause)
            if not done.again or retried >= self._limits.retries:
                raise done.error
            retried += 1
            self._spending.wait(backoff(retried, first=FIRST_BACKOFF, longest=bounds.BACKOFF))

    def _headers(self) -> dict[str, str]:
        endpoint = self.endpoint
        return {"Authorization": endpoint.secrets.filled(endpoint.authorization)} if endpoint.authorization else {}

    def _attempt(self, call: HttpCall, open_bill: Bill, bill: Billing, started: float) -> Any:
        """Return the decoded JSON, or the failure."""
        connect, read = self._limits.connect_seconds, self._limits.seconds
        seconds = max(0.001, min(connect + read, self._spending.seconds_left))
        try:
            content, answered = self._service.json(call, seconds, decode=_decoded, read_seconds=read)
        except Failed as failed:
            if failed.answered is None:
                return self._unanswered(open_bill, failed)
            if failed.kind == "not_json":
                return _Failure(error=NoReply("not_json", str(failed)))
            open_bill.is_void()
            if failed.answered.status == TOO_MANY:
                self.throttle.too_many(started)
            return self._refused(failed, failed.answered)
        tokens = bill(content)
        if tokens is not None:
            open_bill.is_for(*tokens)
        else:
            open_bill.is_at_most(len(answered.content))
        return content

    def _unanswered(self, open_bill: Bill, failed: Failed) -> _Failure:
        if failed.unsent:
            open_bill.is_void()
        elif self._spending.seconds_left <= 0:
            return _Failure(error=NoReply("deadline", "the deadline was reached before there was a reply", final=True))
        reply = NoReply(failed.kind, str(failed), final=failed.kind in FINAL_KINDS)
        return _Failure(error=reply, again=failed.may_succeed_later or failed.kind == "read_timeout")

    def _refused(self, failed: Failed, answered: HttpAnswer) -> _Failure:
        status = answered.status
        error = failed.content.get("error") if isinstance(failed.content, dict) else None
        error = error if isinstance(error, dict) else {}
        what = f"{failed}{ADVICE.get(status, '')}"
        if 300 <= status < 400:  # noqa: PLR2004
            return _Failure(error=NoReply("redirect", f"{what}; it leads elsewhere, which is not followed", final=True))
        code, reason = error.get("code"), self._service.short(reason_in(failed.content) or answered.reason)
        if status == TOO_LARGE or code in TOO_LONG_CODES or any(words in reason.lower() for words in TOO_LONG):
            return _Failure(error=NoReply("too_long", what))
        final = status in FINAL_STATUSES or (isinstance(code, str) and code in FINAL_CODES)
        texts = (str(error.get("param") or ""), reason, answered.content[:READ_OF_REFUSAL].decode(errors="replace"))
        return _Failure(
            error=Refused(what, status=status, texts=texts, final=final),
            again=failed.may_succeed_later and not final,
            pause=None if final else failed.pause(self._timing),
        )


def _decoded(answered: HttpAnswer) -> Any:
    check_nesting(answered.content)
    return json.loads(answered.content)
