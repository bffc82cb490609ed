"""Which retrieval counts where one question took several."""

from collections.abc import Sequence
from typing import Literal, TypeVar

T = TypeVar("T")
Retrieved = Literal["first", "last", "concat"]


def that_counts(found: Sequence[Sequence[T]], retrieved: Retrieved | None) -> Sequence[T]:
    """Return what the first or the last of the retrievals found, or all of them together; there must be one."""
    if retrieved == "concat":
        return [item for items in found for item in items]
    return found[-1 if retrieved == "last" else 0]
