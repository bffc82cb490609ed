"""Tool calls of an application, in the forms in which applications export them."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.answers.json_values import TooDeepError, comparable
from ragcontract.core import bounds
from ragcontract.core.text import shorten

# In this order: OpenAI's and LangChain's names, and that of deepeval.
ARGUMENTS = ("arguments", "args", "input_parameters")
NAMES = ("name", "tool")


class Call(Struct, frozen=True, gc=False):
    """A call of a tool; ``arguments`` are None if they are no JSON object."""

    name: str
    arguments: dict[str, Any] | None

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
    return tuple([_call(call, number) for number, call in enumerate(called)])


def _call(call: Mapping[str, Any], number: int) -> Call:
    fields = _fields(call)
    names, given = _given(fields, NAMES), _given(fields, ARGUMENTS)
    name = fields[names[0]] if names else None
    if not isinstance(name, str) or not name:
        raise CannotScoreError(
            f'has no name in tool_calls[{number}]; write {{"name": …, "arguments": {{…}}}}, or export OpenAI\'s form'
        )
    if len(name) > bounds.ID:
        raise CannotScoreError(f"has a name of more than {bounds.ID:,} characters in tool_calls[{number}]")
    made = Call(name, arguments_of(fields[given[0]] if given else None))
    for other in names[1:]:
        _refuse_unless(fields[other] == name, names[0], other, number)
    for other in given[1:]:
        same = Call(name, arguments_of(fields[other])).comparable() == made.comparable()
        _refuse_unless(same, given[0], other, number)
    return made


def _refuse_unless(same: bool, first: str, second: str, number: int) -> None:  # noqa: FBT001
    if not same:
        raise CannotScoreError(f"has {first} and {second} in tool_calls[{number}], which differ; export only one")


def written(call: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the name and the arguments of a call as they are written, in any of the forms; None for what is absent."""
    fields = _fields(call)
    name, arguments = ([fields[one] for one in _given(fields, names)] for names in (NAMES, ARGUMENTS))
    return name[0] if name else None, arguments[0] if arguments else None


def _given(fields: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [name for name in names if fields.get(name) is not None]


def _fields(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what has the name and the arguments: the call, or the object in its ``function``."""
    inner = call.get("function")
    return call if inner is None else inner if isinstance(inner, dict) else {}


def arguments_of(value: object) -> dict[str, Any] | None:
    """Return the arguments of a call, parsed if they are JSON text; nothing, or blank text, means no arguments.

    None stands for what is no JSON object, or is nested too deeply.
    """
    if value is None:
        return {}
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return None
    if not isinstance(value, dict):
        return None
    try:
        comparable(value)
    except TooDeepError:
        return None
    return value


def brief(call: Call) -> str:
    """Return a call as people write it, such as ``get_order(id="1234")``, shortened."""
    if call.arguments is None:
        return shorten(f"{call.name}(invalid arguments)", bounds.EXCERPT)
    shown = [f"{name}={shorten(_json(value), bounds.VALUE_TEXT)}" for name, value in call.arguments.items()]
    return shorten(f"{call.name}({', '.join(shown)})", bounds.EXCERPT)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
