"""Keys of the configuration that have no value: null never switches a limit off in silence."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import fields

from ragcontract.files.schema import Mismatch, shown

NO_VALUE = "has no value; write one, or delete the line"
AFTER_COMMA = re.compile(r"[0-9]{1,9}(?:[eE][0-9]{1,2})?(?: ?%)?")  # what is left of "0,95" after the comma
GLUED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*):(\S.*)", re.DOTALL)
Path = tuple[str | int, ...]


def without_empty_sections(value: Any, record: type[Struct]) -> Any:
    """Return what a file says in ``record``, without the sections and lists that have nothing in them.

    That is what is left of a section where everything below its name is a comment.
    """
    if not isinstance(value, dict):
        return value
    empty = sections(record)
    return {
        key: without_empty_sections(inner, empty.get(key) or Struct)
        for key, inner in value.items()
        if inner is not None or key not in empty
    }


def sections(record: type[Struct]) -> dict[str, type[Struct] | None]:
    """Return the keys of a record that are sections or lists, which may be empty, with the records of the sections."""
    found: dict[str, type[Struct] | None] = {}
    for field in fields(record):
        if isinstance(field.default, Struct):
            found[field.name] = type(field.default)
        elif field.default_factory in {dict, list}:
            found[field.name] = None
    return found


def keys_without_value(value: Any, explained: Collection[Path], path: Path = ()) -> Iterator[Mismatch]:
    """Yield the keys without a value, apart from those at the paths that are ``explained`` already."""
    if value is None and path not in explained:
        yield Mismatch(path, NO_VALUE)
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield from keys_without_value(inner, explained, (*path, step))


def why_without_value(path: Path, value: Any) -> str | None:
    """Return what an unknown key without a value probably is: the rest of a number, or a key with its value."""
    mapping = _at(path[:-1], value)
    key = str(path[-1])
    if not isinstance(mapping, Mapping) or mapping.get(key) is not None:
        return None
    keys = list(mapping)
    before = keys[keys.index(key) - 1] if keys.index(key) else None
    number = mapping.get(before)
    if AFTER_COMMA.fullmatch(key) and isinstance(number, int) and not isinstance(number, bool):
        meant = f"{before}: {number}.{key}"
        return f"is what follows the comma in `{before}: {number},{key}`; with a decimal point, write `{meant}`"
    if match := GLUED.fullmatch(key):
        return f"unknown key without a value; write a blank after the colon of {shown(match[1])}"
    return None


def _at(path: Path, value: Any) -> Any:
    for step in path:
        value = value[step]
    return value
