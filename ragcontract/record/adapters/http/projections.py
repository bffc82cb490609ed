"""JMESPath expressions for lists, whose projections drop nothing silently.

``hits[*].doc`` leaves out every item of ``hits`` that has no ``doc``, so a wrong name would find an empty list.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jmespath
from jmespath.visitor import TreeInterpreter

Node = Mapping[str, Any]
PROJECTIONS = {"projection", "value_projection", "filter_projection"}
PATHS = {"field", "subexpression", "index_expression"}
IDENTITY = {"type": "identity", "children": []}


class DroppedError(Exception):
    """A projection dropped items; the message says how many."""

    def __init__(self, problem: str, *, is_absent: bool) -> None:
        """Store the problem, and whether there is nothing of which the list could be made."""
        super().__init__(problem)
        self.is_absent = is_absent


def search_of_list(expression: str) -> Callable[[Any], Any]:
    """Return the function that finds a list; it raises DroppedError, and the function JMESPathError.

    The projection that makes the list must keep all items that it gets, and the ones that it is made from at least one.
    """
    node = jmespath.compile(expression).parsed
    last = {id(one) for one in _last(node)}
    earlier = {id(one) for one in _earlier(node)}
    return lambda content: _Interpreter(last, earlier).visit(node, content)


def _last(node: Node) -> Iterator[Node]:
    """Yield the projections whose items are those of the list that an expression finds."""
    children = node["children"]
    match node["type"]:
        case kind if kind in PROJECTIONS:
            yield node
        case "or_expression" | "function_expression":
            for child in children:
                yield from _last(child)
        case "pipe":
            yield from _last(children[1])
            if children[1]["type"] == "function_expression":  # such as sort
                yield from _last(children[0])


def _earlier(node: Node) -> Iterator[Node]:
    """Yield the projections that lead to the list: those that are not within the items of another one."""
    children: Sequence[Node] = node["children"]
    if node["type"] in PROJECTIONS:
        yield node
        children = children[:1]
    if node["type"] in {*PROJECTIONS, "flatten", "pipe", "or_expression", "function_expression", *PATHS}:
        for child in children:
            if isinstance(child, Mapping):
                yield from _earlier(child)


class _Interpreter(TreeInterpreter):
    """Evaluates an expression, and counts what some of its projections drop."""

    def __init__(self, last: set[int], earlier: set[int]) -> None:
        super().__init__()
        self._last, self._earlier = last, earlier

    def visit_projection(self, node: Any, value: Any) -> Any:
        return self._counted(node, value, super().visit_projection)

    def visit_value_projection(self, node: Any, value: Any) -> Any:
        return self._counted(node, value, super().visit_value_projection)

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        return self._counted(node, value, super().visit_filter_projection)

    def _counted(self, node: Any, value: Any, visit: Callable[[Any, Any], Any]) -> Any:
        base = self.visit(node["children"][0], value)
        found = visit({**node, "children": [_literal(base), *node["children"][1:]]}, value)
        if id(node) in self._last | self._earlier and isinstance(found, list) and base:
            items = list(base.values()) if isinstance(base, dict) else base
            self._check(node, items, found)
        return found

    def _check(self, node: Any, items: list[Any], found: list[Any]) -> None:
        is_last = id(node) in self._last
        if node["type"] == "filter_projection":
            condition = node["children"][2]
            if not found and any(self._never_found(part, items) for part in _compared(condition)):
                raise DroppedError(f"its filter looks for what none of {len(items):,} items has", is_absent=not is_last)
            passing: Any = {"type": "filter_projection", "children": [_literal(items), IDENTITY, condition]}
            items = super().visit_filter_projection(passing, None) or []
        dropped = len(items) - len(found)
        if dropped and (is_last or not found):
            raise DroppedError(f"finds nothing in {dropped:,} of {len(items):,} items", is_absent=not is_last)

    def _never_found(self, path: Any, items: list[Any]) -> bool:
        return all(self.visit(path, one) is None for one in items)


def _literal(value: Any) -> dict[str, Any]:
    return {"type": "literal", "value": value, "children": []}


def _compared(condition: Node) -> list[Node]:
    """Return the paths that a filter's condition is about."""
    parts = condition["children"] if condition["type"] == "comparator" else [condition]
    return [part for part in parts if part["type"] in PATHS]
