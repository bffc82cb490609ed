"""Turns what a system returns into values that JSON has, without importing what it was made with.

Reads the messages that chat models and agents return, of OpenAI, Anthropic and LangChain: objects or mappings.

Decodes the JSON of services and commands, and refuses what has two values for one key.
"""

import json
from collections.abc import Iterable, Mapping
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
    texts_in,
    with_role,
)
from ragcontract.answers.metric_options import is_for_calls, telling
from ragcontract.core.safe_text import encodable, printable_json
from ragcontract.files.json_text import fault, first_doubled
from ragcontract.record.interface import CallFailed


def plain(value: object) -> Any:
    """Return a value with only what JSON has; scalars of numpy become numbers, and what is unknown becomes text.

    Raises ValueError if it is nested without end.
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
        return {one.name: getattr(value, one.name, None) for one in fields(value)}
    cls = type(value)
    # In this order: msgspec, pydantic from version 2 on, named tuples, attrs.
    names: Iterable[str] = (
        getattr(cls, "__struct_fields__", None)
        or getattr(cls, "model_fields", None)
        or getattr(cls, "_fields", None)
        or [one.name for one in getattr(cls, "__attrs_attrs__", ())]
    )
    return {name: getattr(value, name, None) for name in names} or None


def part(value: object, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None if there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def as_json(value: Any) -> bytes:
    """Return JSON; halves of characters, which some services send and UTF-8 does not have, become escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(value))


def printable(document: bytes) -> bytes:
    """Return JSON in which nothing acts on a terminal or a CI runner; it stays equal as JSON."""
    return printable_json(document.decode()).encode()


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {encodable(str(name)): _encodable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_encodable(inner) for inner in value]
    return encodable(value) if isinstance(value, str) else value


def _lists(value: Any) -> Any:
    """Return builtin values with lists for tuples, which whatever walks through JSON would take for a value."""
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def _other(value: Any) -> Any:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    found = fields_of(value)
    if found is not None:
        return dict(found)
    item = getattr(value, "item", None)  # an array of one number
    if callable(item) and getattr(value, "size", None) == 1:
        return item()
    return list(value) if isinstance(value, Iterable) and hasattr(value, "__len__") else str(value)


ASSISTANT = "assistant"
CALL_EXAMPLE = '{"name": "get_order", "arguments": {"id": "7"}}'
KEPT = ("refusal", "audio", *CALL_FIELDS, "tool_call_id", "name")


def as_message(value: object) -> dict[str, Any]:
    """Return a message in OpenAI's form, with all that may be a text or a call; raises ValueError for other calls."""
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
    """Return whether a value is an item of OpenAI's Responses API that is no message, such as a call, with any role."""
    kind = part(value, "type")
    return isinstance(kind, str) and kind in ITEMS and fields_of(value) is not None


def as_call(value: object) -> dict[str, Any]:
    """Return a tool call as a mapping, without what is null; raises ValueError if it is none."""
    fields = fields_of(value)
    if fields is None:
        raise ValueError(f"a tool call looks like {CALL_EXAMPLE}, not of type {type(value).__name__}")
    return {name: plain(inner) for name, inner in fields.items() if inner is not None}


def answer_in(message: Mapping[str, Any]) -> str | None:
    """Return what a message of the assistant says; None without a text. Raises ValueError if it cannot be read."""
    if why := next(own_faults(message, "message"), None):
        raise ValueError(f"it {why}")
    answer = answer_of([message])
    return "" if answer is None and message.get("content") is not None else answer


def calls_of(message: Mapping[str, Any], finish_reason: object = None) -> list[Any] | None:
    """Return the calls of a message; None if it is not the assistant's, which alone can have some, or has lost them.

    It has lost them if the model stopped to have tools called, and there is no call.
    """
    calls = calls_in(message) if message.get("role") == ASSISTANT else None
    return None if not calls and is_for_calls(finish_reason) else calls


def refusal_in(messages: Iterable[Mapping[str, Any]]) -> str | None:
    """Return what messages refuse with, each text once; None if they do not."""
    refusals = (text for message in messages for kind, text in texts_in(message) if kind == "refusal")
    return "\n".join(dict.fromkeys(refusals)) or None


def finish_reason_of(value: object) -> str | None:
    """Return why a model stopped, as OpenAI, Anthropic and LangChain say it of a message."""
    places = (value, part(value, REASONS_OF_LANGCHAIN))
    return telling(plain(part(place, name)) for place in places if place is not None for name in REASONS)


def error_of(value: object) -> str | None:
    """Return the error that something which a system returned has beside its answer."""
    error = plain(part(value, "error"))
    return error if isinstance(error, str) or not error else as_json(error).decode()


def _content(value: object) -> Any:
    """Return the content with each of its texts as a part with a type, where it is a list."""
    content = plain(part(value, "content"))
    if not isinstance(content, list):
        return content
    return [{"type": "text", "text": one} if isinstance(one, str) else one for one in content]


def _field(name: str, value: Any) -> Any:
    is_list = name in CALL_FIELDS and isinstance(value, list | tuple)
    return [as_call(one) for one in value] if is_list else plain(value)


def decoded_json(content: str | bytes) -> Any:
    """Return the decoded JSON; raises ValueError if it is none, and CallFailed if an object has a key twice."""
    return json.loads(content, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs) and (name := first_doubled(name for name, _ in pairs)) is not None:
        raise CallFailed("bad_answer", fault(name))
    return made
