"""What a span says that a model wrote: the texts of its messages, and the tools that they ask for.

Messages have the attributes of OpenInference, or are OpenTelemetry's with parts, as some applications write OpenAI's.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.answers.tool_calls import written
from ragcontract.record.traces.spans import Attributes, Span, at, listed_at, parsed, text_at

NOT_CAPTURED = "(not captured)"  # as arguments: no JSON object, so that it counts as a call that cannot be read
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

    @property
    def is_captured(self) -> bool:
        """Whether the trace has its arguments."""
        return bool(self.arguments != NOT_CAPTURED)


class Message(Struct, frozen=True, kw_only=True):
    """A message of a model; ``is_whole`` if nothing in it is left out or unknown."""

    text: str = ""
    calls: Sequence[AskedCall] = ()
    is_whole: bool = False


def messages_of(span: Span) -> list[Message]:
    """Return the messages that a span says a model wrote; a list that cannot be read is a message that is not whole."""
    found = [
        *map(_openinference, _listed(span.attributes, OPENINFERENCE)),
        *map(_opentelemetry, _listed(span.attributes, OPENTELEMETRY)),
    ]
    return [*found, Message()] if found and span.dropped else found


def says_calls(span: Span) -> bool:
    """Return whether a model's span says which tools the model asked for, or that it asked for none."""
    messages = messages_of(span)
    has_calls = any(message.calls for message in messages)
    if not has_calls and any("tool" in reason or "function" in reason for reason in _finish_reasons(span)):
        return False
    if messages:
        return all(message.is_whole for message in messages)
    return not span.dropped and (span.error is not None or _takes_a_prompt(span))


def arguments_of(value: Any) -> Any:
    """Return the arguments; of a tool that takes a text, as its input. What else is no object stays as it is."""
    if value is None:
        return NOT_CAPTURED
    found = parsed(value)
    if isinstance(found, str) and found and not found.lstrip().startswith(("{", "[", '"')):
        return {"input": found}
    return {} if found == "" else found


def _listed(attributes: Attributes, path: str) -> list[Attributes | None]:
    """Return the messages that an attribute lists; None for what is no message."""
    found = parsed(at(attributes, path))
    if isinstance(found, str):  # cut off, or no JSON
        return [None]
    messages = listed_at(attributes, path) or []
    lost = isinstance(found, Sequence) and len(messages) < len(found)
    return [*messages, None] if lost else list(messages)


def _openinference(message: Attributes | None) -> Message:
    if message is None:
        return Message()
    contents = listed_at(message, "message.contents") or []
    texts = [text for one in contents if (text := text_at(one, "message_content.text")) and _is_text(one)]
    content = at(message, "message.content")
    asked = listed_at(message, "message.tool_calls") or []
    calls = [
        AskedCall(name=name, arguments=arguments_of(at(call, "tool_call.function.arguments")))
        for call in asked
        if (name := text_at(call, "tool_call.function.name"))
    ]
    is_whole = len(calls) == len(asked) and bool(isinstance(content, str) or contents or asked)
    if name := text_at(message, "message.function_call_name"):
        arguments = arguments_of(at(message, "message.function_call_arguments_json"))
        calls, is_whole = [*calls, AskedCall(name=name, arguments=arguments)], len(calls) == len(asked)
    return Message(text=_joined(content, texts), calls=calls, is_whole=is_whole)


def _is_text(content: Attributes) -> bool:
    return at(content, "message_content.type") in {None, *TEXTS}


def _opentelemetry(message: Attributes | None) -> Message:
    """Return a message of OpenTelemetry's, with ``parts``, or of OpenAI's, with ``content`` and ``tool_calls``."""
    if message is None:
        return Message()
    content, listed = message.get("content"), [message.get(name) for name in ("parts", "content", "tool_calls")]
    parts = [part for one in listed if isinstance(one, list) for part in one]
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
    """Yield the calls that OpenAI's messages have beside their content."""
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
    """Return the text of a message, which may have it twice: as its content, and in parts."""
    whole = "".join(texts)
    if not isinstance(content, str) or content == whole:
        return whole
    return f"{content}\n{whole}" if whole else content


def _finish_reasons(span: Span) -> Iterator[str]:
    """Yield why a model stopped, in lower case."""
    reasons = parsed(at(span.attributes, "gen_ai.response.finish_reasons"))
    messages = listed_at(span.attributes, OPENTELEMETRY) or []
    for reason in (
        *(reasons if isinstance(reasons, list) else [reasons]),
        at(span.attributes, "llm.finish_reason"),
        *(message.get("finish_reason") for message in messages),
    ):
        if isinstance(reason, str):
            yield reason.lower()


def _takes_a_prompt(span: Span) -> bool:
    """Return whether a model completes a text, and is offered no tools."""
    names = [name for name in span.attributes if name.startswith(("llm.prompts", "llm.tools"))]
    has_tools = any(name.startswith("llm.tools") for name in names) or at(span.attributes, "llm.tools") is not None
    is_completion = at(span.attributes, "gen_ai.operation.name") == "text_completion"
    return not has_tools and (is_completion or bool(names) or at(span.attributes, "llm.prompts") is not None)
