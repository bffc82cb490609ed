"""Identifiers: their types, their conversion to text, and the packed document ids of a baseline.

An id is non-empty text. An integer is accepted and is the same id as its decimal digits.

The first document ids of a baseline's rows are packed, because a baseline may have a hundred thousand queries. Each
query has one list per row. The judged pool of a query, which is the union of its lists, is packed in the same way. If
the pool is what the rows returned, one object serves both.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from ragcontract.core import bounds
from ragcontract.core.numbers import beginning, count
from ragcontract.core.safe_text import encodable, shorten

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


def lists_as_ids(lists: list[list[str | int]]) -> list[list[str]]:
    """Return lists of ids as text; the lists themselves if all ids already are text."""
    try:
        "".join(chain.from_iterable(lists))  # type: ignore[arg-type]
    except TypeError:
        return [*map(as_ids, lists)]
    return lists  # type: ignore[return-value]


def unique_ids(values: list[str | int] | None) -> tuple[str, ...]:
    """Return ids as text without duplicates, in order; an empty tuple for None."""
    if not values:
        return ()
    ids = as_ids(values)
    return tuple(ids) if len(ids) == 1 else tuple(dict.fromkeys(ids))


def some(ids: Iterable[str], noun: str = "query") -> str:
    """Format a count with the first few ids, for example ``3 queries ('a', 'b', 'c')``."""
    every = list(ids)
    return f"{count(len(every), noun)} ({first_names(every)})"


def first_names(names: Sequence[str]) -> str:
    """Return the first few names in quotation marks, and an ellipsis if there are more."""
    return beginning([repr(shorten(name, bounds.NAME)) for name in names[: bounds.NAMES + 1]])


Path = str | os.PathLike[str]


def several(texts: str | Iterable[str]) -> list[str]:
    """Return one or several texts as a list."""
    return [texts] if isinstance(texts, str) else [*texts]


def paths_of(paths: Path | Iterable[Path]) -> list[str]:
    """Return one or several paths as a list of texts."""
    return [os.fspath(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]


# The pool of a baseline's own first k results, which are judged by definition, so that nothing is looked up.
EVERYTHING = b""

NOTHING = b"\x91\x90"  # the packed first ids of a query whose only row has no results

encode = msgspec.msgpack.Encoder().encode  # fails for half of a pair of surrogates; ``packed`` does not
unpacked = msgspec.msgpack.Decoder(list[list[str]]).decode


def packed(lists: object) -> bytes:
    """Pack a list of ids, or lists of them; half of a pair of surrogates is escaped."""
    try:
        return encode(lists)
    except UnicodeEncodeError:
        return encode(_escaped(lists))


def _escaped(lists: Any) -> Any:
    return encodable(lists) if isinstance(lists, str) else [_escaped(item) for item in lists]


def first_of(doc_ids: Sequence[str], k: int, *, by_document: bool) -> Sequence[str]:
    """Return the first ``k`` results; ``by_document``, the first ``k`` documents, each once."""
    return list(islice(dict.fromkeys(doc_ids), k)) if by_document else doc_ids[:k]


def together(rows: Iterable[bytes]) -> bytes:
    """Pack the rows of one query, each of which is packed already, up to ``bounds.BASELINE_ROWS`` of them."""
    held = [Raw(row) for _, row in zip(range(bounds.BASELINE_ROWS), rows, strict=False)]
    return encode(held)


def pool_of(pool: bytes) -> frozenset[str]:
    """Return the documents of a packed pool."""
    lists = unpacked(pool)
    return frozenset(lists[0]) if len(lists) == 1 else frozenset().union(*lists)


def packed_firsts(rows: Iterable[Sequence[str]], k: int, *, by_document: bool) -> list[bytes]:
    """Pack the first ``k`` ids of each row as the only row of its query."""
    firsts = [first_of(doc_ids, k, by_document=True) for doc_ids in rows] if by_document else [ids[:k] for ids in rows]
    try:
        return [encode([ids]) for ids in firsts]
    except UnicodeEncodeError:
        return [packed([ids]) for ids in firsts]
