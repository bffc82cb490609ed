"""Reads the texts, the calls and the faults of a message, in the forms of OpenAI, Anthropic and LangChain.

The content of a message is a text or a list of parts. A part of an unknown type is a fault, because it might have a
text that a rule forbids.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragcontract.answers.json_answer import comparable
from ragcontract.answers.metric_options import telling
from ragcontract.answers.tool_calls import ARGUMENTS, BUILT_IN, arguments_of, more_in, parts_of, written
from ragcontract.core.nearest import nearest
from ragcontract.core.phrase import Message, Name, private
from ragcontract.core.run import OTHER_NAMES
from ragcontract.files.schema import shown

JsonObject = Mapping[str, Any]

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
# The types of parts with a text that the user sees, and the fields that have it.
TEXTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text",),
    "output_text": ("text",),
    "input_text": ("text",),
    "markdown": ("text", "markdown"),
    "refusal": ("refusal",),
}
SPOKEN = frozenset({"audio", "output_audio"})  # they may have a transcript
CALLS = BUILT_IN | {
    "tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "invalid_tool_call", "server_tool_call",
    "function_call", "mcp_call", "custom_tool_call",
}  # fmt: skip
RESULTS = frozenset(
    {
        "tool_result", "mcp_tool_result", "server_tool_result", "function_call_output", "web_search_tool_result",
        "web_fetch_tool_result", "tool_search_tool_result", "code_execution_tool_result",
        "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "custom_tool_call_output",
        "computer_call_output", "local_shell_call_output", "shell_call_output", "apply_patch_call_output",
        "tool_search_output",
    }
)  # fmt: skip
OTHERS = frozenset(
    {
        "image", "image_url", "image_file", "input_image", "input_audio", "video", "video_url", "file", "input_file",
        "document", "search_result", "container_upload", "thinking", "redacted_thinking", "reasoning",
        "mcp_list_tools",
    }
)  # fmt: skip
KNOWN = (*TEXTS, *sorted(SPOKEN | CALLS | RESULTS | OTHERS))
ROLES_OF_TYPES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}  # LangChain's
# The types of OpenAI's Responses API: an item without a role is a message that has only this part.
ITEMS = {
    **dict.fromkeys(CALLS | {"reasoning", "mcp_list_tools"}, "assistant"),
    **dict.fromkeys(RESULTS, "tool"),
}
TEXT_FIELDS = (
    "content", "contents", "text", "message", "msg", "output", "outputtext", "response", "answer", "reply",
    "completion", "value", "body", "markdown", "generatedtext", "generatedanswer",
)  # fmt: skip
# The names that other formats give to fields that are read here.
MISNAMED = {
    **dict.fromkeys(
        (
            "toolcall", "toolcalls", "tooluse", "tooluses", "toolinvocations", "toolscalled", "tool", "toolname",
            "toolinput", "action", "actions", "calls", "steps", "intermediatesteps", "functioncalls", "function",
            *(name.replace("_", "") for name in ARGUMENTS),
        ),
        "tool_calls",
    ),
    "functioncall": "function_call",
    **dict.fromkeys(("parts", "blocks", *TEXT_FIELDS), "content"),
}  # fmt: skip
CALL_FIELDS = ("tool_calls", "invalid_tool_calls", "function_call", "tool_call_chunks")
MESSAGE = frozenset({"role", "content", *CALL_FIELDS})  # fields that are not part of the call in a message that is one
RESULT_IDS = ("tool_call_id", "call_id", "tool_use_id")
CALL_IDS = ("id", *RESULT_IDS)
FROM_LANGCHAIN = "additional_kwargs"
UNKNOWN_CALLS = "calls_unknown"  # true in a message whose calls, if it has any, are not recorded
CALLING = frozenset({*CALL_FIELDS, FROM_LANGCHAIN})
# Where a message, or its metadata of LangChain, says why the model stopped: OpenAI, Anthropic, Google, Amazon, Ollama.
REASONS = ("finish_reason", *(name for name, field in OTHER_NAMES.items() if field == "finish_reason"))
REASONS_OF_LANGCHAIN = "response_metadata"


def with_role(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its role, which LangChain's messages and OpenAI's items have as their type."""
    kind = message.get("type")
    if isinstance(kind, str) and kind in ITEMS and message.get("role") is not None and "content" not in message:
        item = {field: value for field, value in message.items() if field != "role"}
        return {"role": message["role"], "content": [item]}
    if message.get("role") is not None or not isinstance(kind, str):
        return message
    if kind in ITEMS:
        return {"role": ITEMS[kind], "content": [message]}
    role = ROLES_OF_TYPES.get(kind, kind)
    stored = message.get("data") if "content" not in message else None  # as LangChain's messages_to_dict writes it
    fields = stored if isinstance(stored, dict) else {}
    return {**message, **fields, "role": role} if role in ROLES else message


def with_roles(messages: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Return messages with their roles; None for those without one."""
    return [{"role": None, **with_role(dict(message))} for message in messages]


def texts_in(message: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield the texts and the refusals of a message, each after its kind; skip malformed parts."""
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else _parts(content):
        kind = part.get("type")
        names = ("transcript",) if kind in SPOKEN else TEXTS.get(kind, ()) if isinstance(kind, str) else ()
        for field in names:
            if isinstance(part.get(field), str):
                yield "refusal" if field == "refusal" else "text", part[field]
    more = message.get(FROM_LANGCHAIN)
    for fields in (message, more) if isinstance(more, dict) else (message,):
        if isinstance(fields.get("refusal"), str) and fields["refusal"]:
            yield "refusal", fields["refusal"]
    audio = message.get("audio")
    if isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        yield "text", audio["transcript"]


def refusals_in(messages: Iterable[JsonObject]) -> list[str]:
    """Return all refusals in messages."""
    return [text for message in messages for kind, text in texts_in(message) if kind == "refusal"]


def reasons_in(message: JsonObject) -> Iterator[object]:
    """Yield why a model stopped after a message, as each of its fields says it."""
    more = message.get(REASONS_OF_LANGCHAIN)
    for fields in (message, more) if isinstance(more, dict) else (message,):
        yield from (fields[name] for name in REASONS if name in fields)


def came_about(message: JsonObject) -> dict[str, str]:
    """Return the fields of a row that a message of the assistant has: its mode, why it stopped, and its error."""
    stated: dict[str, str] = {}
    if isinstance(mode := message.get("mode"), str):
        stated["mode"] = mode
    if reason := telling(reasons_in(message)):
        stated["finish_reason"] = reason
    if error := message.get("error"):
        stated["error"] = error if isinstance(error, str) else shown(error)
    return stated


def answer_of(messages: Iterable[JsonObject]) -> str | None:
    """Return the texts of messages of the assistant, joined; the parts of a message are one text."""
    texts = [[text for kind, text in texts_in(message) if kind == "text"] for message in messages]
    return "\n".join(map("".join, filter(None, texts))) if any(texts) else None


def letters_of(text: object) -> str:
    """Return a text without its blanks and line ends; empty if there is none."""
    return "".join(str(text or "").split())


def calls_in(message: JsonObject) -> list[Any]:
    """Return the calls of a message; a call that several fields have counts once."""
    is_call = _is(message, CALLS)
    if CALLING.isdisjoint(message) and not is_call and not isinstance(message.get("content"), list):  # the common case
        return []
    more = message.get(FROM_LANGCHAIN)
    fields = [message, more] if isinstance(more, dict) else [message]
    stated = [_listed(carrier.get("tool_calls")) + _listed(carrier.get("invalid_tool_calls")) for carrier in fields]
    stated += [_listed(carrier.get(field)) for carrier in fields for field in ("function_call", "tool_call_chunks")]
    stated.append([part for part in _parts(message.get("content")) if _is(part, CALLS)])
    stated.append([{field: message[field] for field in message if field not in MESSAGE}] if is_call else [])
    made, *others = [calls for calls in stated if calls] or [[]]
    for calls in others:
        known = Counter(map(_identity, made))
        ids = {_id(call) for call in made if arguments_of(written(call)[1]) != {}}
        made = [*made]
        for call in calls:
            identity = _identity(call)
            if known[identity]:
                known[identity] -= 1
            elif _id(call) not in ids or arguments_of(written(call)[1]) != {}:
                made.append(call)
    return made


def results_without_call(messages: Sequence[JsonObject], called: Sequence[JsonObject]) -> Iterator[int]:
    """Yield the places of messages with the result of a tool whose call is neither before them nor ``called``.

    Each call stands for one result, which names it by an id, by the tool's name, by both or not at all. A result with
    an id that no call has may be that of a call without one.
    """
    if not any(map(_results_in, messages)):
        return
    made = _Uncollected()
    own = (call for message in messages for call in calls_in(message)) if called else ()
    in_messages = Counter(map(_identity, own))
    for call in called:  # those that messages have, too, are made where they stand there
        in_messages[_identity(call)] -= 1
        if in_messages[_identity(call)] < 0:
            made.add(call)
    for index, message in enumerate(messages):
        for call in calls_in(message):
            made.add(call)
        if not all(map(made.collects, _results_in(message))):
            yield index
            return


class _Uncollected:
    """The calls that have no result yet."""

    def __init__(self) -> None:
        self._calls = self._without_id = 0
        self._ids: Counter[str] = Counter()
        self._tools: Counter[Hashable] = Counter()

    def add(self, call: JsonObject) -> None:
        ids = set(_named(call, CALL_IDS))
        self._calls += 1
        self._without_id += not ids
        self._ids.update(ids)
        self._tools[_tool(written(call)[0])] += 1

    def collects(self, result: JsonObject) -> bool:
        """Take the call of a result away; return whether there was one."""
        ids = _named(result, RESULT_IDS)
        own = [name for name in ids if self._ids[name] > 0]
        self._calls -= 1
        self._ids.subtract(own)
        self._without_id -= bool(ids and not own)
        tool = _tool(result["name"]) if result.get("name") else None
        self._tools[tool] -= tool is not None
        return min(self._calls, self._without_id, self._tools[tool]) >= 0


def _tool(name: object) -> Hashable:
    """Return the name of a tool as it is compared, without a namespace before it."""
    return parts_of(name)[-1] if isinstance(name, str) else repr(name)


def _results_in(message: JsonObject) -> list[JsonObject]:
    parts = [part for part in _parts(message.get("content")) if _is(part, RESULTS)]
    return parts or ([message] if message.get("role") in {"tool", "function"} else [])


def _named(call: JsonObject, fields: Sequence[str]) -> list[str]:
    return [str(call[field]) for field in fields if call.get(field) not in {None, ""}]


def is_of_tools(message: JsonObject) -> bool:
    """Return whether a message of the user has only results of tools in it, as Anthropic's API takes them."""
    content = message.get("content")
    return isinstance(content, list) and bool(content) and all(_is(part, RESULTS) for part in content)


def faults_of(message: JsonObject, at: str) -> Iterator[str]:
    """Yield what is wrong with a message; the texts of users, systems and tools are not read."""
    role = message.get("role")
    if role not in ROLES:
        stated: str | Name = private(shown(role)) if "role" in message else "nothing"
        if role is None and message.get("type") is not None:
            stated = private(f"nothing but the type {shown(message['type'])}")
        roles = f"{', '.join(map(shown, ROLES[:-1]))} or {shown(ROLES[-1])}"
        yield Message.quoting("has ", stated, f" as the role of {at}; expected {roles}")
    elif role == "assistant":
        yield from own_faults(message, at)
    elif calls_in(message):
        yield Message.quoting(
            f"has a tool call in {at}, whose role is ", private(shown(role)), "; only the assistant calls tools"
        )


def own_faults(message: JsonObject, at: str) -> Iterator[str]:
    """Yield what is wrong with a message of the assistant."""
    yield from _content_faults(message.get("content"), at)
    for field in ("refusal", "mode", "finish_reason"):
        if not isinstance(message.get(field), str | None):
            yield _has(message[field], f"as the {field} of {at}; expected text or null")
    if not isinstance(message.get(UNKNOWN_CALLS), bool | None):
        yield _has(message[UNKNOWN_CALLS], f"as the {UNKNOWN_CALLS} of {at}; expected true or false")
    for field in CALL_FIELDS:
        calls = message.get(field)
        is_list = isinstance(calls, list) and all(isinstance(call, dict) for call in calls)
        if calls is not None and not (isinstance(calls, dict) if field == "function_call" else is_list):
            expected = "a call" if field == "function_call" else "a list of calls"
            yield _has(calls, f"as the {field} of {at}; expected {expected}")
    for field, value in message.items():
        is_said = isinstance(value, str | list | dict) and value and value != answer_of([message])
        if is_said and (meant := meant_by(field)) and not (meant == "tool_calls" and _is(message, CALLS)):
            yield f"has {field} in {at}, which is not read; write it as {meant}"


def _has(value: object, rest: str) -> str:
    return Message.quoting("has ", private(shown(value)), f" {rest}")


def meant_by(field: str) -> str | None:
    """Return the field that is meant by another format's name for calls or texts, or None."""
    return None if field in (*CALL_FIELDS, "content") else MISNAMED.get(field.lower().replace("_", "").replace("-", ""))


def _content_faults(content: Any, at: str) -> Iterator[str]:
    if not isinstance(content, str | list | None):
        yield _has(content, f"as the content of {at}; expected text, a list of parts, or null")
    for number, part in enumerate(content if isinstance(content, list) else ()):
        kind, place = part.get("type") if isinstance(part, dict) else None, f"{at}.content[{number}]"
        if not isinstance(kind, str):
            yield f'has no type in {place}; expected {{"type": "text", "text": …}}'
        elif kind not in KNOWN:
            near = nearest(kind, KNOWN)
            others = (
                f"{', '.join(TEXTS)} or another type that is read; write what it says as text, its calls as tool_calls"
            )
            advice = f"did you mean {shown(near)}?" if near else f"expected one of {others}"
            yield _has(kind, f"as the type of {place}; {advice}")
        elif fields := TEXTS.get(kind):
            texts = [part[field] for field in fields if isinstance(part.get(field), str)]
            if not texts:
                yield Message.quoting(f"has no {' or '.join(fields)} in {place}, whose type is ", private(shown(kind)))
            for field, value in part.items():
                is_read = field in fields or not (field in MESSAGE or meant_by(field))
                if not is_read and isinstance(value, str | list | dict) and value and value not in texts:
                    where = f"in {place}, which is not read in a part whose type is "
                    yield Message.quoting(f"has {field} {where}", private(shown(kind)))


def _parts(content: Any) -> list[JsonObject]:
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def _is(part: Any, kinds: frozenset[str]) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in kinds


def _listed(value: Any) -> list[Any]:
    """Return the objects of a list of calls, or a single call as a list."""
    values: Sequence[Any] = value if isinstance(value, list) else [value]
    return [call for call in values if isinstance(call, dict)]


def _identity(call: JsonObject) -> Hashable:
    """Return a key that is equal for a call that two fields of a message have."""
    name, arguments = written(call)
    read = arguments_of(arguments)
    return repr(name), repr(arguments) if read is None else comparable(read), repr(more_in(call))


def _id(call: JsonObject) -> Hashable:
    """Return the name and the id of a call; LangChain's joined streams have its arguments in one of two fields only."""
    return (repr(written(call)[0]), str(call["id"])) if call.get("id") else object()
