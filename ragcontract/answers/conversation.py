"""Splits a conversation into its turns. A turn begins at each message of the user."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from msgspec import UNSET
from msgspec.structs import asdict, replace

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.rule import Turn
from ragcontract.core.run import Json, RunRow
from ragcontract.files.schema import shown

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
TEXTS = {"text": "text", "output_text": "text", "refusal": "refusal"}  # parts of a content, and what they hold


def turns_of(row: RunRow, expected: int) -> tuple[Turn, ...] | str:
    """Return the ``expected`` turns of a row's ``messages``; or what is wrong with them; completes "query 'q1' …".

    The response of a turn is the text of the assistant's messages in it, and its calls are theirs. After an ``error``,
    later turns may be missing: they have no answer.
    """
    if row.messages is None and row.error is None:
        return "has no messages, which its turns need; export the conversation as chat messages with role and content"
    messages = row.messages or []
    if why := next(_faults(messages), None):
        return why
    starts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    if len(starts) > expected or (len(starts) < expected and row.error is None):
        had = f"has {count(len(starts), 'turn')} in messages, and its golden row has {expected:,}"
        return f"{had}; a turn begins at each message of the user"
    turns: list[Turn] = []
    for start, end in pairwise([*starts, len(messages)]):
        turn = Turn(row=_row(row, messages[start:end]), message=start)
        if len(str(turn.row.response or "")) > bounds.ANSWER:
            return f"has an answer of more than {bounds.ANSWER:,} characters in turn {len(turns) + 1}"
        turns.append(turn)
    if row.error is not None and len(turns) == expected:  # it ended the last turn
        turns[-1] = replace(turns[-1], row=replace(turns[-1].row, error=row.error))
    return (*turns, *unanswered(row, expected - len(turns)))


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
    texts = [text for message in said for kind, text in _texts(message) if kind == "text"]
    refusals = [text for message in said for kind, text in _texts(message) if kind == "refusal"]
    of_turn = {
        "response": "\n".join(texts) if texts else None,
        "refusal": "\n".join(refusals) or None,
        "tool_calls": [call for message in said for call in message.get("tool_calls") or ()],
    }
    left_out = dict.fromkeys(("error", "mode", "finish_reason", "messages"))
    return RunRow(**{**asdict(row), **left_out, **of_turn})


def _texts(message: Json) -> Iterator[tuple[str, str]]:
    """Yield the texts of a valid message and its refusals, each with what it is."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    for part in parts:
        if field := TEXTS.get(part["type"]):
            yield field, part[field]
    if message.get("refusal"):
        yield "refusal", message["refusal"]


def _faults(messages: Sequence[Json]) -> Iterator[str]:
    """Yield what is wrong with messages; what users, systems and tools said is not read."""
    for index, message in enumerate(messages):
        at, role = f"messages[{index}]", message.get("role")
        if role not in ROLES:
            found = shown(role) if "role" in message else "nothing"
            yield f"has {found} as the role of {at}; expected {', '.join(map(shown, ROLES[:-1]))} or {shown(ROLES[-1])}"
        elif role == "assistant":
            yield from _content_faults(message.get("content"), at)
            if not isinstance(message.get("refusal"), str | None):
                yield f"has {shown(message['refusal'])} as the refusal of {at}; expected text or null"
            calls = message.get("tool_calls")
            if calls is not None and not (isinstance(calls, list) and all(isinstance(call, dict) for call in calls)):
                yield f"has {shown(calls)} as the tool_calls of {at}; expected a list of calls"


def _content_faults(content: Any, at: str) -> Iterator[str]:
    if not isinstance(content, str | list | None):
        yield f"has {shown(content)} as the content of {at}; expected text, a list of parts, or null"
    for number, part in enumerate(content if isinstance(content, list) else ()):
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str):
            yield f'has no type in {at}.content[{number}]; expected {{"type": "text", "text": …}}'
        elif (field := TEXTS.get(kind)) and not isinstance(part.get(field), str):
            yield f"has no {field} in {at}.content[{number}], whose type is {shown(kind)}"
