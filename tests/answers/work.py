"""How work grows, for tests of what must be linear in the length of hostile answers.

Time is that of this process alone, so that others on the machine do not matter.
"""

import time
from collections.abc import Callable


def grows_linearly(work: Callable[[int], object], size: int) -> bool:
    """Return whether eight times the size takes far less than 64 times as long; the quickest of three counts."""
    return min(_seconds(work, 8 * size) for _ in range(3)) < 24 * min(_seconds(work, size) for _ in range(3)) + 0.02


def _seconds(work: Callable[[int], object], size: int) -> float:
    start = time.process_time()
    work(size)
    return time.process_time() - start
