"""Ask a system many questions: several at a time, within its limits, and again where that may help."""

import heapq
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from time import monotonic

from msgspec import Struct

from ragcontract.core import bounds, numbers
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten
from ragcontract.net.pacing import FIRST_BACKOFF, RateLimiter, backoff
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.net.stopping import Stop
from ragcontract.record.attempts import Conversation, Ended, Pool
from ragcontract.record.events import Failure, Retry, Watch
from ragcontract.record.interface import CallFailed, Context, Response, System

TICK = 1.0  # s; the longest time between two calls of `tick`
STUCK_TICK = 0.05  # s; how often abandoned threads are checked while they keep others from starting


class CallSettings(Struct, frozen=True, kw_only=True):
    """How a system is asked."""

    top: int  # how many results are wanted
    concurrency: int
    seconds: float = 30  # the time limit of one attempt
    retries: int = 2
    rate: float | None = None  # in calls per second; None for no limit


Done = Callable[[Conversation, Response | CallFailed], None]


class Loop:
    """Asks questions from worker threads, and calls everything else, such as ``watch``, from one thread."""

    def __init__(
        self,
        system: System,
        calls: CallSettings,
        *,
        watch: Watch,
        stop: Stop,
        tick: Callable[[], None] = lambda: None,
        secrets: Secrets = NO_SECRETS,
    ) -> None:
        """Prepare to ask; ``tick`` is called at least once a second."""
        self._calls = calls
        self._watch = watch
        self._stop = stop
        self._tick = tick
        self._secrets = secrets
        self._ended: SimpleQueue[Ended | None] = SimpleQueue()
        self._pool = Pool(system, size=calls.concurrency, seconds=calls.seconds, ended_attempts=self._ended)
        self._rate_limiter = RateLimiter(calls.rate)
        self._waiting: list[tuple[float, int, Conversation]] = []  # for another attempt, or for their next turn
        self._order = count()
        self._under_way: dict[int, Conversation] = {}
        self._is_all = False  # no other question is to come
        self._stuck_since: float | None = None
        self._fatal: Exception | None = None
        self._end_by: float | None = None
        stop.on_asking(lambda: self._ended.put(None))

    def ask_all(self, conversations: Iterator[Conversation], done: Done) -> None:
        """Ask questions until all are done, or until somebody asks to stop.

        ``done`` is called with each conversation and its response, or the failure of its last attempt. Raises
        InputError if no other attempt can succeed, and what ``done`` raises. First it waits for the attempts under way,
        as it does if somebody asks to stop.
        """
        self._is_all = False
        while True:
            now = monotonic()
            if self._stop.asked or self._fatal:
                self._wind_up(now)
            else:
                self._start(conversations, now)
            if self._is_all and not self._under_way and not self._waiting:
                break
            for ended in self._wait(now):
                self._take(ended, done)
            self._tick()
        if self._fatal:
            raise self._fatal

    def close(self) -> None:
        """Let the threads end."""
        self._pool.close()

    def _start(self, conversations: Iterator[Conversation], now: float) -> None:
        """Start what may start. A question that waits keeps its place, so a failing system is asked more slowly."""
        while self._pool.has_room and self._rate_limiter.next <= now:
            if self._waiting and self._waiting[0][0] <= now:
                conversation = heapq.heappop(self._waiting)[2]
            elif len(self._waiting) + len(self._under_way) >= self._calls.concurrency:
                return
            elif (following := next(conversations, None)) is not None:
                conversation = following
            else:
                self._is_all = True
                return
            self._under_way[self._pool.start(conversation.query, self._context(conversation))] = conversation
            self._rate_limiter.started(now)
        self._mind_stuck(now)

    def _context(self, conversation: Conversation) -> Context:
        return Context(
            query_id=conversation.question.id,
            top=self._calls.top,
            messages=conversation.messages,
            metadata=conversation.question.metadata,
            seconds=self._calls.seconds,
            traceparent=f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01",
            attempt=conversation.attempt,
            repeat=conversation.repeat,
        )

    def _mind_stuck(self, now: float) -> None:
        """Give up if abandoned threads keep others from starting for as long as one attempt may take."""
        if not self._pool.is_stuck:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = now
        elif now - self._stuck_since >= self._calls.seconds:
            limit = f"{self._calls.seconds:g} s"
            calls = numbers.count(self._calls.concurrency, "call")
            many = f"{calls} still running after more than {limit} cannot be stopped"
            self._fatal = InputError([f"{many}; raise --timeout or --concurrency, or use --isolate"])

    def _wind_up(self, now: float) -> None:
        """Start nothing more, and abandon the attempts under way after a while."""
        self._waiting.clear()
        self._is_all = True
        self._end_by = self._end_by or now + bounds.WIND_UP
        if now >= self._end_by:
            self._under_way.clear()

    def _wait(self, now: float) -> Iterator[Ended]:
        """Wait until an attempt has ended or something is due, and yield the attempts that have ended."""
        until = min(self._pool.due, self._end_by or now + TICK, now + TICK)
        if self._stuck_since is not None:
            until = min(until, now + STUCK_TICK)
        elif self._pool.has_room and self._waiting:
            until = min(until, max(self._waiting[0][0], self._rate_limiter.next))
        elif self._pool.has_room and not self._is_all and self._rate_limiter.next > now:
            until = min(until, self._rate_limiter.next)
        with suppress(Empty):
            if (first := self._ended.get(timeout=max(until - now, 0))) is not None and self._pool.took(first):
                yield first
            while True:
                if (more := self._ended.get_nowait()) is not None and self._pool.took(more):
                    yield more
        yield from self._pool.overdue(monotonic())

    def _take(self, ended: Ended, done: Done) -> None:
        conversation = self._under_way.pop(ended.token, None)
        if conversation is None:
            return
        try:
            self._settle(conversation, ended, done)
        except Exception as error:  # noqa: BLE001 (raised again when those under way have ended)
            self._fatal = self._fatal or error

    def _settle(self, conversation: Conversation, ended: Ended, done: Done) -> None:
        try:
            response = conversation.took(answered(ended), ended.ms)
        except CallFailed as failed:
            if self._again(conversation, failed):
                return
            conversation.ms += ended.ms
            done(conversation, failed)
        else:
            if response is not None:
                done(conversation, response)
            else:
                heapq.heappush(self._waiting, (0.0, next(self._order), conversation))

    def _again(self, conversation: Conversation, failed: CallFailed) -> bool:
        """Plan another attempt if that may help and is allowed; return whether the question is not done yet."""
        now = monotonic()
        if failed.pause is not None:
            self._rate_limiter.pause(failed.pause, now)
        if not failed.again or conversation.attempt > self._calls.retries:
            return False
        if self._stop.asked or self._fatal:
            return True  # neither answered nor given up: the next recording asks again
        wait = backoff(conversation.attempt, first=FIRST_BACKOFF, longest=bounds.BACKOFF)
        due = max(now + wait, self._rate_limiter.next if failed.pause is not None else now)
        self._watch(
            Retry(
                query_id=conversation.question.id,
                repeat=conversation.repeat,
                attempt=conversation.attempt,
                pause=round(due - now, 3),
                failure=failure_of(failed, self._secrets),
            )
        )
        conversation.again()
        heapq.heappush(self._waiting, (due, next(self._order), conversation))
        return True


def answered(ended: Ended) -> Response:
    """Return the response of an attempt; raises CallFailed if there is none, InputError if there will be none."""
    if isinstance(ended.error, CallFailed | InputError):
        raise ended.error
    if ended.error is not None:
        raise CallFailed("exception", f"{type(ended.error).__name__}: {ended.error}") from ended.error
    if not isinstance(ended.response, Response):
        raise CallFailed("invalid", f"expected a Response, found {type(ended.response).__name__}")
    return ended.response


def failure_of(failed: CallFailed, secrets: Secrets) -> Failure:
    """Return a failure as it is written to files, without secrets."""
    detail = None if failed.detail is None else secrets.redacted(dict(failed.detail))
    return Failure(kind=failed.kind, message=shorten(secrets.redacted(str(failed)), bounds.FAILURE), detail=detail)
