"""How much text a value has, before it is written as JSON."""

from collections.abc import Mapping
from typing import Any

SCALARS = frozenset({int, float, bool, type(None)})


def has_more_text(value: Any, limit: int) -> bool:
    """Return whether a value is certainly longer than ``limit`` bytes as JSON, without spending memory on it.

    A character of a text takes a byte or more, and an item of a list two or more with its comma.
    """
    length = 0
    waiting = [[value]]
    while waiting:
        items: Any = waiting.pop()
        length += 2 * len(items)
        if length > limit:
            return True
        for inner in items.values() if isinstance(items, dict) else items:
            kind = type(inner)  # of which most are one of the first two
            if kind is str:
                length += len(inner)
            elif kind in SCALARS:
                continue
            elif isinstance(inner, dict | list | tuple):
                waiting.append(inner)  # type: ignore[arg-type]
            elif isinstance(inner, str):
                length += len(inner)
            elif isinstance(inner, Mapping):
                waiting.append(dict(inner))  # type: ignore[arg-type]
    return length > limit
