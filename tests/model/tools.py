"""The model of tool calls: how they are read, when they are equal, the rules and the metrics on them."""

import dataclasses
import json
import re
from collections.abc import Sequence
from typing import Any

from tests.model.texts import without_invisible
from tests.model.workspace import CannotJudgeError, Row

TOOL_METRICS = ("tool_precision", "tool_recall", "tool_f1", "tool_arguments", "tool_order", "step_efficiency")

NAMES = ("name", "tool", "tool_name")
ARGUMENTS = (
    *("arguments", "args", "input_parameters", "input", "parameters", "params", "kwargs"),
    *("tool_input", "tool_args", "tool_kwargs"),
)
KNOWN = frozenset({*NAMES, *ARGUMENTS, "function", "type", "id"})
NAMESPACE_END = re.compile(r"[./:]|__")


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
    fields = [raw, raw["function"]] if isinstance(raw.get("function"), dict) else [raw]
    names = {fields_of[key] for fields_of in fields for key in NAMES if fields_of.get(key) is not None}
    if len(names) != 1:
        raise CannotJudgeError("a call without a name, or with two")
    given = [fields_of[key] for fields_of in fields for key in ARGUMENTS if fields_of.get(key) is not None]
    if any(not same(_arguments_of(one), _arguments_of(given[0])) for one in given):
        raise CannotJudgeError("a call with two arguments that differ")
    if given:
        return Call(names.pop(), _arguments_of(given[0]))
    unknown = [value for fields_of in fields for key, value in fields_of.items() if key not in KNOWN]
    hidden = any(isinstance(value, (dict, list)) for value in unknown)
    return Call(names.pop(), None if hidden else {})


def _arguments_of(value: Any) -> Row | None:
    """Return arguments as an object, or none where they cannot be read; blank text stands for no arguments."""
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            value = json.loads(value, object_pairs_hook=_without_repeats)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def _without_repeats(pairs: list[tuple[str, Any]]) -> Row:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


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


def is_form_of(name: str, tool: str) -> bool:
    """Whether a name may mean a tool: regardless of case, of how words are joined, and of a namespace in front."""
    names = {name, *(name[found.end() :] for found in NAMESPACE_END.finditer(name))}
    return any(_joined(form) == _joined(tool) for form in names)


def _joined(name: str) -> str:
    return re.sub(r"[\s_-]", "", without_invisible(name)).casefold()


def has_arguments(call: Call, wanted: dict[str, Any]) -> bool:
    """Whether a call has these arguments, and any others."""
    if call.arguments is None:
        return False
    return all(key in call.arguments and _fits(call.arguments[key], value) for key, value in wanted.items())


def _may_have(call: Call, wanted: dict[str, Any]) -> bool:
    """Whether a call may have these arguments: a pattern is searched for in all that one holds."""
    if call.arguments is None:
        return True
    return all(
        any(_joined(name) == _joined(key) and _may_be(value, sought) for name, value in call.arguments.items())
        for key, sought in wanted.items()
    )


def _may_be(value: Any, sought: Any) -> bool:
    if isinstance(sought, dict) and "regex" in sought:
        return any(re.search(sought["regex"], text) for text in _texts(value))
    return _fits(value, sought)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, inner in value.items() for text in (key, *_texts(inner))]
    if isinstance(value, list):
        return [text for inner in value for text in _texts(inner)]
    if isinstance(value, str):
        return [value]
    whole = [str(int(value))] if isinstance(value, float) and value.is_integer() else []
    return [] if value is None else [json.dumps(value), *whole]


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict) and set(wanted) == {"regex"}:
        return isinstance(value, str) and re.search(wanted["regex"], value) is not None
    return same(value, wanted)


def wrong_calls(rule: Row, calls: Sequence[Call]) -> frozenset[str]:
    """Return what is wrong by a rule on calls of a tool: forbidden calls, or that there are too few or too many."""
    wanted = rule.get("arguments") or {}
    may_be = [call for call in calls if is_form_of(call.name, rule["tool"])]
    may_be = [call for call in may_be if _may_have(call, wanted)]
    if rule["type"] == "must_not_call_tool":
        return frozenset(json.dumps([call.name, call.arguments], sort_keys=True) for call in may_be)
    found = [call for call in calls if call.name == rule["tool"] and has_arguments(call, wanted)]
    at_most = rule.get("at_most")
    too_many = at_most is not None and len(may_be) > at_most
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
