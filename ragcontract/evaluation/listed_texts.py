"""Cuts what the application said and saw for one query to what reports show of it."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, UnsetType

from ragcontract.core import bounds
from ragcontract.core.run import Json, RunRow
from ragcontract.core.said import Message, Said, ToolCall, called
from ragcontract.core.text import shorten

T = TypeVar("T")


def said_in(row: RunRow, k: int) -> Said:
    """Return what a row says, and the contexts that its model saw: those of its first ``k`` results, if it has no own.

    A field that the row lacks, or in which something else stands than expected, is left out: only rules and metrics
    that need a field refuse it.
    """
    calls = _read(row, "tool_calls", list[Json])
    contexts = _contexts(row, k)
    messages = _read(row, "messages", list[Json])
    return Said(
        response=_text(row, "response", bounds.SAID),
        error=_text(row, "error", bounds.SAID),
        mode=_text(row, "mode", bounds.SAID_NAME),
        label=_text(row, "label", bounds.SAID_NAME),
        refusal=_text(row, "refusal", bounds.SAID),
        finish_reason=_text(row, "finish_reason", bounds.SAID_NAME),
        tool_calls=None if calls is None else tuple(map(_call, calls[: bounds.SAID_CALLS])),
        more_tool_calls=max(0, len(calls or ()) - bounds.SAID_CALLS),
        messages=None if messages is None else tuple(map(_message, messages[: bounds.SAID_MESSAGES])),
        more_messages=max(0, len(messages or ()) - bounds.SAID_MESSAGES),
        contexts=None if contexts is None else tuple(map(_context, contexts[: bounds.SAID_CONTEXTS])),
        more_contexts=max(0, len(contexts or ()) - bounds.SAID_CONTEXTS),
    )


def _text(row: RunRow, field: str, length: int) -> str | None:
    text = _read(row, field, str)
    return None if text is None else shorten(text, length)


def _context(text: str) -> str:
    return shorten(text, bounds.SAID_CONTEXT)


def _contexts(row: RunRow, k: int) -> Sequence[str] | None:
    own = _read(row, "retrieved_contexts", list[str])
    if own is not None:
        return own
    texts = [_read(result, "text", str) for result in islice(row.results, k)]
    known = [text for text in texts if text is not None]
    return known or None


def _call(call: Json) -> ToolCall:
    from ragcontract.answers.tool_calls import written

    name, arguments = written(call)
    if not isinstance(arguments, str):  # OpenAI writes them as JSON within a text
        arguments = "" if arguments is None else msgspec.json.encode(arguments).decode()
    return ToolCall(
        name=shorten(name if isinstance(name, str) else "", bounds.SAID_ARGUMENTS),
        arguments=shorten(arguments, bounds.SAID_ARGUMENTS),
    )


def _message(message: Json) -> Message:
    from ragcontract.answers.messages import calls_in, texts_in, with_role

    message = with_role(message)
    texts = [text for _, text in texts_in(message)]
    calls = [called(_call(call)) for call in calls_in(message)]
    text, role = "\n".join(filter(None, (*texts, *calls))), message.get("role")
    role = role if isinstance(role, str) else ""
    return Message(role=shorten(role, bounds.SAID_NAME), text=shorten(text, bounds.SAID_MESSAGE))


def _read(record: Any, field: str, kind: type[T]) -> T | None:
    """Return a field of a row or a result, parsed here or before; None if it is absent or not of this kind."""
    value: Raw | str | list[str] | list[Json] | UnsetType | None = getattr(record, field, None)
    if value is None or isinstance(value, UnsetType):
        return None
    try:
        return msgspec.json.decode(value, type=kind) if isinstance(value, Raw) else msgspec.convert(value, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
