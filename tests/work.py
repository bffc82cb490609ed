"""Counts the work of a call, the same on every machine: tests of growth compare counts, never times."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def work(call: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs, those of loops and of comprehensions once for each item."""
    count = 0

    def note(_frame: FrameType, _event: str, _arg: Any) -> Any:
        nonlocal count
        count += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


class Compared(str):
    """Text that counts how often any of it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        """Compare and count."""
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__
