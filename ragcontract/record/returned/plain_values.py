"""Turns what a system returns into values that JSON has, without importing what it was made with."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from typing import Any

import msgspec

from ragcontract.core.text import encodable, printable_json


def plain(value: object) -> Any:
    """Return a value with only what JSON has; scalars of numpy become numbers, and what is unknown becomes text.

    Raises ValueError if it is nested without end.
    """
    try:
        return _lists(msgspec.to_builtins(value, str_keys=True, enc_hook=_other))
    except RecursionError as error:
        raise ValueError("is nested without end") from error


def fields_of(value: object) -> Mapping[str, Any] | None:
    """Return the fields of a mapping or a record, such as a dataclass or a pydantic model; None for other values."""
    if isinstance(value, Mapping):
        return {str(name): inner for name, inner in value.items()}
    if isinstance(value, type | str | bytes):
        return None
    if is_dataclass(value):
        return {one.name: getattr(value, one.name, None) for one in fields(value)}
    cls = type(value)
    # In this order: msgspec, pydantic from version 2 on, named tuples, attrs.
    names: Iterable[str] = (
        getattr(cls, "__struct_fields__", None)
        or getattr(cls, "model_fields", None)
        or getattr(cls, "_fields", None)
        or [one.name for one in getattr(cls, "__attrs_attrs__", ())]
    )
    return {name: getattr(value, name, None) for name in names} or None


def part(value: object, name: str) -> Any:
    """Return a key of a mapping or an attribute of an object; None if there is none."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def as_json(value: Any) -> bytes:
    """Return JSON; halves of characters, which some services send and UTF-8 does not have, become escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(value))


def printable(document: bytes) -> bytes:
    """Return JSON in which nothing acts on a terminal or a CI runner; it stays equal as JSON."""
    return printable_json(document.decode()).encode()


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {encodable(str(name)): _encodable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_encodable(inner) for inner in value]
    return encodable(value) if isinstance(value, str) else value


def _lists(value: Any) -> Any:
    """Return builtin values with lists for tuples, which whatever walks through JSON would take for a value."""
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, list | tuple) else value


def _other(value: Any) -> Any:
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    found = fields_of(value)
    if found is not None:
        return dict(found)
    item = getattr(value, "item", None)  # an array of one number
    if callable(item) and getattr(value, "size", None) == 1:
        return item()
    return list(value) if isinstance(value, Iterable) and hasattr(value, "__len__") else str(value)
