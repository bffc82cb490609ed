"""Identifiers: non-empty text; an integer is accepted and means the same id as its decimal digits."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

Id = Annotated[str, Meta(min_length=1)] | int
Rank = Annotated[int, Meta(ge=1)]


def as_id(value: str | int) -> str:
    """Return the id as text."""
    return value if type(value) is str else str(value)


def unique_ids(values: Iterable[str | int] | None) -> tuple[str, ...]:
    """Return ids as text, each once, in order; nothing for None."""
    return tuple(dict.fromkeys(as_id(value) for value in values or ()))
