"""A golden query on its way: one question, or the turns of a conversation, each asked until it is answered."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.answers.messages import is_of_tools
from ragcontract.core.text import shorten
from ragcontract.record.golden_questions import Question
from ragcontract.record.interface import CallFailed, Json, Response


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
        self.messages: tuple[Json, ...] = ()
        self._turn = 0
        self._last: Response | None = None

    @property
    def query(self) -> str:
        """What the user says now."""
        return self.question.said[self._turn]

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
        self.messages = _continued(self.messages, self.query, response, self._turn + 1)
        self._last = _merged(self._last, response)
        self._turn += 1
        self.attempt = 1
        if self._turn < len(self.question.turns) and response.error is None:
            return None
        return replace(self._last, messages=self.messages, response=UNSET, tool_calls=None)


def _merged(before: Response | None, now: Response) -> Response:
    """Return the last turn's response; what was retrieved is from the last turn in which anything was."""
    if before is None:
        return now
    results = now.results if now.results is not None else before.results
    contexts = now.retrieved_contexts if now.retrieved_contexts is not None else before.retrieved_contexts
    return replace(now, results=results, retrieved_contexts=contexts)


def _continued(before: Sequence[Json], query: str, response: Response, turn: int) -> tuple[Json, ...]:
    """Return the conversation with this turn: the system gives the whole of it, or what is new, or only its answer."""
    said = {"role": "user", "content": query}
    if response.messages is not None:
        given = [_message(message) for message in response.messages]
        by_user = sum(message.get("role") == "user" and not is_of_tools(message) for message in given)
        if by_user == turn:
            return tuple(given)
        if by_user <= 1:
            return (*before, *([] if by_user else [said]), *given)
        found = f"messages with {by_user} of the user's after turn {turn}"
        raise CallFailed("messages", f"{found}; return the whole conversation, or what is new in it")
    if response.response is UNSET and response.error is None:
        raise CallFailed("no_answer", "a conversation needs an answer in each turn: `response` or `messages`")
    if response.response is UNSET or (response.error is not None and response.response is None):
        return (*before, said)
    answer: dict[str, Any] = {"role": "assistant", "content": response.response}
    if response.tool_calls:
        answer["tool_calls"] = list(response.tool_calls)
    return (*before, said, answer)


def _message(message: object) -> Json:
    if not isinstance(message, Mapping):
        found = shorten(repr(message), 80)
        raise CallFailed("messages", f"a message is a mapping with `role` and `content`, not {found}")
    return message
