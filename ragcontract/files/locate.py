"""Finds the line numbers of values in a JSON document, for use in messages."""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count

_SPACE = re.compile(r"[ \t\r\n]*")


class JsonLocator:
    """Locates the values of a valid JSON document."""

    def __init__(self, text: str) -> None:
        """Store the document; it is scanned only when a line is requested."""
        self._text = text
        self._decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode  # Python limits the digits of int()
        self._starts: dict[int, tuple[dict[str | int, int], Iterator[tuple[str | int, int]]]] = {}
        self._last = 0, 1  # an offset and its line

    def line(self, path: Sequence[str | int]) -> int:
        """Return the 1-based line of the value at ``path``, or of its innermost existing parent."""
        at = self._root
        for part in path:
            start = self._child(at, part)
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

    def _child(self, at: int, part: str | int) -> int | None:
        """Return the offset of the value at a key or index of the object or list at ``at``.

        Scans only as far as necessary: the offsets of millions of values need more memory than the document.
        """
        if at not in self._starts:
            self._starts[at] = {}, self._scan(at)
        found, rest = self._starts[at]
        while part not in found:
            try:
                name, start = next(rest)
            except StopIteration:
                return None
            found[name] = start
        return found[part]

    def _scan(self, at: int) -> Iterator[tuple[str | int, int]]:
        if self._text[at] not in "{[":
            return
        is_object = self._text[at] == "{"
        at = self._skip(at + 1)
        for index in count():
            if self._text[at] in "}]":
                return
            name: str | int = index
            if is_object:
                name, at = self._decode(self._text, at)
                at = self._skip(self._skip(at) + 1)  # past the colon
            yield name, at
            _, at = self._decode(self._text, at)
            at = self._skip(at)
            if self._text[at] == ",":
                at = self._skip(at + 1)

    def _skip(self, at: int) -> int:
        match = _SPACE.match(self._text, at)
        return match.end() if match else at
