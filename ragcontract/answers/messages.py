"""One message of a conversation, in the forms of OpenAI, Anthropic and LangChain: its texts, its calls, its faults.

The content of a message is a text or a list of parts. Every type of part is known: what nobody knows might be what a
rule forbids.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from ragcontract.answers.json_values import comparable
from ragcontract.answers.tool_calls import arguments_of, written
from ragcontract.core.nearest import nearest
from ragcontract.files.schema import shown

Json = Mapping[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
# The parts that hold a text which the user sees, and where.
TEXTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "output_text": ("text",),
    "input_text": ("text",),
    "markdown": ("text", "markdown"),
    "refusal": ("refusal",),
}
SPOKEN = frozenset({"audio", "output_audio"})  # they may have a transcript
CALLS = frozenset(
    {
        "tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "invalid_tool_call", "server_tool_call",
        "function_call", "mcp_call",
    }
)  # fmt: skip
RESULTS = frozenset(
    {
        "tool_result", "mcp_tool_result", "server_tool_result", "function_call_output", "web_search_tool_result",
        "web_fetch_tool_result", "tool_search_tool_result", "code_execution_tool_result",
        "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
    }
)  # fmt: skip
OTHERS = frozenset(
    {
        "image", "image_url", "image_file", "input_image", "input_audio", "video", "video_url", "file", "input_file",
        "document", "search_result", "container_upload", "thinking", "redacted_thinking", "reasoning",
    }
)  # fmt: skip
KNOWN = (*TEXTS, *sorted(SPOKEN | CALLS | RESULTS | OTHERS))
# Fields in which other formats have what is read here under another name.
MISNAMED = {
    "toolcall": "tool_calls",
    "toolcalls": "tool_calls",
    "tooluse": "tool_calls",
    "tooluses": "tool_calls",
    "toolinvocations": "tool_calls",
    "functioncall": "function_call",
    "functioncalls": "tool_calls",
    "parts": "content",
    "blocks": "content",
}
CALL_FIELDS = ("tool_calls", "invalid_tool_calls", "function_call")
FROM_LANGCHAIN = "additional_kwargs"


def texts_in(message: Json) -> Iterator[tuple[str, str]]:
    """Yield the texts and the refusals of a message, each with which of the two it is; skip what is malformed."""
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else _parts(content):
        kind = part.get("type")
        fields = ("transcript",) if kind in SPOKEN else TEXTS.get(kind, ()) if isinstance(kind, str) else ()
        for field in fields:
            if isinstance(part.get(field), str):
                yield "refusal" if field == "refusal" else "text", part[field]
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        yield "refusal", message["refusal"]
    audio = message.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        yield "text", audio["transcript"]


def calls_in(message: Json) -> list[Any]:
    """Return the calls of a message, each once where several of its fields have it."""
    more = message.get(FROM_LANGCHAIN)
    fields = [message, more] if isinstance(more, dict) else [message]
    stated = [_listed(one.get("tool_calls")) + _listed(one.get("invalid_tool_calls")) for one in fields]
    stated += [_listed(one.get("function_call")) for one in fields]
    stated.append([part for part in _parts(message.get("content")) if _is(part, CALLS)])
    made, *others = [calls for calls in stated if calls] or [[]]
    for calls in others:
        known, ids = Counter(map(_identity, made)), {_id(call) for call in made}
        made = [*made]
        for call in calls:
            identity = _identity(call)
            if known[identity]:
                known[identity] -= 1
            elif _id(call) not in ids or arguments_of(written(call)[1]) != {}:
                made.append(call)
    return made


def is_of_tools(message: Json) -> bool:
    """Return whether a message of the user has only results of tools in it, as Anthropic's API takes them."""
    content = message.get("content")
    return isinstance(content, list) and bool(content) and all(_is(part, RESULTS) for part in content)


def faults_of(message: Json, at: str) -> Iterator[str]:
    """Yield what is wrong with a message; the texts of users, systems and tools are not read."""
    role = message.get("role")
    if role not in ROLES:
        found = shown(role) if "role" in message else "nothing"
        yield f"has {found} as the role of {at}; expected {', '.join(map(shown, ROLES[:-1]))} or {shown(ROLES[-1])}"
    elif role == "assistant":
        yield from own_faults(message, at)
    elif calls_in(message):
        yield f"has a tool call in {at}, whose role is {shown(role)}; only the assistant calls tools"


def own_faults(message: Json, at: str) -> Iterator[str]:
    """Yield what is wrong with a message of the assistant."""
    yield from _content_faults(message.get("content"), at)
    if not isinstance(message.get("refusal"), str | None):
        yield f"has {shown(message['refusal'])} as the refusal of {at}; expected text or null"
    for field in CALL_FIELDS:
        value = message.get(field)
        is_list = isinstance(value, list) and all(isinstance(call, dict) for call in value)
        if value is not None and not (isinstance(value, dict) if field == "function_call" else is_list):
            expected = "a call" if field == "function_call" else "a list of calls"
            yield f"has {shown(value)} as the {field} of {at}; expected {expected}"
    for field, value in message.items():
        if value and (meant := meant_by(field)):
            yield f"has {field} in {at}, which is not read; write it as {meant}"


def meant_by(field: str) -> str | None:
    """Return the field that is read, for the name of one in which other formats have calls or texts."""
    return None if field in CALL_FIELDS else MISNAMED.get(field.lower().replace("_", "").replace("-", ""))


def _content_faults(content: Any, at: str) -> Iterator[str]:
    if not isinstance(content, str | list | None):
        yield f"has {shown(content)} as the content of {at}; expected text, a list of parts, or null"
    for number, part in enumerate(content if isinstance(content, list) else ()):
        kind, place = part.get("type") if isinstance(part, dict) else None, f"{at}.content[{number}]"
        if not isinstance(kind, str):
            yield f'has no type in {place}; expected {{"type": "text", "text": …}}'
        elif kind not in KNOWN:
            near = nearest(kind, KNOWN)
            advice = f"did you mean {shown(near)}?" if near else 'write what it says as "text", its calls as tool_calls'
            yield f"has {shown(kind)} as the type of {place}; expected one of {', '.join(KNOWN)}; {advice}"
        elif (fields := TEXTS.get(kind)) and not any(isinstance(part.get(field), str) for field in fields):
            yield f"has no {' or '.join(fields)} in {place}, whose type is {shown(kind)}"


def _parts(content: Any) -> list[Json]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _is(part: Any, kinds: frozenset[str]) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in kinds


def _listed(value: Any) -> list[Any]:
    """Return calls as a list: of a list, its objects; of one call, that."""
    values: Sequence[Any] = value if isinstance(value, list) else [value]
    return [call for call in values if isinstance(call, dict)]


def _identity(call: Json) -> Hashable:
    """Return what is equal for a call that two fields of a message have."""
    name, arguments = written(call)
    read = arguments_of(arguments)
    return repr(name), repr(arguments) if read is None else comparable(read)


def _id(call: Json) -> Hashable:
    """Return the name and the id of a call: LangChain's joined streams have its arguments in one of two fields only."""
    return (repr(written(call)[0]), str(call["id"])) if call.get("id") else object()
