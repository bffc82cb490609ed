"""Define the spans of a trace, and read their attributes.

Attributes are flat, as on the wire, or nested, as some tools write them.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.files.json_text import check_nesting

Attributes = Mapping[str, Any]
REDACTED = "__REDACTED__"  # what OpenInference has in place of a value that it hides


class SpanError(ValueError):
    """Something is not a span, or is too large to be read as one; the message says what was expected."""


class Span(Struct, frozen=True, kw_only=True):
    """What is read of a span. Ids are hexadecimal."""

    trace: str
    id: str
    parent: str = ""  # empty if it has none
    name: str = ""
    start: int = 0  # ns
    end: int = 0  # ns
    error: str | None = None  # the message if the span failed
    dropped: int = 0  # how many attributes the sender left out, because there were too many
    attributes: Attributes = {}


def at(attributes: Attributes, path: str) -> Any:
    """Return the attribute ``a.b.c``, however it is split into keys; None if it is missing or hidden."""
    if path in attributes:
        return None if attributes[path] == REDACTED else attributes[path]
    head, dot, rest = path.partition(".")
    while dot:
        if isinstance(inner := attributes.get(head), Mapping) and (value := at(inner, rest)) is not None:
            return value
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def text_at(attributes: Attributes, *paths: str) -> str | None:
    """Return the first of several attributes that is a text and not empty."""
    return next((value for path in paths if isinstance(value := at(attributes, path), str) and value), None)


def listed_at(attributes: Attributes, path: str) -> list[Attributes] | None:
    """Return the objects that an attribute lists; None if there is no such attribute.

    They may be a list, a list as JSON, or flat keys such as ``path.0.name``. Raises SpanError if there are too many.
    """
    items = parsed(at(attributes, path))
    if not isinstance(items, Sequence) or isinstance(items, str):
        items = _flat(attributes, path)
    elif len(items) > bounds.RETURNED:
        raise SpanError(f"{path}: lists more than {bounds.RETURNED:,} items")
    return None if items is None else [item for item in items if isinstance(item, Mapping)]


def _flat(attributes: Attributes, path: str) -> list[Attributes] | None:
    items: dict[int, dict[str, Any]] = {}
    start = f"{path}."
    for name, value in attributes.items():
        if name.startswith(start):
            number, _, rest = name[len(start) :].partition(".")
            if rest and number.isascii() and number.isdecimal() and len(number) <= len(str(bounds.RETURNED)):
                items.setdefault(int(number), {})[rest] = value
    if len(items) > bounds.RETURNED:
        raise SpanError(f"{path}: lists more than {bounds.RETURNED:,} items")
    return [items[number] for number in sorted(items)] if items else None


def parsed(value: Any) -> Any:
    """Return the list or the object that a text is as JSON; other values as they are."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"[", "{"}:
        return value
    try:
        data = value.encode()
        check_nesting(data)
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):  # among them texts that only begin like JSON
        return value


def ancestors(span: Span, by_id: Mapping[str, Span]) -> Iterator[Span]:
    """Yield the spans around a span, from the inside out; stop at a circle, which hostile traces may have."""
    seen = {span.id}
    while (parent := by_id.get(span.parent)) is not None and parent.id not in seen:
        seen.add(parent.id)
        yield parent
        span = parent
