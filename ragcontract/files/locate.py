"""Finds the line numbers of values in a JSON document, for use in messages."""

import json
import re
from collections.abc import Sequence
from functools import cached_property

_SPACE = re.compile(r"[ \t\r\n]*")


class JsonLocator:
    """Locates the values of a valid JSON document."""

    def __init__(self, text: str) -> None:
        """Store the document; it is scanned only when a line is requested."""
        self._text = text
        self._decode = json.JSONDecoder().raw_decode
        self._starts: dict[int, dict[str | int, int]] = {}
        self._last = 0, 1  # an offset and its line

    def line(self, path: Sequence[str | int]) -> int:
        """Return the 1-based line of the value at ``path``, or of its innermost existing parent."""
        at = self._root
        for part in path:
            start = self._children(at).get(part)
            if start is None:
                break
            at = start
        return self._line_at(at)

    @cached_property
    def _root(self) -> int:
        """The offset of the whole value, which any number of blank lines may precede."""
        return self._skip(0)

    def _line_at(self, at: int) -> int:
        """Count from the last line found: values are mostly located in order, and whole documents precede them."""
        start, line = self._last if self._last[0] <= at else (0, 1)
        self._last = at, line + self._text.count("\n", start, at)
        return self._last[1]

    def _children(self, at: int) -> dict[str | int, int]:
        """Map the keys or indexes of the object or list at ``at`` to the offsets of their values."""
        if at not in self._starts:
            self._starts[at] = dict(self._scan(at)) if self._text[at] in "{[" else {}
        return self._starts[at]

    def _scan(self, at: int) -> list[tuple[str | int, int]]:
        found: list[tuple[str | int, int]] = []
        is_object = self._text[at] == "{"
        at = self._skip(at + 1)
        while self._text[at] not in "}]":
            name: str | int = len(found)
            if is_object:
                name, at = self._decode(self._text, at)
                at = self._skip(self._skip(at) + 1)  # past the colon
            found.append((name, at))
            _, at = self._decode(self._text, at)
            at = self._skip(at)
            if self._text[at] == ",":
                at = self._skip(at + 1)
        return found

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at
