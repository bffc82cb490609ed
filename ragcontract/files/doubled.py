"""Finds keys that a JSON object has twice, of which decoders silently take the last value."""

import json
import math
import re
from collections.abc import Hashable, Iterable, Sequence
from itertools import repeat
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from ragcontract.core import bounds
from ragcontract.core.text import shorten

Name = TypeVar("Name", bound=Hashable)
_NAME = re.compile(rb'"([^"\\]*+)"\s*+:')


class _DoubledError(Exception):
    """An object has a key twice."""


def doubled_key(data: bytes) -> str | None:
    """Return a key that an object within a JSON document has twice; None if there is none, or it is not JSON."""
    if b"\\" not in data:
        names = _NAME.findall(data)
        if len(set(names)) == len(names):
            return None  # nearly all rows but those of runs, in which each result has a doc_id
    try:
        json.loads(data, object_pairs_hook=_refuse_doubled, parse_int=len, parse_float=len)
    except _DoubledError as doubled:
        return str(doubled)
    except (ValueError, RecursionError):
        pass  # which the decoder reports
    return None


def _refuse_doubled(pairs: Sequence[tuple[str, object]]) -> None:
    """Raise _DoubledError for an object with a key twice; return nothing, so that no objects are held."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise _DoubledError(first_doubled(names))


def first_doubled(names: Iterable[Name]) -> Name | None:
    """Return the first name that has come before; None if each comes once."""
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def fault(key: str) -> str:
    """Return what is wrong with an object that has a key twice."""
    return f"duplicate key {shorten(key, bounds.NAME)!r} in one object; leave one of the two values"


class DoubledKeys:
    """Compares the keys of the rows of a file, of a run those of its first rows: all would take longer than reading."""

    def __init__(self, limit: int | None, row_type: type[msgspec.Struct] | None = None) -> None:
        """Compare the keys in so many bytes, and in the row that goes beyond them; by default, in all rows.

        Rows that are decoded as ``row_type`` are compared quicker.
        """
        self._left: float = math.inf if limit is None else limit
        fields = msgspec.structs.fields(row_type) if row_type else ()
        has_only_none = all(field.required or field.default is None for field in fields)
        self._fields = len(fields) if has_only_none else 0

    def of_row(self, line: bytes) -> str | None:
        """Return a key that a row has twice, if its keys are compared."""
        if self._left <= 0:
            return None
        self._left -= len(line)
        return doubled_key(line)

    def of_rows(self, lines: Sequence[bytes], rows: Sequence[msgspec.Struct] | None = None) -> dict[int, str]:
        """Return the keys that rows have twice, by the index of their lines; ``rows`` are the rows, if all are known.

        A row has a colon for each key, and a key for each field that is not None: with as many of both, no key is there
        twice. This is an optimization, by a factor of four.
        """
        if self._left <= 0:
            return {}
        if rows is None or not self._fields:
            return {index: key for index, line in enumerate(lines) if (key := self.of_row(line)) is not None}
        given = [self._fields - values.count(None) for values in map(astuple, rows)]
        if sum(map(bytes.count, lines, repeat(b":"))) == sum(given):
            return {}
        unclear = [index for index, line in enumerate(lines) if _most_keys(line) != given[index]]
        return {index: key for index in unclear if (key := self.of_row(lines[index])) is not None}


def _most_keys(line: bytes) -> int:
    """Return how many keys a row can have, in objects within it, too: behind each one are blanks, or a colon."""
    return sum(map(line.count, (b'":', b" :", b"\t:", b"\r:")))
