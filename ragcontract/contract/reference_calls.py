"""Reads ``reference_tool_calls`` of golden rows: the tool calls that must be made."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragcontract.answers.tool_calls import ARGUMENTS, NAMES, Call, tool_calls
from ragcontract.core import bounds
from ragcontract.core.nearest import nearest
from ragcontract.files.schema import Mismatch, shown

FIELD = "reference_tool_calls"
FLAT: tuple[str, ...] = (*NAMES, *ARGUMENTS, "id", "type")
NESTED = ("name", "arguments")
EXAMPLE = 'as {"name": "get_order", "arguments": {"id": "1234"}}'


def reference_calls(written: Sequence[Mapping[str, Any]]) -> tuple[Call, ...] | list[Mismatch]:
    """Return the calls, which have the forms that those of run rows have, or what is wrong with them."""
    if len(written) > bounds.REFERENCE_CALLS:
        message = f"has {len(written):,} calls; expected at most {bounds.REFERENCE_CALLS:,}"
        return [Mismatch((FIELD,), message)]
    wrong = [mismatch for number, call in enumerate(written) for mismatch in _wrong(call, (FIELD, number))]
    if wrong:
        return wrong
    calls = tool_calls(written)
    if (count := sum(len(call.arguments or {}) for call in calls)) > bounds.ARGUMENTS:
        return [Mismatch((FIELD,), f"has {count:,} arguments in all; expected at most {bounds.ARGUMENTS:,}")]
    return calls


def _wrong(call: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Mismatch]:
    """Yield what is wrong with a call."""
    known: tuple[str, ...] = FLAT
    inner: Any = call
    if "function" in call:
        path, known, inner = (*path, "function"), NESTED, call["function"]
        if not isinstance(inner, dict):
            yield Mismatch(path, f"expected an object with name and arguments, found {shown(inner)}")
            return
    unknown = [name for name in inner if name not in known]
    for name in unknown:
        near = nearest(name, known)
        advice = f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"
        yield Mismatch((*path, name), f"unknown key; {advice}")
    if not unknown:
        yield from _wrong_values(inner, path)


def _wrong_values(call: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Mismatch]:
    names = [name for name in NAMES if call.get(name) is not None]
    given = [name for name in ARGUMENTS if call.get(name) is not None]
    for several in (names, given):
        if len(several) > 1:
            yield Mismatch((*path, several[1]), f"stands beside {several[0]}; leave one of them out")
            return
    if not names:
        yield Mismatch((*path, "name"), f"is missing; write a call {EXAMPLE}")
        return
    name = call[names[0]]
    if not isinstance(name, str) or not 1 <= len(name) <= bounds.ID:
        yield Mismatch((*path, names[0]), f"expected text of 1 to {bounds.ID:,} characters, found {shown(name)}")
    elif tool_calls([call])[0].arguments is None:
        found = shown(call[given[0]])
        expected = f"expected a JSON object of at most {bounds.ARGUMENT_LEVELS} levels, or its text"
        yield Mismatch((*path, given[0]), f"{expected}, found {found}")
