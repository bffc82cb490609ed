"""Tool calls of an application, in the forms in which applications export them."""

import json
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.finish_reasons import letters_of
from ragcontract.answers.json_values import TooDeepError, comparable
from ragcontract.core import bounds
from ragcontract.core.invisible import without_invisible
from ragcontract.core.text import shorten

# In this order: OpenAI's and LangChain's names, those of deepeval, Anthropic and Cohere, of frameworks' agents.
ARGUMENTS = (
    "arguments", "args", "input_parameters", "input", "parameters", "params", "kwargs", "tool_input", "tool_args",
    "tool_kwargs",
)  # fmt: skip
NAMES = ("name", "tool", "tool_name")
# Tools that OpenAI runs itself: their calls have these types, and what they are called with in one of these fields.
BUILT_IN = frozenset(
    {
        "web_search_call", "file_search_call", "computer_call", "code_interpreter_call", "image_generation_call",
        "local_shell_call", "shell_call", "apply_patch_call", "tool_search_call",
    }
)  # fmt: skip
BUILT_IN_ARGUMENTS = ("action", "actions", "queries", "code", "operation")
# What else a call may have that is an object or a list, and not its arguments.
OTHERS = frozenset(
    {"function", "output", "result", "response", "error", "metadata", "caller", "extras", "cache_control"}
)
NO_ARGUMENTS = OTHERS.union(NAMES, ARGUMENTS)
# And beside arguments that are empty, as of a tool that takes none.
RETURNED = NO_ARGUMENTS.union(
    {
        "observation", "observations", "outputs", "results", "return_value", "tool_output", "tool_result", "content",
        "provider_metadata", "providerMetadata", "provider_details", "response_metadata", "usage", "_meta",
    }
)  # fmt: skip
# Fields in which formats of traces and of agents have the calls that are made within a call; without what joins words.
NESTED = frozenset(
    {
        "toolcall", "toolcalls", "calls", "functioncall", "functioncalls", "tooluse", "tooluses", "toolinvocations",
        "invocations", "toolscalled", "children", "childcalls", "childruns", "nestedcalls", "subcalls", "steps",
        "intermediatesteps", "actions", "messages", "spans",
    }
)  # fmt: skip

PARALLEL = "multi_tool_use.parallel"


class Call(Struct, frozen=True, gc=False):
    """A call of a tool; ``arguments`` are None if they cannot be read as a JSON object.

    Of a call that is written without any, ``spread`` is the one whose arguments are what stands beside the name.
    """

    name: str
    arguments: dict[str, Any] | None
    spread: "Call | None" = None

    def comparable(self, *, lenient: bool = False) -> dict[str, Hashable] | None:
        """Return the arguments as values that are equal if the JSON values are; None if there are no valid ones."""
        if self.arguments is None:
            return None
        return {name: comparable(value, lenient=lenient) for name, value in self.arguments.items()}


def tool_calls(called: Sequence[Mapping[str, Any]]) -> tuple[Call, ...]:
    """Return the calls of a run row, each as OpenAI exports it (``function``) or flat (``name``, ``arguments``).

    Raises CannotScoreError if one has no name, or two that differ, or if there are too many.
    """
    if len(called) > bounds.CALLS:
        raise CannotScoreError(f"has {len(called):,} tool_calls, more than {bounds.CALLS:,}")
    calls = [call for number, one in enumerate(called) for call in _with_parallel(_call(one, number), number)]
    if len(calls) > bounds.CALLS:
        raise CannotScoreError(f"has {len(calls):,} calls, more than {bounds.CALLS:,}, with those of {PARALLEL}")
    return tuple(calls)


def _with_parallel(call: Call, number: int) -> Iterator[Call]:
    """Yield a call, and those that are made by it if it is of OpenAI's tool that makes several calls at once."""
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


def _call(call: Mapping[str, Any], number: int) -> Call:
    call = _named(call)
    names, given = _given(call, NAMES), _given(call, ARGUMENTS)
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
    if not given:
        made = _without_arguments(name, call)
    else:
        made = Call(name, None if more_in(call) else arguments_of(given[0][1]))
    for field, other in names[1:]:
        _refuse_unless(other == name, names[0][0], field, number)
    for field, other in given[1:]:
        same = Call(name, arguments_of(other)).comparable() == made.comparable()
        _refuse_unless(same, given[0][0], field, number)
    return made


def _nested_in(call: Mapping[str, Any]) -> str | None:
    """Return the name of a field in which a call has others."""
    fields = (field for level in _levels(call) for field in level.items())
    return next((name for name, value in fields if _is_composite(value) and value and letters_of(name) in NESTED), None)


def _refuse_unless(same: bool, first: str, second: str, number: int) -> None:  # noqa: FBT001
    if not same:
        raise CannotScoreError(f"has {first} and {second} in tool_calls[{number}], which differ; export only one")


def written(call: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the name and the arguments of a call as they are written, in any of the forms; None for what is absent."""
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
    """Return the fields of a call that have one of these names: those in its ``function``, then those beside it."""
    inner = call.get("function")
    if inner is None:
        return [(name, call[name]) for name in names if call.get(name) is not None]
    if not isinstance(inner, dict):
        return []
    beside = [(f"{name} beside function", call[name]) for name in names if call.get(name) is not None]
    return [(name, inner[name]) for name in names if inner.get(name) is not None] + beside


def _without_arguments(name: str, call: Mapping[str, Any]) -> Call:
    """Return a call that has no arguments under a known name; what it has under others may be all of them, or some."""
    others = {field: value for level in _levels(call) for field, value in level.items() if field not in NO_ARGUMENTS}
    if any(map(_is_composite, others.values())):
        return Call(name, None)
    return Call(name, {}, Call(name, others) if others else None)


def more_in(call: Mapping[str, Any]) -> list[Any]:
    """Return what a call whose arguments are empty has under other names, and what may be its arguments.

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
    """Return the arguments of a call, parsed if they are JSON text; nothing, or blank text, means no arguments.

    None stands for what cannot be read as a JSON object: text that is cut off, encoded twice or has a key twice, a
    list, what is nested too deeply.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            read = msgspec.json.decode(value)
            if value.count(":") > 1:
                json.loads(value, object_pairs_hook=_refuse_repeated)
        except (ValueError, RecursionError):  # among them msgspec's errors, and those of UTF-8
            return None
        value = read
    if not isinstance(value, dict):
        return None
    try:
        comparable(value)
    except TooDeepError:
        return None
    return value


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    """Raise ValueError for a key that an object has twice: nobody knows which of its values the tool gets."""
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError


def brief(call: Call) -> str:
    """Return a call as people write it, such as ``get_order(id="1234")``, shortened."""
    if call.arguments is None:
        return shorten(f"{call.name}(invalid arguments)", bounds.EXCERPT)
    shown = [f"{name}={shorten(_json(value), bounds.VALUE_TEXT)}" for name, value in call.arguments.items()]
    return shorten(f"{call.name}({', '.join(shown)})", bounds.EXCERPT)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
