"""JSON that is easy to read in a diff and is written incrementally: indented, with long lists one item per line."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct


def document(record: Struct, lists: Mapping[str, Iterable[object]]) -> Iterator[bytes]:
    """Yield the record as indented JSON; ``lists`` has the items of the fields that are written one item per line."""
    before = b"{\n"
    for name, value in msgspec.json.decode(msgspec.json.encode(record), type=dict[str, msgspec.Raw]).items():
        yield before + b"  " + msgspec.json.encode(name) + b": "
        if name in lists:
            yield from _rows(lists[name])
        else:
            yield msgspec.json.format(bytes(value), indent=2).replace(b"\n", b"\n  ")  # never in a string
        before = b",\n"
    yield b"\n}\n"


def _rows(items: Iterable[object]) -> Iterator[bytes]:
    encode = msgspec.json.Encoder().encode
    before = b"[\n    "
    for item in items:
        yield before + encode(item)
        before = b",\n    "
    yield b"\n  ]" if before.startswith(b",") else b"[]"
