"""The tool metrics of ragas 0.4.3 by their definitions, to show where ours differ.

`make test-oracles` compares them with ragas itself.
"""

from collections.abc import Sequence
from typing import Any

Calls = Sequence[dict[str, Any]]


def accuracy(called: Calls, wanted: Calls, *, in_order: bool) -> float:
    """Return ToolCallAccuracy: calls are compared at their positions, as all or none of the names agree."""
    if not called or not wanted:
        return float(not called and not wanted)
    if not in_order:
        called, wanted = sorted(called, key=_texts), sorted(wanted, key=_texts)
    if [call["name"] for call in called] != [call["name"] for call in wanted]:
        return 0.0
    return sum(_equal(*pair) for pair in zip(called, wanted, strict=True)) / len(wanted)


def _texts(call: dict[str, Any]) -> tuple[str, ...]:
    return (call["name"], *[text for name in sorted(call["args"]) for text in (name, str(call["args"][name]))])


def _equal(called: dict[str, Any], wanted: dict[str, Any]) -> float:
    made, expected = called["args"], wanted["args"]
    if not expected:
        return float(not made)
    return sum(name in made and str(made[name]) == str(value) for name, value in expected.items()) / len(expected)


def f1(called: Calls, wanted: Calls) -> float:
    """Return ToolCallF1: calls are compared as sets, with arguments as Python compares them."""
    made, expected = ({(call["name"], _frozen(call["args"])) for call in calls} for calls in (called, wanted))
    both = len(made & expected)
    return round(2 * both / (len(made) + len(expected)), 4) if both else 0.0


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((name, _frozen(one)) for name, one in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
