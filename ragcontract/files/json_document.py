"""JSON that is easy to read in a diff and is written incrementally: indented, with long lists one item per line."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec
from msgspec import Struct

# The items of fields that are lists, or the lists within fields that are objects.
Lists: TypeAlias = Mapping[str, "Iterable[object] | Lists"]


def document(record: Struct, lists: Lists) -> Iterator[bytes]:
    """Yield the record as indented JSON; ``lists`` has the items of the fields that are written one item per line."""
    yield from _object(msgspec.json.encode(record), lists, b"\n")
    yield b"\n"


def _object(json: bytes, lists: Lists, margin: bytes) -> Iterator[bytes]:
    """Yield an object with its fields two blanks right of the ``margin``, which begins with a line break."""
    inner = margin + b"  "
    before = b"{"
    for name, value in msgspec.json.decode(json, type=dict[str, msgspec.Raw]).items():
        yield before + inner + msgspec.json.encode(name) + b": "
        within = lists.get(name)
        if within is None:
            yield msgspec.json.format(bytes(value), indent=2).replace(b"\n", inner)  # never in a string
        elif isinstance(within, Mapping):
            yield from _object(bytes(value), within, inner)
        else:
            yield from _rows(within, inner)
        before = b","
    yield margin + b"}"


def _rows(items: Iterable[object], margin: bytes) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    before = b"[" + margin + b"  "
    for item in items:
        yield before + encode(item)
        before = b"," + margin + b"  "
    yield margin + b"]" if before.startswith(b",") else b"[]"
