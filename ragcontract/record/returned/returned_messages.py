"""Turn what a system returns into plain values, and read the messages of chat models and agents.

Plain values are those that JSON has. Messages are those of OpenAI, Anthropic and LangChain, as objects or mappings;
nothing is imported for them. The JSON of services and commands is decoded here, too: an object with two values for one
key is refused.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import msgspec

from ragcontract.answers.messages import (
    CALL_FIELDS,
    FROM_LANGCHAIN,
    ITEMS,
    REASONS,
    REASONS_OF_LANGCHAIN,
    ROLES_OF_TYPES,
    answer_of,
    calls_in,
    meant_by,
    own_faults,
    refusals_in,
    with_role,
)
from ragcontract.answers.metric_options import CannotScoreError, is_for_calls, telling
from ragcontract.answers.tool_calls import tool_calls, written
from ragcontract.core.safe_text import encodable, printable_json
from ragcontract.files.json_text import fault, first_doubled
from ragcontract.record.interface import CallFailed


def plain(value: object) -> Any:
    """Return a value as JSON has it: scalars of numpy become numbers, and unknown objects become text.

    Raises ValueError if the value is nested without end.
    """
    try:
        return _lists(msgspec.to_builtins(value, str_keys=True, enc_hook=_other))
    except RecursionError as error:
        raise ValueError("is nested without end") from error


def fields_of(value: object) -> Mapping[str, Any] | None:
    """Return the fields of a mapping or a record, such as a dataclass or a pydantic model; None for other values."""
    if isinstance(value, Mapping):
        return {str(name): inner for name, inner in value.items()}
    if isinstance(value, type | str | bytes):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    cls = type(value)
    # In this order: msgspec, pydantic from version 2 on, named tuples, attrs.
    names: Iterable[str] = (
        getattr(cls, "__struct_fields__", None)
        or getattr(cls, "model_fields", None)
        or getattr(cls, "_fields", None)
        or [field.name for field in getattr(cls, "__attrs_attrs__", ())]
    )
    return {name: getattr(value, name, None) for name in names} or None


def part(value: object, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None if there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def as_json(value: Any) -> bytes:
    """Return a value as JSON; lone surrogates, which some services send and UTF-8 does not have, become escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(value))


def printable(document: bytes) -> bytes:
    """Return the same JSON with escapes for all characters that act on a terminal or a CI runner."""
    return printable_json(document.decode()).encode()


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {encodable(str(name)): _encodable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_encodable(inner) for inner in value]
    return encodable(value) if isinstance(value, str) else value


def _lists(value: Any) -> Any:
    """Return builtin values with lists for tuples, which code that walks through JSON would take for scalars."""
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def _other(value: Any) -> Any:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    mapping = fields_of(value)
    if mapping is not None:
        return dict(mapping)
    item = getattr(value, "item", None)  # an array of one number
    if callable(item) and getattr(value, "size", None) == 1:
        return item()
    return list(value) if isinstance(value, Iterable) and hasattr(value, "__len__") else str(value)


ASSISTANT = "assistant"
CALL_EXAMPLE = '{"name": "get_order", "arguments": {"id": "7"}}'
KEPT = ("refusal", "audio", *CALL_FIELDS, "tool_call_id", "name")


def as_message(value: object) -> dict[str, Any]:
    """Return a message in OpenAI's form, with all that may be a text or a call.

    Raises ValueError if a call has an unknown form.
    """
    if is_item(value):
        return with_role(plain(fields_of(value)))
    role = part(value, "role") or part(value, "type")
    made = {"role": ROLES_OF_TYPES.get(role, role) if isinstance(role, str) else role, "content": _content(value)}
    made |= {name: _field(name, inner) for name in KEPT if (inner := part(value, name))}
    stated = {"mode": plain(part(value, "mode")), "finish_reason": finish_reason_of(value), "error": error_of(value)}
    made |= {name: inner for name, inner in stated.items() if inner}
    more = part(value, FROM_LANGCHAIN)
    added = ("refusal", *CALL_FIELDS)
    if isinstance(more, Mapping) and (kept := {name: plain(more[name]) for name in added if more.get(name)}):
        made[FROM_LANGCHAIN] = kept
    unread = {name: plain(inner) for name, inner in (fields_of(value) or {}).items() if inner and meant_by(name)}
    return {**made, **unread}


def is_item(value: object) -> bool:
    """Return whether a value is an item of OpenAI's Responses API other than a message, such as a call."""
    kind = part(value, "type")
    return isinstance(kind, str) and kind in ITEMS and fields_of(value) is not None


def is_message(value: object) -> bool:
    """Return whether a value is a message of a chat, of LangChain and Anthropic, too."""
    fields = fields_of(value) or {}
    role = fields.get("role") or fields.get("type")
    return (isinstance(role, str) and "content" in fields and "results" not in fields) or is_item(value)


def as_call(value: object) -> dict[str, Any]:
    """Return a tool call as a mapping, without null values; raises ValueError if it is not an object."""
    fields = fields_of(value)
    if fields is None:
        raise ValueError(f"a tool call looks like {CALL_EXAMPLE}, not of type {type(value).__name__}")
    return {name: plain(inner) for name, inner in fields.items() if inner is not None}


def answer_in(message: Mapping[str, Any]) -> str | None:
    """Return the text of a message of the assistant; None if it has none. Raises ValueError if it cannot be read."""
    if why := next(own_faults(message, "message"), None):
        raise ValueError(f"it {why}")
    answer = answer_of([message])
    return "" if answer is None and message.get("content") is not None else answer


def calls_of(message: Mapping[str, Any], finish_reason: object = None) -> list[Any] | None:
    """Return the calls of a message of the assistant; None for other messages, or if its calls are lost.

    They are lost if the model stopped to call tools, and the message has no call.
    """
    calls = calls_in(message) if message.get("role") == ASSISTANT else None
    return None if not calls and is_for_calls(finish_reason) else calls


def calls_of_steps(steps: Any) -> Iterator[dict[str, Any]]:
    """Yield the tools in the steps that an older agent returns: pairs of an action and what it gave."""
    for step in steps if isinstance(steps, list | tuple) else ():
        action = step[0] if isinstance(step, list | tuple) and step else step
        if isinstance(name := part(action, "tool"), str):
            given = part(action, "tool_input")
            yield {"name": name, "arguments": given if isinstance(given, Mapping) else {"input": given}}


def together(*lists: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the calls of several lists, by name and arguments; a call that several of them have counts once."""
    made: list[Any] = []
    for calls in lists:
        made = calls_in({"tool_calls": made, FROM_LANGCHAIN: {"tool_calls": [*map(_brief, calls)]}})
    return made


def _brief(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as name and arguments, unless it says more."""
    name, arguments = written(call)
    brief = {"name": name, "arguments": arguments}
    try:
        return brief if tool_calls([call]) == tool_calls([brief]) else dict(call)
    except CannotScoreError:
        return dict(call)


def refusal_in(messages: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the refusals in messages, each text once; None if there are none."""
    return "\n".join(dict.fromkeys(refusals_in(messages))) or None


def finish_reason_of(value: object) -> str | None:
    """Return why a model stopped, as OpenAI, Anthropic and LangChain say it of a message."""
    places = (value, part(value, REASONS_OF_LANGCHAIN))
    return telling(plain(part(place, name)) for place in places if place is not None for name in REASONS)


def error_of(value: object) -> str | None:
    """Return the ``error`` of a returned value as text; None if there is none."""
    error = plain(part(value, "error"))
    if isinstance(error, str):
        return error
    return as_json(error).decode() if error else None


def _content(value: object) -> Any:
    """Return the content of a message; in a list, each text becomes a part with a type."""
    content = plain(part(value, "content"))
    if not isinstance(content, list):
        return content
    return [{"type": "text", "text": item} if isinstance(item, str) else item for item in content]


def _field(name: str, value: Any) -> Any:
    is_list = name in CALL_FIELDS and isinstance(value, list | tuple)
    return [as_call(call) for call in value] if is_list else plain(value)


def decoded_json(content: str | bytes) -> Any:
    """Return the decoded JSON; raises ValueError if it is not JSON, and CallFailed if an object has a key twice."""
    return json.loads(content, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs) and (name := first_doubled(name for name, _ in pairs)) is not None:
        raise CallFailed("bad_answer", fault(name))
    return made
