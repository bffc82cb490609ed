"""Identifiers: non-empty text; an integer is accepted and means the same id as its decimal digits."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

# Far above anything real, and small enough for every reader of report.json: beyond 2**53 JSON numbers lose digits.
MAX_RANK = 1_000_000_000

Id = Annotated[Annotated[str, Meta(min_length=1)] | int, Meta(title="text that is not empty, or a whole number")]
Rank = Annotated[int, Meta(ge=1, le=MAX_RANK, title="a whole number of at least 1, at most a billion")]


def as_id(value: str | int) -> str:
    """Return the id as text."""
    return value if type(value) is str else str(value)


def as_ids(values: Iterable[str | int]) -> list[str]:
    """Return ids as text. A run has ten times as many as it has rows, so this calls nothing for those that are."""
    return [value if type(value) is str else str(value) for value in values]


def unique_ids(values: Iterable[str | int] | None) -> tuple[str, ...]:
    """Return ids as text, each once, in order; nothing for None."""
    if isinstance(values, list) and len(values) == 1 and type(values[0]) is str:
        return (values[0],)  # most golden queries name one document
    return tuple(dict.fromkeys(as_ids(values or ())))
