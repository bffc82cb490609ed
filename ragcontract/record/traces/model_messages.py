"""What a model says in a span: the messages of its output, with their texts and the tool calls that it asks for.

They have the attributes of OpenInference, or OpenTelemetry's form with parts, which some applications fill with
OpenAI's.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.answers.tool_calls import written
from ragcontract.record.traces.retrievals import Attributes, Span, at, listed_at, parsed, text_at

NOT_CAPTURED = "(not captured)"  # as arguments: not a JSON object, so the call counts as one that cannot be read

FUNCTION_CALL = "llm.function_call"  # OpenInference's, beside the messages
NO_CALL: tuple[Any, ...] = (None, "", "null", {})
OPENINFERENCE, OPENTELEMETRY = "llm.output_messages", "gen_ai.output.messages"
CALLS = {"tool_call", "server_tool_call", "tool_use", "function_call"}
TEXTS = {"text", "output_text"}
OTHERS = {
    "reasoning", "thinking", "refusal", "image", "audio", "video", "file", "document", "blob", "uri",
    "tool_call_response", "server_tool_call_response",
}  # fmt: skip


class AskedCall(Struct, frozen=True, kw_only=True):
    """A call of a tool in a trace."""

    name: str
    arguments: Any
    id: str | None = None

    @property
    def is_captured(self) -> bool:
        return bool(self.arguments != NOT_CAPTURED)

    @property
    def content(self) -> str:
        """The name and the arguments, as something to compare."""
        return json.dumps([self.name, self.arguments], sort_keys=True, default=repr)


class Message(Struct, frozen=True, kw_only=True):
    """A message of a model."""

    text: str = ""
    calls: Sequence[AskedCall] = ()
    is_whole: bool = False  # whether nothing in it is left out or unknown


def messages_of(span: Span) -> list[Message]:
    """Return the messages of a model in a span; a list that cannot be read is a message that is not whole."""
    messages = [
        *map(_openinference, _listed(span.attributes, OPENINFERENCE)),
        *map(_opentelemetry, _listed(span.attributes, OPENTELEMETRY)),
    ]
    return [*messages, Message()] if messages and span.dropped else messages


def calls_of(span: Span) -> list[AskedCall] | None:
    """Return the calls that a model asks for in a span, each once; None if one beside its messages cannot be read."""
    calls = [call for message in messages_of(span) for call in message.calls]
    stated = parsed(at(span.attributes, FUNCTION_CALL))
    beside = stated if isinstance(stated, list) else [] if stated in NO_CALL else [stated]
    asked = list(map(_call, beside))
    others = [call for call in asked if call is not None]
    return _with_others(calls, others) if len(others) == len(asked) else None


def _with_others(calls: Sequence[AskedCall], others: Sequence[AskedCall]) -> list[AskedCall]:
    """Return calls, then those that only others have; a call without its arguments gets those of its name."""
    merged = list(calls)
    for other in _new(others, calls):
        same = (index for index, call in enumerate(merged) if call.name == other.name)
        lacking = next((index for index in same if not merged[index].is_captured or not other.is_captured), None)
        if lacking is None:
            merged.append(other)
        elif other.is_captured:
            merged[lacking] = other
    return merged


def arguments_of(value: Any) -> Any:
    """Return the arguments of a call; a text becomes the ``input``. Other values that are not objects stay."""
    if value is None:
        return NOT_CAPTURED
    arguments = parsed(value)
    if isinstance(arguments, str) and arguments and not arguments.lstrip().startswith(("{", "[", '"')):
        return {"input": arguments}
    return {} if arguments == "" else arguments


def _listed(attributes: Attributes, path: str) -> list[Attributes | None]:
    """Return the messages that an attribute lists, with None for anything that is not a message."""
    listed = parsed(at(attributes, path))
    if isinstance(listed, str):  # cut off, or not JSON
        return [None]
    messages = listed_at(attributes, path) or []
    lost = isinstance(listed, Sequence) and len(messages) < len(listed)
    return [*messages, None] if lost else list(messages)


def _openinference(message: Attributes | None) -> Message:
    if message is None:
        return Message()
    parts, beside = _listed(message, "message.contents"), _listed(message, "message.tool_calls")
    calls = list(filter(None, map(_call_in, beside)))
    are_whole = len(calls) == len(beside) and all(map(_is_whole, parts))
    calls += _new(list(filter(None, map(_call_in, parts))), calls)
    texts = [at(part, PART + "text") for part in parts if part is not None and _is_text(part)]
    content = at(message, "message.content")
    if name := text_at(message, "message.function_call_name"):
        arguments = arguments_of(at(message, "message.function_call_arguments_json"))
        calls.append(AskedCall(name=name, arguments=arguments))
    says_something = isinstance(content, str) or bool(parts or calls)
    return Message(text=_joined(content, texts), calls=calls, is_whole=are_whole and says_something)


PART = "message_content."
FORMS_OF_CALLS = (  # the name, the arguments and the id of a call; the last is of instrumentations for JavaScript
    ("tool_call.function.name", "tool_call.function.arguments", "tool_call.id"),
    (PART + "tool_call.function.name", PART + "tool_call.function.arguments", PART + "tool_call.id"),
    (PART + "tool_use.name", PART + "tool_use.input", PART + "tool_use.id"),
)


def _call_in(item: Attributes | None) -> AskedCall | None:
    """Return the call in an item of a message's calls or of its contents; None if it has none with a name."""
    if item is None:
        return None
    for name, arguments, call_id in FORMS_OF_CALLS:
        if called := text_at(item, name):
            return AskedCall(name=called, arguments=arguments_of(at(item, arguments)), id=text_at(item, call_id))
    return None


def _new(calls: Sequence[AskedCall], others: Sequence[AskedCall]) -> list[AskedCall]:
    """Return the calls that are not among others, with the same id or with the same name and arguments."""
    ids = {other.id for other in others if other.id}
    left = Counter(other.content for other in others)
    new = []
    for call in calls:
        if call.id in ids or left[call.content] > 0:
            left[call.content] -= 1
        else:
            new.append(call)
    return new


def _kind(part: Attributes) -> str:
    return text_at(part, PART + "type") or ""


def _is_text(part: Attributes) -> bool:
    """Return whether a part has a text; one without a type may."""
    return _kind(part) in {"", *TEXTS} and isinstance(at(part, PART + "text"), str)


def _is_whole(part: Attributes | None) -> bool:
    """Return whether a part is a call with a name, or of a kind that has no call."""
    if part is None or _call_in(part) is not None:
        return part is not None
    return _kind(part) in TEXTS | OTHERS or _is_text(part)


def _opentelemetry(message: Attributes | None) -> Message:
    """Return a message in OpenTelemetry's form with ``parts``, or OpenAI's with ``content`` and ``tool_calls``."""
    if message is None:
        return Message()
    content, listed = message.get("content"), [message.get(name) for name in ("parts", "content", "tool_calls")]
    parts = [part for items in listed if isinstance(items, list) for part in items]
    asked = [part for part in parts if isinstance(part, Mapping) and part.get("type") in CALLS]
    asked += [call for call in _calls_beside(message) if call not in asked]
    calls = list(filter(None, map(_call, asked)))
    texts = [
        text
        for part in parts
        if isinstance(part, Mapping) and part.get("type") in TEXTS
        for text in (part.get("content"), part.get("text"))
        if isinstance(text, str)
    ]
    known = CALLS | TEXTS | OTHERS
    are_known = all(part in asked or (isinstance(part, Mapping) and part.get("type") in known) for part in parts)
    says_something = isinstance(content, str) or bool(parts or asked)
    return Message(
        text=_joined(content, texts), calls=calls, is_whole=are_known and says_something and len(calls) == len(asked)
    )


def _calls_beside(message: Attributes) -> Iterator[Any]:
    """Yield the calls beside the content of a message in OpenAI's form."""
    listed = message.get("tool_calls")
    yield from listed if isinstance(listed, list) else ()
    if (call := message.get("function_call")) is not None:
        yield call


def _call(part: Any) -> AskedCall | None:
    """Return the call in a part of a message; None if it has no name."""
    if not isinstance(part, Mapping):
        return None
    name, arguments = written(part)
    inner = part.get("server_tool_call")
    if arguments is None and isinstance(inner, Mapping):
        arguments = {key: value for key, value in inner.items() if key != "type"} or None
    return AskedCall(name=name, arguments=arguments_of(arguments)) if isinstance(name, str) and name else None


def _joined(content: Any, texts: Sequence[str]) -> str:
    """Return the text of a message, which may have it twice: as content and in parts."""
    whole = "".join(texts)
    if not isinstance(content, str) or content == whole:
        return whole
    return f"{content}\n{whole}" if whole else content
