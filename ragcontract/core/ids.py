"""Identifiers: non-empty text; an integer is accepted and is the same id as its decimal digits."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import shorten

_TEXT = f"text of 1 to {bounds.ID:,} characters"
TextId = Annotated[str, Meta(min_length=1, max_length=bounds.ID, title=_TEXT)]
Id = Annotated[
    Annotated[str, Meta(min_length=1, max_length=bounds.ID)] | int, Meta(title=f"{_TEXT}, or a whole number")
]
Tag = Annotated[str, Meta(min_length=1, max_length=bounds.TAG, title=f"text of 1 to {bounds.TAG:,} characters")]
Rank = Annotated[int, Meta(ge=1, le=bounds.RANK, title="a whole number of at least 1, at most a billion")]


def as_id(value: str | int) -> str:
    """Return the id as text."""
    return value if type(value) is str else str(value)


def as_ids(values: list[str | int]) -> list[str]:
    """Return ids as text; the list itself if all of them already are text, which is the common case."""
    try:
        "".join(values)  # type: ignore[arg-type]  # the fastest way to check the types of all items
    except TypeError:
        return [as_id(value) for value in values]
    return values  # type: ignore[return-value]


def unique_ids(values: list[str | int] | None) -> tuple[str, ...]:
    """Return ids as text without duplicates, in order; an empty tuple for None."""
    if not values:
        return ()
    ids = as_ids(values)
    return tuple(ids) if len(ids) == 1 else tuple(dict.fromkeys(ids))


def some(ids: Iterable[str], noun: str = "query") -> str:
    """Format a count with the first few ids, for example ``3 queries ('a', 'b', 'c')``."""
    every = list(ids)
    named = [repr(shorten(one, bounds.NAME)) for one in every[: bounds.NAMES]]
    return f"{count(len(every), noun)} ({', '.join([*named, '…'] if len(every) > bounds.NAMES else named)})"
