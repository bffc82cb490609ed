"""Reads the tool calls of a row, in the forms in which applications export them, and finds them by the tool's name.

The calls are read once for all rules about them.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.json_answer import TooDeepError, comparable
from ragcontract.answers.matchers import finds
from ragcontract.answers.metric_options import CannotScoreError, letters_of
from ragcontract.core import bounds
from ragcontract.core.config_sections import Matcher
from ragcontract.core.invisible import folded, without_invisible
from ragcontract.core.safe_text import shorten
from ragcontract.files.json_text import doubled_key

# The names of OpenAI and LangChain, then of deepeval, Anthropic and Cohere, then of frameworks' agents.
ARGUMENTS = (
    "arguments", "args", "input_parameters", "input", "parameters", "params", "kwargs", "tool_input", "tool_args",
    "tool_kwargs",
)  # fmt: skip
NAMES = ("name", "tool", "tool_name")
# Tools that OpenAI runs itself. Their calls have these types, and their arguments in one of the fields below.
BUILT_IN = frozenset(
    {
        "web_search_call", "file_search_call", "computer_call", "code_interpreter_call", "image_generation_call",
        "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call",
    }
)  # fmt: skip
BUILT_IN_ARGUMENTS = ("action", "actions", "queries", "code", "operation")
# Fields of a call whose value may be an object or a list, but not its arguments.
OTHERS = frozenset(
    {"function", "output", "result", "response", "error", "metadata", "caller", "extras", "cache_control"}
)
NO_ARGUMENTS = OTHERS.union(NAMES, ARGUMENTS)
# Such fields beside empty arguments, as of a tool that takes none.
RETURNED = NO_ARGUMENTS.union(
    {
        "observation", "observations", "outputs", "results", "return_value", "tool_output", "tool_result", "content",
        "provider_metadata", "providerMetadata", "provider_details", "response_metadata", "usage", "_meta",
    }
)  # fmt: skip
# Fields in which formats of traces and agents have the calls that are made within a call, without separators of words.
NESTED = frozenset(
    {
        "toolcall", "toolcalls", "calls", "functioncall", "functioncalls", "tooluse", "tooluses", "toolinvocations",
        "invocations", "toolscalled", "children", "childcalls", "childruns", "nestedcalls", "subcalls", "steps",
        "intermediatesteps", "actions", "messages", "spans",
    }
)  # fmt: skip

PARALLEL = "multi_tool_use.parallel"


class ToolCall(Struct, frozen=True, gc=False):
    """A call of a tool."""

    name: str
    arguments: dict[str, Any] | None  # None if they cannot be read as a JSON object
    spread: "ToolCall | None" = (
        None  # if written without arguments, the call with the fields beside the name as arguments
    )

    def comparable(self, *, lenient: bool = False) -> dict[str, Hashable] | None:
        """Return the arguments as values that are equal if the JSON values are; None if they are not valid."""
        if self.arguments is None:
            return None
        return {name: comparable(value, lenient=lenient) for name, value in self.arguments.items()}

    @property
    def identity(self) -> Hashable:
        """A key that is equal for equal calls."""
        arguments = self.comparable()
        return self.name, None if arguments is None else frozenset(arguments.items())


def tool_calls(called: Sequence[Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    """Return the calls of a run row, each as OpenAI exports it (``function``) or flat (``name``, ``arguments``).

    Raises CannotScoreError if a call has no name or two different names, or if there are too many calls.
    """
    if len(called) > bounds.CALLS:
        raise CannotScoreError(f"has {len(called):,} tool_calls, more than {bounds.CALLS:,}")
    calls = [call for number, entry in enumerate(called) for call in _with_parallel(_call(entry, number), number)]
    if len(calls) > bounds.CALLS:
        raise CannotScoreError(f"has {len(calls):,} calls, more than {bounds.CALLS:,}, with those of {PARALLEL}")
    return tuple(calls)


def _with_parallel(call: ToolCall, number: int) -> Iterator[ToolCall]:
    """Yield a call; if it is of OpenAI's tool that makes several calls at once, yield these, too."""
    yield call
    if not letters_of(call.name).endswith("multitooluseparallel"):
        return
    uses = (call.arguments or {}).get("tool_uses")
    if not isinstance(uses, list) or not all(isinstance(use, dict) for use in uses):
        raise CannotScoreError(
            f"has a call of {PARALLEL} in tool_calls[{number}], whose tool_uses cannot be read; export the calls in it"
        )
    for use in uses:
        yield _call({"name": use.get("recipient_name"), "arguments": use.get("parameters")}, number)


def _call(call: Mapping[str, Any], number: int) -> ToolCall:
    call = _named(call)
    names, arguments = _given(call, NAMES), _given(call, ARGUMENTS)
    name = names[0][1] if names else None
    if not isinstance(name, str) or not without_invisible(name).strip():
        raise CannotScoreError(
            f'has no name in tool_calls[{number}]; write {{"name": …, "arguments": {{…}}}}, or export OpenAI\'s form'
        )
    if len(name) > bounds.ID:
        raise CannotScoreError(f"has a name of more than {bounds.ID:,} characters in tool_calls[{number}]")
    if nested := _nested_in(call):
        raise CannotScoreError(
            f"has {nested} in tool_calls[{number}], where calls within it may be, which are not read; export those as "
            "calls of their own, and leave the field out"
        )
    if not arguments:
        made = _without_arguments(name, call)
    else:
        made = ToolCall(name, None if more_in(call) else arguments_of(arguments[0][1]))
    for field, other in names[1:]:
        _refuse_unless(other == name, names[0][0], field, number)
    for field, other in arguments[1:]:
        same = ToolCall(name, arguments_of(other)).comparable() == made.comparable()
        _refuse_unless(same, arguments[0][0], field, number)
    return made


def _nested_in(call: Mapping[str, Any]) -> str | None:
    """Return the name of a field with nested calls, or None."""
    fields = (field for level in _levels(call) for field in level.items())
    return next((name for name, value in fields if _is_composite(value) and value and letters_of(name) in NESTED), None)


def _refuse_unless(same: bool, first: str, second: str, number: int) -> None:  # noqa: FBT001
    if not same:
        raise CannotScoreError(f"has {first} and {second} in tool_calls[{number}], which differ; export only one")


def written(call: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the name and the arguments of a call as they are written, in any of the forms; None if absent."""
    call = _named(call)
    names, arguments = _given(call, NAMES), _given(call, ARGUMENTS)
    return names[0][1] if names else None, arguments[0][1] if arguments else None


def _named(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call of one of OpenAI's own or custom tools with a name and with arguments; any other as it is.

    A tool of its own has the name of the type, as ``web_search``. A custom tool takes a text: its argument ``input``.
    """
    kind, custom = call.get("type"), call.get("custom")
    if kind == "custom" and isinstance(custom, dict):
        kind, call = "custom_tool_call", custom
    if kind == "custom_tool_call" and isinstance(call.get("input"), str):
        return {"name": call.get("name"), "arguments": {"input": call["input"]}}
    if not isinstance(kind, str) or kind not in BUILT_IN or any(call.get(name) is not None for name in NAMES):
        return call
    arguments = {field: call[field] for field in BUILT_IN_ARGUMENTS if call.get(field) is not None}
    return {"name": kind.removesuffix("_call"), "arguments": call.get("arguments") or arguments}


def _given(call: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the fields of a call that have one of these names, first those in its ``function``."""
    inner = call.get("function")
    if inner is None:
        return [(name, call[name]) for name in names if call.get(name) is not None]
    if not isinstance(inner, dict):
        return []
    beside = [(f"{name} beside function", call[name]) for name in names if call.get(name) is not None]
    return [(name, inner[name]) for name in names if inner.get(name) is not None] + beside


def _without_arguments(name: str, call: Mapping[str, Any]) -> ToolCall:
    """Return a call without arguments under a known name; its fields with other names may be all arguments, or some."""
    others = {field: value for level in _levels(call) for field, value in level.items() if field not in NO_ARGUMENTS}
    if any(map(_is_composite, others.values())):
        return ToolCall(name, None)
    return ToolCall(name, {}, ToolCall(name, others) if others else None)


def more_in(call: Mapping[str, Any]) -> list[Any]:
    """Return the values that may be the arguments of a call whose own arguments are empty.

    Anthropic's streams leave ``input`` empty and have the arguments in ``partial_json``.
    """
    if any(arguments_of(value) != {} for _, value in _given(call, ARGUMENTS)):
        return []
    beside = (value for level in _levels(call) for field, value in level.items() if field not in RETURNED)
    return [value for value in beside if _is_composite(value) and value != [] and arguments_of(value) != {}]


def _levels(call: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Return the objects that have the fields of a call: itself, and in OpenAI's form its ``function``."""
    return (call, call["function"]) if isinstance(call.get("function"), dict) else (call,)


def _is_composite(value: object) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and value.lstrip().startswith(("{", "[")))


def arguments_of(value: object) -> dict[str, Any] | None:
    """Return the arguments of a call, parsed if they are JSON text; None or blank text means no arguments.

    The result is None if they cannot be read as a JSON object, because the text is cut off, encoded twice, nested too
    deeply or a list, or has a key twice.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            read = msgspec.json.decode(value)
            if doubled_key(value.encode()) is not None:  # nobody knows which of its values the tool gets
                return None
        except (ValueError, msgspec.DecodeError, RecursionError):  # among them those of UTF-8
            return None
        value = read
    if not isinstance(value, dict):
        return None
    try:
        comparable(value)
    except TooDeepError:
        return None
    return value


def brief(call: ToolCall) -> str:
    """Return a call as people write it, such as ``get_order(id="1234")``, shortened."""
    if call.arguments is None:
        return shorten(f"{call.name}(invalid arguments)", bounds.EXCERPT)
    shown = [f"{name}={shorten(_json(value), bounds.VALUE_TEXT)}" for name, value in call.arguments.items()]
    return shorten(f"{call.name}({', '.join(shown)})", bounds.EXCERPT)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


_NAMESPACES = re.compile(r"__+|[./:\\]+")  # mcp__server__refund, functions.refund, server/refund, server:refund
_KINDS = re.compile(r"^(tools|functions)[_-]+")  # also namespaces: tools-refund
_NUMBER = re.compile(r":[0-9]+$")  # of the call: functions.refund:0
# Markup of a model's channels that a server left in a name: refund<|channel|>commentary, commentary to=functions.refund
_MARKUP = re.compile(r"<\|[^|]*(?:\|>|$)|\bto=")
_AROUND = " \t\n\"'`$"  # a name that is encoded twice; $web_search, as some services call their own tools
_SEPARATORS = re.compile(r"[\W_]+")  # in the names of arguments
_JOINTS = re.compile(r"[\s_-]+")  # of words: delete_user is deleteUser, and delete-user


_LEAST_SEARCHED = 1_000  # characters; searching a shorter text takes as long


class Arguments(Struct, frozen=True, gc=False):
    """The arguments of a call."""

    keys: frozenset[tuple[str, int]]  # of a name and a number that is equal for equal values
    values: dict[str, list[object]]  # by name


class CalledTools:
    """The calls of a row. Whatever rules compare or show of a call is made once."""

    def __init__(self, called: Sequence[Mapping[str, Any]]) -> None:
        self.calls = tool_calls(called)
        self._named: dict[str, list[ToolCall]] = {}
        for call in self.calls:
            self._named.setdefault(call.name, []).append(call)
        self._ending: dict[str, list[tuple[tuple[str, ...], str]]] = {}  # the names by their last part
        self._joined: dict[str, list[str]] = {}  # the names by all parts: shop_refund is shop.refund
        for name in self._named:
            for parts in map(parts_of, _without_markup(name)):
                self._ending.setdefault(parts[-1], []).append((parts, name))
                self._joined.setdefault("".join(parts), []).append(name)
        self._arguments: dict[tuple[int, bool], Arguments | None] = {}
        self._keys: dict[Hashable, int] = {}
        self._texts: dict[int, tuple[str, ...]] = {}  # by the value's id: the calls hold all values
        self._searched = 0
        self._briefs: dict[int, str] = {}
        self._answers: dict[str, Answer] = {}

    def named(self, tool: str) -> Sequence[ToolCall]:
        """Return the calls that have exactly this name."""
        return self._named.get(tool, ())

    def resembling(self, tool: str) -> Sequence[ToolCall]:
        """Return the calls whose name is that of the tool in any form, in their order.

        The forms differ in case, in invisible characters, in separators of words, in a namespace before the name, in
        markup of a model's channels, or in parentheses or the number of the call after the name.
        """
        sought = parts_of(tool)
        names = {name for parts, name in self._ending.get(sought[-1], ()) if _ends_alike(parts, sought)}
        names.update(self._joined.get("".join(sought), ()))
        if len(names) <= 1:
            return self._named[names.pop()] if names else ()
        return [call for call in self.calls if call.name in names]

    def arguments(self, call: ToolCall, *, in_any_form: bool) -> Arguments | None:
        """Return the arguments of a call by their names or the forms of their names; None if they cannot be read."""
        made = id(call), in_any_form
        if made not in self._arguments:
            self._arguments[made] = self._read(call, self.form_of if in_any_form else str)
        return self._arguments[made]

    def _read(self, call: ToolCall, form: Callable[[str], str]) -> Arguments | None:
        values = call.comparable()
        if values is None or call.arguments is None:
            return None
        read: dict[str, list[object]] = {}
        for name, value in call.arguments.items():
            read.setdefault(form(name), []).append(value)
        keys = frozenset((form(name), self._key(value)) for name, value in values.items())
        return Arguments(keys, read)

    def key_of(self, value: object) -> int:
        """Return a number that is equal for equal JSON values."""
        return self._key(comparable(value))

    def _key(self, value: Hashable) -> int:
        return self._keys.setdefault(value, len(self._keys))

    @staticmethod
    @lru_cache(maxsize=4096)
    def form_of(name: str) -> str:
        """Return the name of an argument in the form in which forbidden ones are compared: orderId is order_id."""
        return _SEPARATORS.sub("", folded(name)) or name

    def texts(self, value: object) -> tuple[str, ...]:
        """Return all texts in the value of an argument, which patterns search."""
        if id(value) not in self._texts:
            self._texts[id(value)] = tuple(dict.fromkeys(_texts_in(value)))
        return self._texts[id(value)]

    def has(self, pattern: Matcher, texts: Iterable[str], *, too_long: bool) -> bool:
        """Return whether a pattern is found in any of the texts; ``too_long`` is the result for texts beyond the limit.

        Raises CannotScoreError if searching these calls would take too much time.
        """
        for text in texts:
            self._searched += max(len(text), _LEAST_SEARCHED)
            if self._searched > bounds.ARGUMENTS_SEARCHED:
                raise CannotScoreError(
                    "has tool_calls whose arguments are too long, or too many, to search for all patterns of "
                    "its rules; write fewer patterns, or export fewer calls"
                )
            if too_long if len(text) > bounds.ANSWER else finds(pattern, self._answer(text)):
                return True
        return False

    def brief(self, call: ToolCall) -> str:
        """Return one of the calls as people write it."""
        if id(call) not in self._briefs:
            self._briefs[id(call)] = brief(call)
        return self._briefs[id(call)]

    def _answer(self, text: str) -> Answer:
        if len(text) <= _LEAST_SEARCHED:  # making a short answer takes no longer than looking it up
            return Answer(text)
        if text not in self._answers:
            self._answers[text] = Answer(text)
        return self._answers[text]


@lru_cache(maxsize=4096)
def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a tool's name between the separators of namespaces, each in the form that is compared.

    If nothing is left of a name, the name itself is the only part.
    """
    seen = folded(name).strip(_AROUND)
    if seen.endswith(")"):  # refund(), refund(id=7)
        seen = seen.partition("(")[0]
    seen = _KINDS.sub(r"\1.", _NUMBER.sub("", seen))
    parts = (_JOINTS.sub("", part) for part in _NAMESPACES.split(seen))
    return tuple(filter(None, parts)) or (name,)


def _texts_in(value: object) -> Iterator[str]:
    """Yield all texts of a value, with the keys of objects, and numbers and booleans as JSON writes them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)
    elif value is not None:
        yield json.dumps(value)
        if isinstance(value, float) and value.is_integer():  # 900.0 is 900
            yield str(int(value))


def _without_markup(name: str) -> list[str]:
    """Return the parts of a name between the markup of channels; the name itself if it has no markup."""
    return [part for part in _MARKUP.split(name) if part.strip()] or [name]


def _ends_alike(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    """Return whether the shorter of two names is the end of the longer."""
    length = min(len(first), len(second))
    return first[-length:] == second[-length:]
