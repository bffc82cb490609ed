"""The model of tool calls: how they are read, when they are equal, the rules and the metrics on them."""

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from tests.model.workspace import CannotJudgeError, Row

TOOL_METRICS = ("tool_precision", "tool_recall", "tool_f1", "tool_arguments", "tool_order", "step_efficiency")


@dataclasses.dataclass(frozen=True)
class Call:
    """A tool call; ``arguments`` is none if they are no JSON object."""

    name: str
    arguments: dict[str, Any] | None


def read_calls(row: Row, reader: str) -> list[Call]:
    """Return the tool calls of a row, in any of the forms that the documents name."""
    if row.get("tool_calls") is None:
        if row.get("error") is not None:
            return []
        raise CannotJudgeError(f"no tool_calls for {reader}")
    return [_call(raw) for raw in row["tool_calls"]]


def _call(raw: Row) -> Call:
    call = raw["function"] if isinstance(raw.get("function"), dict) else raw
    arguments = call.get("arguments", call.get("args"))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = None
    elif arguments is None:
        arguments = {}
    return Call(name=call["name"], arguments=arguments if isinstance(arguments, dict) else None)


def same(one: Any, other: Any, *, lenient: bool = False) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, and neither "1" nor true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key], lenient=lenient) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(same(a, b, lenient=lenient) for a, b in zip(one, other, strict=True))
    if lenient and isinstance(one, str) != isinstance(other, str):
        text, value = (one, other) if isinstance(one, str) else (other, one)
        return _lenient(text, value)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    return type(one) is type(other) and bool(one == other)


def _lenient(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, (int, float)):
        try:
            return float(text) == value
        except ValueError:
            return False
    return False


def has_arguments(call: Call, wanted: dict[str, Any]) -> bool:
    """Whether a call has these arguments, and any others."""
    if call.arguments is None:
        return not wanted
    return all(key in call.arguments and _fits(call.arguments[key], value) for key, value in wanted.items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and set(wanted) == {"regex"}:
        return isinstance(value, str) and re.search(wanted["regex"], value) is not None
    return same(value, wanted)


def wrong_calls(rule: Row, calls: Sequence[Call], *, strict: bool) -> frozenset[str]:
    """Return what is wrong by a rule on calls of a tool: forbidden calls, or that there are too few or too many.

    ``strict``: calls that cannot be read break what forbids calls.
    """
    named = [call for call in calls if call.name == rule["tool"]]
    wanted = rule.get("arguments") or {}
    found = [call for call in named if has_arguments(call, wanted)]
    if rule["type"] == "must_not_call_tool":
        unreadable = [call for call in named if call.arguments is None] if strict else []
        return frozenset(json.dumps(call.arguments, sort_keys=True) for call in found + unreadable)
    at_most = rule.get("at_most")
    too_many = at_most is not None and len(found) > at_most
    too_few = len(found) < (rule.get("at_least") or 1)
    return frozenset({"too many"} if too_many else {"too few"} if too_few else ())


def tool_metrics(wanted: Sequence[Call], calls: Sequence[Call], options: dict[str, Row]) -> dict[str, float]:
    """Return the metrics on tool calls of one row; those that have no value are left out."""
    if not wanted and not calls:
        return dict.fromkeys(TOOL_METRICS, 1.0)
    values: dict[str, float | None] = {
        "tool_precision": _share(wanted, calls, options.get("tool_precision", {}), len(calls)),
        "tool_recall": _share(wanted, calls, options.get("tool_recall", {}), len(wanted)),
        "tool_f1": 2 * _matched(wanted, calls, options.get("tool_f1", {})) / (len(wanted) + len(calls)),
        "tool_arguments": _arguments(wanted, calls, options.get("tool_arguments", {})),
        "tool_order": _order(wanted, calls),
        "step_efficiency": min(1.0, len(wanted) / len(calls)) if calls else 1.0,
    }
    return {name: value for name, value in values.items() if value is not None}


def _share(wanted: Sequence[Call], calls: Sequence[Call], options: Row, size: int) -> float | None:
    return _matched(wanted, calls, options) / size if size else None


def _matched(wanted: Sequence[Call], calls: Sequence[Call], options: Row) -> int:
    """Return how many calls were wanted, each wanted call counting once."""
    left = list(calls)
    matched = 0
    for call in wanted:
        for candidate in left:
            if _is_wanted(call, candidate, options):
                left.remove(candidate)
                matched += 1
                break
    return matched


def _is_wanted(wanted: Call, call: Call, options: Row) -> bool:
    if wanted.name != call.name or options.get("match", "name") == "name":
        return wanted.name == call.name
    if call.arguments is None or wanted.arguments is None:
        return False
    return same(wanted.arguments, call.arguments, lenient=options.get("lenient", False))


def _arguments(wanted: Sequence[Call], calls: Sequence[Call], options: Row) -> float | None:
    """Pair the calls of each tool, the best pair first; return the mean share of wanted arguments."""
    if not wanted:
        return None
    pairs = [
        (_argument_share(one, other, options), -len(other.arguments or {}), i, j)
        for i, one in enumerate(wanted)
        for j, other in enumerate(calls)
        if one.name == other.name
    ]
    used_wanted: set[int] = set()
    used_calls: set[int] = set()
    total = 0.0
    for share, _, i, j in sorted(pairs, key=lambda pair: (-pair[0], -pair[1])):
        if i not in used_wanted and j not in used_calls:
            used_wanted.add(i)
            used_calls.add(j)
            total += share
    return total / len(wanted)


def _argument_share(wanted: Call, call: Call, options: Row) -> float:
    """Return the share of the wanted arguments that a call has."""
    if call.arguments is None:
        return 0.0
    expected, found = wanted.arguments or {}, call.arguments
    lenient = options.get("lenient", False)
    equal = sum(key in found and same(expected[key], found[key], lenient=lenient) for key in expected)
    size = len(expected.keys() | found.keys()) if options.get("strict_arguments", False) else len(expected)
    return equal / size if size else 1.0


def _order(wanted: Sequence[Call], calls: Sequence[Call]) -> float | None:
    if not wanted:
        return None
    return longest_common([call.name for call in wanted], [call.name for call in calls]) / len(wanted)


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest sequence that both have in this order."""
    lengths = [0] * (len(other) + 1)
    for item in one:
        before = 0
        for position, candidate in enumerate(other, start=1):
            here = lengths[position]
            lengths[position] = before + 1 if item == candidate else max(here, lengths[position - 1])
            before = here
    return lengths[-1]
