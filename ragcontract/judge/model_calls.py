"""Calls to a judge's endpoint: sent again if that may help, fewer at a time after a 429, and counted."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import requests
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.json_text import check_nesting
from ragcontract.judge.endpoint import KEY, OPENAI_KEY, Endpoint
from ragcontract.judge.interface import NoReply
from ragcontract.judge.spending import Bill, Spending
from ragcontract.net.pacing import FIRST_BACKOFF, RateLimiter, asked_pause, backoff
from ragcontract.net.sending import AGAIN, HttpAnswer, HttpCall, Unanswered, may_succeed_later, reason_in, send, shown
from ragcontract.net.sessions import open_session
from ragcontract.net.stopping import Timing

TICK = 0.02  # s; how soon a free place is taken
PATIENCE = 4  # so many times the calls at a time must succeed before one more is allowed
TOO_MANY, TOO_LARGE = 429, 413
ADVICE = {  # what to do about a status that people meet first
    401: f"; is the key in {KEY} (for OpenAI itself, also {OPENAI_KEY}) the one for this server?",
    404: "; does the server have this --model, and is --judge-url the address that it wants (OpenAI's API: up to /v1)?",
}
READ_OF_REFUSAL = 4_096  # bytes that are searched for the name of a parameter
# No other call would succeed, because the address, the key, the account or the model is wrong.
FINAL_STATUSES = {401, 402, 403, 404, 405}
FINAL_CODES = {"insufficient_quota", "invalid_api_key", "model_not_found"}
FINAL_KINDS = {"unreachable", "connect_timeout", "proxy_error", "tls_error", "bad_request"}
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
        self._session: requests.Session = open_session(endpoint.url, at_once=self._limits.concurrency)

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

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
        try:
            answered = send(
                self._session,
                call,
                seconds=max(0.001, min(connect + read, self._spending.seconds_left)),
                connect_seconds=connect,
                read_seconds=read,
            )
        except Unanswered as error:
            return self._unanswered(call, open_bill, error)
        except OSError as error:
            open_bill.is_void()
            why = f"{shown(call.url)}: cannot be called from this machine: {visible(str(error))}"
            return _Failure(error=NoReply("machine", why, final=True))
        return self._read(call, answered, open_bill, bill, started)

    def _unanswered(self, call: HttpCall, open_bill: Bill, error: Unanswered) -> _Failure:
        if error.unsent:
            open_bill.is_void()
        elif self._spending.seconds_left <= 0:
            return _Failure(error=NoReply("deadline", "the deadline was reached before there was a reply", final=True))
        more = "; --timeout allows more" if error.kind == "read_timeout" else ""
        reply = NoReply(error.kind, f"{shown(call.url)}: {error}{more}", final=error.kind in FINAL_KINDS)
        return _Failure(error=reply, again=error.kind in AGAIN or error.kind == "read_timeout")

    def _read(self, call: HttpCall, answered: HttpAnswer, open_bill: Bill, bill: Billing, started: float) -> Any:
        try:
            check_nesting(answered.content)
            content = self.endpoint.secrets.redacted(json.loads(answered.content))
        except (ValueError, RecursionError):
            content = None
        if 200 <= answered.status < 300:  # noqa: PLR2004
            if content is None:
                kind = self._short(answered.headers.get("content-type") or "nothing")
                why = f"{shown(call.url)} answered {answered.status}, but not with JSON: {kind}"
                return _Failure(error=NoReply("not_json", why))
            tokens = bill(content)
            if tokens is not None:
                open_bill.is_for(*tokens)
            else:
                open_bill.is_at_most(len(answered.content))
            return content
        open_bill.is_void()
        if answered.status == TOO_MANY:
            self.throttle.too_many(started)
        return self._refused(call, answered, content)

    def _refused(self, call: HttpCall, answered: HttpAnswer, content: Any) -> _Failure:
        status = answered.status
        error = content.get("error") if isinstance(content, dict) else None
        error = error if isinstance(error, dict) else {}
        reason = self._short(reason_in(content) or answered.reason or "no reason given")
        what = f"{shown(call.url)} answered {status}: {reason}{ADVICE.get(status, '')}"
        if 300 <= status < 400:  # noqa: PLR2004
            return _Failure(error=NoReply("redirect", f"{what}; it leads elsewhere, which is not followed", final=True))
        code = error.get("code")
        if status == TOO_LARGE or code in TOO_LONG_CODES or any(words in reason.lower() for words in TOO_LONG):
            return _Failure(error=NoReply("too_long", what))
        final = status in FINAL_STATUSES or (isinstance(code, str) and code in FINAL_CODES)
        again = may_succeed_later(status) and not final
        texts = (str(error.get("param") or ""), reason, answered.content[:READ_OF_REFUSAL].decode(errors="replace"))
        return _Failure(
            error=Refused(what, status=status, texts=texts, final=final),
            again=again,
            pause=asked_pause(answered.headers, self._timing.now()) if again else None,
        )

    def _short(self, text: str) -> str:
        return shorten(visible(self.endpoint.secrets.redacted(text)), bounds.SERVICE_REASON)


class Throttle:
    """Limits how many calls are under way at a time. Threads share it."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self.limit = most  # calls at a time
        self._most = most
        self._clock = clock  # in seconds
        self._under_way = self._succeeded = 0
        self._halved = -1.0
        self._pauses = RateLimiter()
        self._lock = threading.Lock()

    @contextmanager
    def turn(self, wait: Callable[[float], None]) -> Iterator[float]:
        """Wait for a place, and hold it; yield the time when it was taken. ``wait`` gets seconds, and may raise."""
        while (seconds := self._seconds()) > 0:
            wait(seconds)
        started = self._clock()
        try:
            yield started
        finally:
            with self._lock:
                self._under_way -= 1

    def succeeded(self) -> None:
        """Note a call that was answered. After enough of them, one more is allowed at a time."""
        with self._lock:
            self._succeeded += 1
            if self._succeeded >= PATIENCE * self.limit and self.limit < self._most:
                self.limit += 1
                self._succeeded = 0

    def too_many(self, started: float) -> None:
        """Halve the limit. Calls that were under way together halve it only once."""
        with self._lock:
            if started > self._halved:
                self.limit = max(1, self.limit // 2)
                self._halved = self._clock()
            self._succeeded = 0

    def pause(self, seconds: float) -> None:
        """Begin no call for the time that the server asks for."""
        with self._lock:
            self._pauses.pause(seconds, self._clock())

    def _seconds(self) -> float:
        """Take a place and return 0, or return how long to wait before looking again."""
        with self._lock:
            left = self._pauses.next - self._clock()
            if left > 0:
                return left
            if self._under_way >= self.limit:
                return TICK
            self._under_way += 1
            return 0.0
