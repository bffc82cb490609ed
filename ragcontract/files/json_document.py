"""JSON that reads well in a diff and is written as it is made: indented, but for long lists, with an item a line."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct


def document(record: Struct, lists: Mapping[str, Iterable[object]]) -> Iterator[bytes]:
    """Yield the record as indented JSON; ``lists`` are the items of fields of it that are empty lists, in its order."""
    rest = msgspec.json.format(msgspec.json.encode(record), indent=2)
    for name, items in lists.items():
        # A line break is escaped in any text, so this is the field itself, at the outermost level.
        start, field, rest = rest.partition(b'\n  "' + name.encode() + b'": []')
        yield start + field.removesuffix(b"]")
        yield from _rows(items)
        yield b"]"
    yield rest + b"\n"


def _rows(items: Iterable[object]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    before = b"\n    "
    for item in items:
        yield before + encode(item)
        before = b",\n    "
    if before.startswith(b","):
        yield b"\n  "
