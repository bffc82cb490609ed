"""Finds keys that a JSON object has twice, of which decoders silently take the last value."""

import json
import re
from collections.abc import Sequence

from ragcontract.core import bounds
from ragcontract.core.text import shorten

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
        raise _DoubledError(next(name for number, name in enumerate(names) if name in names[:number]))


def fault(key: str) -> str:
    """Return what is wrong with an object that has a key twice."""
    return f"duplicate key {shorten(key, bounds.NAME)!r} in one object; leave one of the two values"


class DoubledKeys:
    """Compares the keys of the first rows of a file: comparing all of them would take longer than reading them."""

    def __init__(self, limit: int) -> None:
        """Compare the keys in so many bytes, and in the row that goes beyond them."""
        self._left = limit

    def of_row(self, line: bytes) -> str | None:
        """Return a key that a row has twice, if its keys are compared."""
        if self._left <= 0:
            return None
        self._left -= len(line)
        return doubled_key(line)

    def of_rows(self, lines: Sequence[bytes]) -> dict[int, str]:
        """Return the keys that rows have twice, by the index of their lines."""
        if self._left <= 0:
            return {}
        return {index: key for index, line in enumerate(lines) if (key := self.of_row(line)) is not None}
