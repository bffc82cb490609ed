"""Checks the order of scores. The order of results is the ranking: scores never reorder them.

Where scores rise in every row in which they differ, they are distances, of which the smallest is the best; otherwise a
warning says so.
"""

from ragcontract.core.numbers import count

Scores = list[float | None]


def descending(scores: Scores) -> bool:
    """Return whether the scores are in descending order, ignoring results without one."""
    try:
        return scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    except TypeError:  # some results have no score
        present = _present(scores)
        return present == sorted(present, reverse=True)


class OrderCheck:
    """Counts the rows whose scores do not descend; ``falling`` says whether scores fall in any other row."""

    def __init__(self) -> None:
        """Start without rows."""
        self.falling = False
        self._unordered = self._rising = 0
        self._first = ""

    def note(self, scores: Scores, location: str) -> None:
        """Note the scores of the row at ``location``."""
        if descending(scores):
            self.falling = self.falling or falls(scores)
        else:
            self.out_of_order(scores, location)

    def out_of_order(self, scores: Scores, location: str) -> None:
        """Count a row whose scores do not descend."""
        self._unordered += 1
        self._first = self._first or location
        self._rising += rises(scores)

    @property
    def distances(self) -> bool:
        """Whether the scores look like distances."""
        return look_like_distances(self._unordered, self._rising, falling=self.falling)

    def warning(self) -> str | None:
        """Return the warning about scores out of order; None if there are none, or if they look like distances."""
        return out_of_order(self._first, self._unordered) if self._unordered and not self.distances else None


def look_like_distances(unordered: int, rising: int, *, falling: bool) -> bool:
    """Return whether scores look like distances: they rise in every row in which they differ; one row may by chance.

    ``unordered`` is the number of rows that do not descend, ``rising`` that of those which rise; ``falling`` says
    whether scores fall in any other row.
    """
    return rising == unordered > 1 and not falling


def falls(scores: Scores) -> bool:
    """Return whether descending scores are not all the same."""
    if len(scores) < 2:  # noqa: PLR2004 (a pair)
        return False
    first, last = scores[0], scores[-1]
    if first is None or last is None:
        present = _present(scores)
        return bool(present) and present[0] > present[-1]
    return first > last


def rises(scores: Scores) -> bool:
    """Return whether scores ascend and are not all the same, ignoring results without one."""
    present = _present(scores)
    return present == sorted(present) and present[:1] < present[-1:]


def _present(scores: Scores) -> list[float]:
    return [score for score in scores if score is not None]


def out_of_order(location: str, rows: int) -> str:
    """Return the warning about rows with unordered scores; ``location`` is that of the first, ``rows`` their number."""
    return (
        f"{location}: the scores are not in descending order ({count(rows, 'such row')}); "
        "ranks are the order of the results, scores never reorder them"
    )
