"""Splits a conversation into its turns. A turn begins at each message of the user, the first at the first message."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict, replace

from ragcontract.answers.messages import calls_in, faults_of, is_of_tools, own_faults, texts_in
from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.rule import Turn
from ragcontract.core.run import Json, RunRow


def turns_of(row: RunRow, expected: int) -> tuple[Turn, ...] | str:
    """Return the ``expected`` turns of a row's ``messages``; or what is wrong with them; completes "query 'q1' …".

    The response of a turn is the text of the assistant's messages in it, and its calls are theirs. What the assistant
    says before the user belongs to the first turn. After an ``error``, later turns may be missing: they have no answer.
    """
    if row.messages is None and row.error is None:
        return "has no messages, which its turns need; export the conversation as chat messages with role and content"
    messages = row.messages or []
    faults = (fault for index, message in enumerate(messages) for fault in faults_of(message, f"messages[{index}]"))
    if why := next(faults, None):
        return why
    starts = [index for index, message in enumerate(messages) if message["role"] == "user" and not is_of_tools(message)]
    if len(starts) > expected or (len(starts) < expected and row.error is None):
        had = f"has {count(len(starts), 'turn')} in messages, and its golden row has {expected:,}"
        return f"{had}; a turn begins at each message of the user"
    turns: list[Turn] = []
    for start, end in pairwise([*starts, len(messages)]):
        turn = Turn(row=_row(row, messages[start if turns else 0 : end]), message=start)
        if len(str(turn.row.response or "")) > bounds.ANSWER:
            return f"has an answer of more than {bounds.ANSWER:,} characters in turn {len(turns) + 1}"
        turns.append(turn)
    if row.error is not None and len(turns) == expected:  # it ended the last turn
        turns[-1] = replace(turns[-1], row=replace(turns[-1].row, error=row.error))
    return (*turns, *unanswered(row, expected - len(turns)))


def unexported_call(row: RunRow) -> str | None:
    """Return what is wrong with a row without ``tool_calls`` whose messages have some; completes "query 'q1' …".

    A message in a form of its own may have no role. What it has as ``tool_calls`` counts all the same.
    """
    for index, message in enumerate(row.messages or ()):
        at, role = f"messages[{index}]", message.get("role")
        if calls_in(message):
            return f"has [] as tool_calls, and a call in {at}; export all calls, and only the messages of this query"
        if role == "assistant" and (why := next(own_faults(message, at), None)):
            return why
    return None


def unanswered(row: RunRow, turns: int) -> tuple[Turn, ...]:
    """Return turns of which nothing is known, for a conversation that is missing or ended with an error."""
    return (Turn(row=replace(_row(row, []), error=row.error, tool_calls=None)),) * turns


def whole(row: RunRow, turns: Sequence[Turn]) -> RunRow:
    """Return a row for metrics: with the response of the last turn and the calls of all turns, if it has none."""
    fields: dict[str, Any] = {}
    parsed = {*row.__struct_fields__} - row.unparsed
    if "response" in parsed and row.response is UNSET and turns:
        fields["response"] = turns[-1].row.response
    if "tool_calls" in parsed and row.tool_calls is None:
        fields["tool_calls"] = [call for turn in turns for call in turn.row.tool_calls or ()]
    return replace(row, **fields) if fields else row


def _row(row: RunRow, messages: Sequence[Json]) -> RunRow:
    """Return the row of one turn, without what is only known of the whole row."""
    said = [message for message in messages if message["role"] == "assistant"]
    texts = [text for message in said for kind, text in texts_in(message) if kind == "text"]
    refusals = [text for message in said for kind, text in texts_in(message) if kind == "refusal"]
    of_turn = {
        "response": "\n".join(texts) if texts else None,
        "refusal": "\n".join(refusals) or None,
        "tool_calls": [call for message in said for call in calls_in(message)],
    }
    left_out = dict.fromkeys(("error", "mode", "finish_reason", "messages"))
    return RunRow(**{**asdict(row), **left_out, **of_turn})
