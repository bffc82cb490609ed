"""Reads the messages that chat models and agents return, of OpenAI, Anthropic and LangChain: objects or mappings."""

from collections.abc import Iterable, Mapping
from typing import Any

from ragcontract.answers.finish_reasons import is_for_calls
from ragcontract.answers.messages import (
    CALL_FIELDS,
    FROM_LANGCHAIN,
    ITEMS,
    ROLES_OF_TYPES,
    answer_of,
    calls_in,
    meant_by,
    own_faults,
    texts_in,
    with_role,
)
from ragcontract.record.returned.plain_values import as_json, fields_of, part, plain

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
    places = (value, part(value, "response_metadata"))
    stated = (part(place, name) for place in places if place is not None for name in ("finish_reason", "stop_reason"))
    return next((reason for reason in stated if isinstance(reason, str)), None)


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
