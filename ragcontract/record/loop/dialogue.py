"""A golden query on its way: one question, or the turns of a conversation, each asked until it is answered."""

from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.answers.conversation import DECLARED, beside_turn, starts_in, told
from ragcontract.answers.messages import with_role
from ragcontract.core.text import shorten
from ragcontract.record.golden_questions import Question
from ragcontract.record.interface import CallFailed, Json, Response
from ragcontract.record.returned.chat_messages import ASSISTANT, refusal_in


class Conversation:
    """A question and what is known of its answer so far; ``repeat`` is 0 in a warm-up.

    ``ms`` is what the last attempt took; of a conversation, the sum over its turns. ``attempts`` is one more than how
    many were made again.
    """

    def __init__(self, question: Question, repeat: int) -> None:
        """Begin with the first turn."""
        self.question = question
        self.repeat = repeat
        self.attempt = 1  # of this turn
        self.attempts = 1
        self.ms = 0.0
        self._turns: list[tuple[Json, ...]] = []  # the messages of each
        self._declared: list[Json] = []  # what each response says beside its answer of how it came about
        self._last: Response | None = None

    @property
    def query(self) -> str:
        """What the user says now."""
        return self.question.said[len(self._turns)]

    @property
    def messages(self) -> tuple[Json, ...]:
        """What was said in the earlier turns."""
        return tuple(chain.from_iterable(self._turns))

    def again(self) -> None:
        """Count another attempt at this turn."""
        self.attempt += 1
        self.attempts += 1

    def took(self, response: Response, ms: float) -> Response | None:
        """Note the response to a turn; returns that to the whole question after the last turn, or after an error.

        Raises CallFailed if the conversation cannot go on with it.
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
        """Return all messages, with what the row only says of the last turn in those of the others."""
        *earlier, last = self._turns
        marked = map(_with_fields, earlier, self._declared)
        return (*chain.from_iterable(marked), *last)


def _merged(before: Response | None, now: Response) -> Response:
    """Return the last turn's response; what was retrieved is from the last turn in which anything was."""
    if before is None:
        return now
    results = now.results or (now.results if before.results is None else before.results)
    contexts = now.retrieved_contexts or (
        now.retrieved_contexts if before.retrieved_contexts is None else before.retrieved_contexts
    )
    return replace(now, results=results, retrieved_contexts=contexts)


def _turn(before: Sequence[Sequence[Json]], query: str, response: Response) -> tuple[Json, ...]:
    """Return the messages of this turn: the system gives the whole conversation, or what is new, or only its answer."""
    said = {"role": "user", "content": query}
    if response.messages:
        new = _new(before, [*map(_message, response.messages)])
        new = new if starts_in(_with_roles(new)) else (said, *new)
        _refuse_contradiction(new, response)
        return _with_refusal(new, response.refusal)
    if response.response is UNSET and response.error is None:
        raise CallFailed("no_answer", "a conversation needs an answer in each turn: `response` or `messages`")
    if response.response is UNSET or (response.error is not None and response.response is None):
        return (said,)
    answer: dict[str, Any] = {"role": ASSISTANT, "content": response.response}
    if response.tool_calls:
        answer["tool_calls"] = list(response.tool_calls)
    return _with_refusal((said, answer), response.refusal)


def _new(before: Sequence[Sequence[Json]], given: Sequence[Json]) -> tuple[Json, ...]:
    """Return what is new in messages that may be the whole conversation, whose earlier turns must be as recorded."""
    messages = _with_roles(given)
    starts = starts_in(messages)
    if len(starts) <= 1:
        return tuple(given)
    turn = len(before) + 1
    if len(starts) != turn:
        found = f"messages with {len(starts)} of the user's after turn {turn}"
        raise CallFailed("messages", f"{found}; return the whole conversation, or what is new in it")
    bounds_of_turns = pairwise([0, *starts[1:]])
    for number, (recorded, (start, end)) in enumerate(zip(before, bounds_of_turns, strict=True), start=1):
        text, calls, refusals = told(messages[start:end])
        was_text, were_calls, were_refusals = told(_with_roles(recorded))
        if (text, calls) != (was_text, were_calls) or not refusals <= were_refusals:
            found = f"messages in which turn {number} is not what was answered then"
            raise CallFailed("messages", f"{found}; return the conversation as it was, or only what is new in it")
    return tuple(given[starts[-1] :])


def _refuse_contradiction(messages: Sequence[Json], response: Response) -> None:
    """Raise CallFailed if a response has another answer, or other calls, than its messages."""
    calls = None if response.tool_calls is None else list(response.tool_calls)
    own = _with_roles(messages)
    if why := beside_turn(own, response=response.response, tool_calls=calls, error=response.error):
        raise CallFailed("messages", f"the answer to a turn {why}")


def _with_refusal(messages: tuple[Json, ...], refusal: str | None) -> tuple[Json, ...]:
    """Return the messages of a turn with a refusal that was given beside them."""
    if not refusal or "".join(refusal.split()) in "".join((refusal_in(_with_roles(messages)) or "").split()):
        return messages
    return _with_fields(messages, {"refusal": refusal})


def _with_fields(messages: tuple[Json, ...], fields: Json) -> tuple[Json, ...]:
    """Return the messages of a turn with these fields in the last of the assistant, or in one of their own."""
    *others, last = messages
    if not fields:
        return messages
    if with_role(dict(last)).get("role") == ASSISTANT and not any(last.get(name) for name in fields):
        return (*others, {**last, **fields})
    return (*messages, {"role": ASSISTANT, "content": None, **fields})


def _with_roles(messages: Sequence[Json]) -> list[dict[str, Any]]:
    return [{"role": None, **with_role(dict(message))} for message in messages]


def _message(message: object) -> Json:
    if not isinstance(message, Mapping):
        found = shorten(repr(message), 80)
        raise CallFailed("messages", f"a message is a mapping with `role` and `content`, not {found}")
    return message
