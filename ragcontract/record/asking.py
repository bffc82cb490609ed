"""Ask a system many questions: within its limits, and again where that may help.

A conversation is a golden query on its way: one question, or several turns, each of which is asked until it is
answered.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, pairwise
from time import monotonic, perf_counter
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.answers.conversation import DECLARED, beside_turn, content_of_turn, starts_in
from ragcontract.answers.messages import UNKNOWN_CALLS, letters_of, with_role, with_roles
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.phrase import plain
from ragcontract.core.safe_text import shorten
from ragcontract.net.pacing import FIRST_BACKOFF, backoff
from ragcontract.net.pool import Ended, Pool, Stop
from ragcontract.net.secrets import Secrets
from ragcontract.record.events import Failure, Retry, Watch
from ragcontract.record.golden_questions import Question
from ragcontract.record.interface import CallFailed, Context, Json, Response, System
from ragcontract.record.record_options import RecordOptions
from ragcontract.record.returned.returned_messages import ASSISTANT, refusal_in


class Attempt(Struct, frozen=True, kw_only=True):
    """An attempt that is over, with the response or the exception."""

    ms: float
    response: Response | None = None
    error: BaseException | None = None


Done = Callable[["Conversation", Response | CallFailed], None]


class Asking:
    """Asks questions from worker threads, and calls everything else, such as ``watch``, from one thread."""

    def __init__(
        self,
        system: System,
        options: RecordOptions,
        *,
        watch: Watch,
        stop: Stop,
        tick: Callable[[], None],
        secrets: Secrets,
    ) -> None:
        """Prepare to ask; ``tick`` is called at least once a second."""
        self._system = system
        self._options = options
        self._watch = watch
        self._secrets = secrets
        self._pool = Pool(
            self._ask,
            size=options.concurrency or system.concurrency,
            stop=stop,
            seconds=options.timeout,
            rate=options.calls_per_second,
            tick=tick,
            when_stuck="raise --timeout or --concurrency, or use --isolate",
        )
        self.close = self._pool.close

    def ask_all(self, conversations: Iterator["Conversation"], done: Done) -> None:
        """Ask questions until all are done, or until somebody asks to stop.

        ``done`` is called with each conversation and its response, or the failure of its last attempt. Raises
        InputError if no other attempt can succeed, and what ``done`` raises. First it waits for the attempts under way,
        as it does if somebody asks to stop.
        """
        self._pool.run(conversations, lambda conversation, ended: self._settle(conversation, ended, done))

    def _ask(self, conversation: "Conversation") -> Attempt:
        context = Context(
            query_id=conversation.question.id,
            top=self._options.top,
            messages=conversation.messages,
            metadata=conversation.question.metadata,
            seconds=self._options.timeout,
            traceparent=f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01",
            attempt=conversation.attempt,
            repeat=conversation.repeat,
        )
        started = perf_counter()
        response, raised = None, None
        try:
            response = self._system.ask(conversation.query, context)
        except BaseException as error:  # noqa: BLE001 (whatever users' code raises, the recording goes on)
            raised = error
        ms = (perf_counter() - started) * 1000
        if response is not None and ms > self._options.timeout * 1000:
            response, raised = None, self._too_long()
        if isinstance(response, Response) and response.latency_ms is not None:
            own = response.latency_ms
            if isinstance(own, int | float) and 0 <= own <= bounds.MILLISECONDS:
                ms = float(own)
            else:
                why = f"latency_ms: expected milliseconds, found {shorten(repr(own), bounds.RETURNED_SHOWN)}"
                response, raised = None, CallFailed("invalid", why)
        return Attempt(ms=ms, response=response, error=raised)

    def _too_long(self) -> CallFailed:
        seconds = f"{self._options.timeout:g} s"
        return CallFailed("timeout", f"no answer within {seconds}; --timeout allows more")

    def _settle(self, conversation: "Conversation", ended: Ended[Attempt], done: Done) -> float | None:
        """Return the time of the next attempt or turn; None if the question is done."""
        attempt = ended.made or Attempt(ms=self._options.timeout * 1000, error=ended.error or self._too_long())
        try:
            response = conversation.took(answered(attempt), attempt.ms)
        except CallFailed as failed:
            due = self._again(conversation, failed)
            if due is None:
                conversation.ms += attempt.ms
                done(conversation, failed)
            return due
        if response is None:
            return 0.0
        done(conversation, response)
        return None

    def _again(self, conversation: "Conversation", failed: CallFailed) -> float | None:
        """Return the time of another attempt, if that may help and is allowed; otherwise None."""
        now, limiter = monotonic(), self._pool.limiter
        if failed.pause is not None:
            limiter.pause(failed.pause, now)
        if not failed.again or conversation.attempt > self._options.retries:
            return None
        if self._pool.is_ending:
            return now  # neither answered nor given up: the next recording asks again
        wait = backoff(conversation.attempt, first=FIRST_BACKOFF, longest=bounds.BACKOFF)
        due = max(now + wait, limiter.next if failed.pause is not None else now)
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
        return due


def answered(attempt: Attempt) -> Response:
    """Return the response of an attempt; raises CallFailed if there is none, InputError if there will be none."""
    if isinstance(attempt.error, CallFailed | InputError):
        raise attempt.error
    if attempt.error is not None:
        raise CallFailed("exception", f"{type(attempt.error).__name__}: {attempt.error}") from attempt.error
    if not isinstance(attempt.response, Response):
        raise CallFailed("invalid", f"expected a Response, found {type(attempt.response).__name__}")
    return attempt.response


def failure_of(failed: CallFailed, secrets: Secrets) -> Failure:
    """Return a failure as it is written to files, without secrets."""
    detail = None if failed.detail is None else secrets.redacted(dict(failed.detail))
    message = shorten(secrets.redacted(plain(str(failed))), bounds.FAILURE)
    return Failure(kind=failed.kind, message=message, detail=detail)


UNSENT = frozenset({*DECLARED, "error", UNKNOWN_CALLS})


class Conversation:
    """A question and what is known of its answer so far."""

    def __init__(self, question: Question, repeat: int) -> None:
        self.question = question
        self.repeat = repeat  # counts from 1; 0 in a warm-up
        self.attempt = 1  # of this turn
        self.attempts = 1  # one more than the attempts that were made again, in all turns
        self.ms = 0.0  # the time of the last attempt; of a conversation, the sum over its turns
        self._turns: list[tuple[Json, ...]] = []  # the messages of each
        self._declared: list[Json] = []  # of each response, the fields that say how its answer came about
        self._last: Response | None = None

    @property
    def query(self) -> str:
        return self.question.user_messages[len(self._turns)]

    @property
    def messages(self) -> tuple[Json, ...]:
        """What was said in the earlier turns, without what a chat model may not take."""
        sent = chain.from_iterable(self._turns)
        return tuple({name: value for name, value in message.items() if name not in UNSENT} for message in sent)

    def again(self) -> None:
        self.attempt += 1
        self.attempts += 1

    def took(self, response: Response, ms: float) -> Response | None:
        """Add the response to a turn. After the last turn or an error, return the response to the whole question.

        Raises CallFailed if the conversation cannot go on with the response.
        """
        self.ms += ms
        if not self.question.turns:
            return response
        self._turns.append(_turn(self._turns, self.query, response))
        self._declared.append({name: stated for name in DECLARED if (stated := getattr(response, name)) is not None})
        self._last = _merged(self._last, response)
        self.attempt = 1
        if len(self._turns) < len(self.question.turns) and response.error is None:
            return None
        return replace(self._last, messages=self._recorded(), response=UNSET, tool_calls=None)

    def _recorded(self) -> tuple[Json, ...]:
        """Return all messages. Those of earlier turns get the fields that the row has for the last turn only."""
        *earlier, last = self._turns
        marked = map(_with_fields, earlier, self._declared)
        return (*chain.from_iterable(marked), *last)


def _merged(before: Response | None, now: Response) -> Response:
    """Return the last turn's response, with what was retrieved in the last turn that retrieved anything."""
    if before is None:
        return now
    results = now.results or (now.results if before.results is None else before.results)
    contexts = now.retrieved_contexts or (
        now.retrieved_contexts if before.retrieved_contexts is None else before.retrieved_contexts
    )
    return replace(now, results=results, retrieved_contexts=contexts)


def _turn(before: Sequence[Sequence[Json]], query: str, response: Response) -> tuple[Json, ...]:
    """Return the messages of this turn.

    A system may return the whole conversation, only what is new in it, or only its answer.
    """
    question = {"role": "user", "content": query}
    if response.messages:
        new = _new(before, [*map(_message, response.messages)])
        new = new if starts_in(with_roles(new)) else (question, *new)
        _refuse_contradiction(new, response)
        return _with_refusal(new, response.refusal)
    if response.response is UNSET and response.error is None:
        raise CallFailed("no_answer", "a conversation needs an answer in each turn: `response` or `messages`")
    if response.response is UNSET or (response.error is not None and response.response is None):
        return (question,)
    answer: dict[str, Any] = {"role": ASSISTANT, "content": response.response}
    if response.tool_calls is None:
        answer[UNKNOWN_CALLS] = True
    elif response.tool_calls:
        answer["tool_calls"] = list(response.tool_calls)
    return _with_refusal((question, answer), response.refusal)


def _new(before: Sequence[Sequence[Json]], returned: Sequence[Json]) -> tuple[Json, ...]:
    """Return the new messages of what may be the whole conversation.

    Raises CallFailed if its earlier turns differ from the recorded ones.
    """
    messages = with_roles(returned)
    starts = starts_in(messages)
    if len(starts) <= 1:
        return tuple(returned)
    turn = len(before) + 1
    if len(starts) != turn:
        problem = f"messages with {len(starts)} of the user's after turn {turn}"
        raise CallFailed("messages", f"{problem}; return the whole conversation, or what is new in it")
    bounds_of_turns = pairwise([0, *starts[1:]])
    for number, (recorded, (start, end)) in enumerate(zip(before, bounds_of_turns, strict=True), start=1):
        text, calls, refusals = content_of_turn(messages[start:end])
        was_text, were_calls, were_refusals = content_of_turn(with_roles(recorded))
        if (text, calls) != (was_text, were_calls) or not refusals <= were_refusals:
            problem = f"messages in which turn {number} is not what was answered then"
            raise CallFailed("messages", f"{problem}; return the conversation as it was, or only what is new in it")
    return tuple(returned[starts[-1] :])


def _refuse_contradiction(messages: Sequence[Json], response: Response) -> None:
    """Raise CallFailed if the answer or the calls of a response differ from those in its messages."""
    calls = None if response.tool_calls is None else list(response.tool_calls)
    own = with_roles(messages)
    stated = {name: getattr(response, name) for name in DECLARED}
    if why := beside_turn(own, response=response.response, tool_calls=calls, error=response.error, **stated):
        raise CallFailed("messages", f"the answer to a turn {why}")


def _with_refusal(messages: tuple[Json, ...], refusal: str | None) -> tuple[Json, ...]:
    """Return the messages of a turn with the refusal that the response has beside them."""
    if not refusal or letters_of(refusal) in letters_of(refusal_in(with_roles(messages))):
        return messages
    return _with_fields(messages, {"refusal": refusal})


def _with_fields(messages: tuple[Json, ...], fields: Json) -> tuple[Json, ...]:
    """Return the messages of a turn with these fields in the assistant's last message, or in a message of their own."""
    *others, last = messages
    fields = {name: stated for name, stated in fields.items() if last.get(name) != stated}
    if not fields:
        return messages
    if with_role(dict(last)).get("role") == ASSISTANT and not any(last.get(name) for name in fields):
        return (*others, {**last, **fields})
    return (*messages, {"role": ASSISTANT, "content": None, **fields})


def _message(message: object) -> Json:
    if not isinstance(message, Mapping):
        shown = shorten(repr(message), 80)
        raise CallFailed("messages", f"a message is a mapping with `role` and `content`, not {shown}")
    return message
