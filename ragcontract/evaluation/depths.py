"""Counts how many results the rows of a run have: a run that is shorter than k cannot show what ranks below."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct


class Depth(Struct, frozen=True, kw_only=True):
    """The number of results of a row: at most ``most``; ``typical`` is the median, and at least half have no more."""

    most: int
    typical: int


class DepthCounter:
    """Counts the results of rows."""

    def __init__(self) -> None:
        """Start without rows."""
        self._rows: Counter[int] = Counter()

    def note(self, rows: Sequence[list[str]]) -> None:
        """Count the results of rows, given as their document ids."""
        lengths = set(map(len, rows))
        if len(lengths) == 1:  # the common case, and five times as fast
            self._rows[lengths.pop()] += len(rows)
        else:
            self._rows.update(map(len, rows))

    def result(self) -> Depth | None:
        """Return the depth of the rows so far; None if there are none."""
        return depth_of(self._rows)


def depth_of(rows: Counter[int]) -> Depth | None:
    """Return the depth, given how many rows have each number of results."""
    half, below = sum(rows.values()) / 2, 0
    for length in sorted(rows):
        below += rows[length]
        if below >= half and below:
            return Depth(most=max(rows), typical=length)
    return None
