"""Attempts within a time limit, and the conversations that they belong to.

Each attempt has a thread, which is abandoned if it takes too long. A conversation is a golden query on its way: one
question, or several turns, each of which is asked until it is answered.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from queue import SimpleQueue
from time import monotonic, perf_counter
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.answers.conversation import DECLARED, beside_turn, content_of_turn, starts_in
from ragcontract.answers.messages import UNKNOWN_CALLS, with_role
from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten
from ragcontract.record.golden_questions import Question
from ragcontract.record.interface import CallFailed, Context, Json, Response, System
from ragcontract.record.returned.returned_messages import ASSISTANT, refusal_in

GRACE = 0.5  # s; a system that watches its own time says more about why it took too long


class Ended(Struct, frozen=True, kw_only=True):
    """An attempt that is over, with the response or the exception."""

    token: int  # the number that `Pool.start` returned
    ms: float
    response: Response | None = None
    error: BaseException | None = None


class _Job(Struct, frozen=True, kw_only=True):
    token: int
    query: str
    context: Context


class _Worker:
    """A thread that makes one attempt after another. It is kept, because systems keep connections for each thread."""

    def __init__(self, system: System, ended_attempts: "SimpleQueue[Ended | None]", number: int) -> None:
        self.inbox: SimpleQueue[_Job | None] = SimpleQueue()
        self.due = 0.0
        self.abandoned = False
        self._system = system
        self._ended = ended_attempts
        self.thread = threading.Thread(target=self._work, name=f"asking-{number}", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        """Let the thread end after its attempt, whose result is dropped."""
        self.abandoned = True
        self.inbox.put(None)

    def _work(self) -> None:
        while not self.abandoned and (job := self.inbox.get()) is not None:
            ended = _made(self._system, job)
            if not self.abandoned:
                self._ended.put(ended)


def _made(system: System, job: _Job) -> Ended:
    started = perf_counter()
    response, raised = None, None
    try:
        response = system.ask(job.query, job.context)
    except BaseException as error:  # noqa: BLE001 (whatever users' code raises, the recording goes on)
        raised = error
    ms = (perf_counter() - started) * 1000
    if response is not None and ms > job.context.seconds * 1000:
        response, raised = None, too_long(job.context.seconds)
    if isinstance(response, Response) and response.latency_ms is not None:
        own = response.latency_ms
        if isinstance(own, int | float) and 0 <= own <= bounds.MILLISECONDS:
            ms = float(own)
        else:
            why = f"latency_ms: expected milliseconds, found {shorten(repr(own), bounds.RETURNED_SHOWN)}"
            response, raised = None, CallFailed("invalid", why)
    return Ended(token=job.token, ms=ms, response=response, error=raised)


def too_long(seconds: float) -> CallFailed:
    """Return the failure of an attempt that was given up."""
    return CallFailed("timeout", f"no answer within {seconds:g} s; --timeout allows more")


class Pool:
    """Makes at most ``size`` attempts at a time, and puts those that end into a queue. Only one thread may use it."""

    def __init__(
        self, system: System, *, size: int, seconds: float, ended_attempts: "SimpleQueue[Ended | None]"
    ) -> None:
        self._system = system
        self._size = size
        self._seconds = seconds
        self._ended_attempts = ended_attempts
        self._idle: list[_Worker] = []
        self._busy: dict[int, _Worker] = {}
        self._abandoned: list[_Worker] = []
        self._started = self._token = 0

    @property
    def has_room(self) -> bool:
        """Whether another attempt may start; too many abandoned threads that still run prevent it."""
        return len(self._busy) < self._size and not self.is_stuck

    @property
    def busy(self) -> int:
        """How many attempts are under way."""
        return len(self._busy)

    @property
    def is_stuck(self) -> bool:
        """Whether as many abandoned threads still run as there may be attempts."""
        if self._abandoned:
            self._abandoned = [worker for worker in self._abandoned if worker.thread.is_alive()]
        return len(self._abandoned) >= self._size

    @property
    def due(self) -> float:
        """When the next attempt is given up, by ``time.monotonic``; infinite if none is under way."""
        return min((worker.due for worker in self._busy.values()), default=float("inf"))

    def start(self, query: str, context: Context) -> int:
        """Start an attempt and return its number. There must be room for it."""
        if self._idle:
            worker = self._idle.pop()
        else:
            self._started += 1
            worker = _Worker(self._system, self._ended_attempts, self._started)
        worker.due = monotonic() + self._seconds + GRACE
        self._token += 1
        self._busy[self._token] = worker
        worker.inbox.put(_Job(token=self._token, query=query, context=context))
        return self._token

    def took(self, ended: Ended) -> bool:
        """Note that an attempt has ended; returns False if it was given up before."""
        worker = self._busy.pop(ended.token, None)
        if worker is not None:
            self._idle.append(worker)
        return worker is not None

    def overdue(self, now: float) -> Iterator[Ended]:
        """Give up the attempts that have taken too long, and yield how they ended."""
        for token in [token for token, worker in self._busy.items() if worker.due <= now]:
            worker = self._busy.pop(token)
            worker.leave()
            self._abandoned.append(worker)
            yield Ended(token=token, ms=self._seconds * 1000, error=too_long(self._seconds))

    def close(self) -> None:
        """Let the idle threads end now, and the others after their attempts."""
        for worker in (*self._idle, *self._busy.values()):
            worker.leave()


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
        """The user's message in this turn."""
        return self.question.user_messages[len(self._turns)]

    @property
    def messages(self) -> tuple[Json, ...]:
        """What was said in the earlier turns, without what a chat model may not take."""
        sent = chain.from_iterable(self._turns)
        return tuple({name: value for name, value in message.items() if name not in UNSENT} for message in sent)

    def again(self) -> None:
        """Count another attempt at this turn."""
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
        new = new if starts_in(_with_roles(new)) else (question, *new)
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
    messages = _with_roles(returned)
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
        was_text, were_calls, were_refusals = content_of_turn(_with_roles(recorded))
        if (text, calls) != (was_text, were_calls) or not refusals <= were_refusals:
            problem = f"messages in which turn {number} is not what was answered then"
            raise CallFailed("messages", f"{problem}; return the conversation as it was, or only what is new in it")
    return tuple(returned[starts[-1] :])


def _refuse_contradiction(messages: Sequence[Json], response: Response) -> None:
    """Raise CallFailed if the answer or the calls of a response differ from those in its messages."""
    calls = None if response.tool_calls is None else list(response.tool_calls)
    own = _with_roles(messages)
    stated = {name: getattr(response, name) for name in DECLARED}
    if why := beside_turn(own, response=response.response, tool_calls=calls, error=response.error, **stated):
        raise CallFailed("messages", f"the answer to a turn {why}")


def _with_refusal(messages: tuple[Json, ...], refusal: str | None) -> tuple[Json, ...]:
    """Return the messages of a turn with the refusal that the response has beside them."""
    if not refusal or "".join(refusal.split()) in "".join((refusal_in(_with_roles(messages)) or "").split()):
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


def _with_roles(messages: Sequence[Json]) -> list[dict[str, Any]]:
    return [{"role": None, **with_role(dict(message))} for message in messages]


def _message(message: object) -> Json:
    if not isinstance(message, Mapping):
        shown = shorten(repr(message), 80)
        raise CallFailed("messages", f"a message is a mapping with `role` and `content`, not {shown}")
    return message
