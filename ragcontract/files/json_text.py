"""JSON as bytes and text: lines of a file, depth of nesting, errors, keys that occur twice, lines of values.

Errors are explained for users who know their export but not the parser. Of a key that occurs twice in an object,
decoders silently take the last value, so such keys are refused.

Nesting has the same limit for every version of Python. Decoders have limits of their own, which differ between
decoders, between versions of Python, and with the depth of the calling stack, so that one may refuse what another has
just decoded. Below this limit, none of them does.
"""

import json
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, count, repeat
from typing import TypeVar

import msgspec
from msgspec.structs import astuple

from ragcontract.core import bounds
from ragcontract.core.numbers import mebibytes
from ragcontract.core.phrase import Message, private
from ragcontract.core.safe_text import shorten
from ragcontract.files.opening import BUFFER, UTF8_BOM, InputFile

HEAD = 1024  # number of bytes examined to detect binary data
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
UTF16_JSON = frozenset({b"{\0", b"\0{", b"[\0", b"\0["})  # its first bytes without a byte order mark
UTF16 = "is UTF-16 or UTF-32; save the file as UTF-8"
ZIP, PARQUET = b"PK\x03\x04", b"PAR1"


class UnreadableError(Exception):
    """The rest of the file cannot be read as lines; ``lines_on`` is the offset from the last line read."""

    def __init__(self, message: str, *, lines_on: int = 0) -> None:
        super().__init__(message)
        self.lines_on = lines_on


def lines_of(file: InputFile, expected: str) -> Iterator[bytes]:
    """Yield lines of at most ``bounds.LINE``, without byte order marks and line feeds.

    Raises :class:`UnreadableError`, with ``expected`` (such as "JSON lines") in the message, or one of ``READ_ERRORS``.
    """
    for lines in line_blocks_of(file, expected):
        for line in lines:
            yield line.removeprefix(UTF8_BOM)  # on any line: files may be concatenated


def line_blocks_of(file: InputFile, expected: str) -> Iterator[list[bytes]]:
    """Yield the lines of the file in blocks, without line feeds but with byte order marks.

    Raises the same errors as :func:`lines_of`.
    """
    head = file.stream.peek(HEAD)[:HEAD]
    if head.startswith(UTF16_BOMS) or head[:2] in UTF16_JSON:
        raise UnreadableError(UTF16, lines_on=1)
    if head.startswith(ZIP):
        raise UnreadableError(
            f"is a ZIP archive, as Excel files are too; expected {expected}, or gzip of them", lines_on=1
        )
    if head.startswith(PARQUET):
        raise UnreadableError("is Parquet; give it a name that ends in .parquet", lines_on=1)
    if b"\0" in head:
        raise UnreadableError(f"is binary data; expected {expected} as UTF-8 text, or gzip of them", lines_on=1)
    longest = min(bounds.LINE, file.longest or bounds.LINE)
    begun: list[bytes] = []  # parts of a line that continues in the next block
    while block := file.stream.read1(BUFFER):
        begun.append(block)
        if b"\n" not in block:
            if sum(map(len, begun)) > longest:
                raise _too_long(longest)
            continue
        *lines, rest = b"".join(begun).split(b"\n")
        if len(lines[0]) > longest:
            raise _too_long(longest)
        yield lines
        begun = [rest]
    if last := b"".join(begun):
        yield [last]


def _too_long(longest: int) -> UnreadableError:
    advice = "" if longest == bounds.LINE else ", which is too much for a gzip file of its size; give it unpacked"
    return UnreadableError(f"the line is longer than {mebibytes(longest)}{advice}", lines_on=1)


_STEPS = bytes.maketrans(b"[]{}", b"\x01\xff\x01\xff")  # one level down, one up, as signed bytes
_NO_BRACKETS = bytes(set(range(256)) - set(b'[]{}"'))


class NestingError(RecursionError):
    """JSON that is nested more than ``bounds.NESTING`` levels deep."""


def check_nesting(data: bytes) -> None:
    """Raise :class:`NestingError` if a JSON document is nested too deeply.

    Does not recurse, and takes less than half of the time of decoding. Other errors are left to the decoder.
    """
    if data.count(b"[") + data.count(b"{") <= bounds.NESTING:
        return
    steps = _brackets(data).translate(_STEPS)
    if max(accumulate(memoryview(steps).cast("b")), default=0) > bounds.NESTING:
        raise NestingError(f"nested more than {bounds.NESTING} levels deep")


def _brackets(data: bytes) -> bytes:
    """Return the brackets outside of strings."""
    unescaped = data.replace(rb"\\", b"").replace(rb"\"", b"")
    quoted = unescaped.translate(None, _NO_BRACKETS).replace(b'""', b"")  # strings without brackets, nearly all
    return re.sub(rb'"[^"]*"', b"", quoted)


_REASON = r"JSON is malformed: (?P<reason>.+) \(byte (?P<at>\d+)\)"  # compiled when needed: that takes 1 ms
_HINTS = (
    (re.compile(r"<{7}|={7}|>{7}"), "a merge conflict was left in the file"),
    (re.compile(r"NaN|Inf"), "JSON has no NaN or Infinity: write null or leave the field out"),
    (re.compile(r"None|True|False"), "JSON writes null, true and false"),
    (re.compile(r"'"), "JSON wants double quotes"),
    (re.compile(r"[\x00-\x1f]"), r"JSON wants control characters in text escaped, as \n or \t"),
)


def malformed(data: bytes, error: Exception) -> tuple[int, str]:
    """Return the 1-based line in ``data`` of the first JSON error, and a message.

    ``error`` is the exception raised by decoding: msgspec's DecodeError, a UnicodeDecodeError or a RecursionError.
    """
    if isinstance(error, RecursionError):
        limit = f": more than {bounds.NESTING} levels" if isinstance(error, NestingError) else ""
        return 1, f"is nested too deeply{limit}"
    if data.startswith(UTF16_BOMS):
        return 1, UTF16
    try:
        data.decode()
    except UnicodeDecodeError as bad:
        line, column = _position(data, bad.start)
        if bad.reason == "unexpected end of data":  # cut off within a multi-byte character
            return line, _truncated(data)
        return line, f"is not UTF-8 (byte 0x{data[bad.start]:02x} at column {column}); save the file as UTF-8"
    text = str(error)
    if match := re.fullmatch(_REASON, text):
        return _explain(data, match["reason"], int(match["at"]))
    if "truncated" in text:
        return _position(data, len(data.rstrip()))[0], _truncated(data)
    if "out of range" in text:
        return 1, "has a number that is too large to read"
    return 1, f"is not what was expected: {text}"


def _explain(data: bytes, reason: str, at: int) -> tuple[int, str]:
    if reason == "trailing characters":  # only for this reason, the position is one byte too high
        line, column = _position(data, at - 1)
        rest = _rest(data, at - 1)
        hint = "; lines do not end in commas" if rest == repr(",") else ""
        rest = f"{rest} at column {column}{hint}"
        return line, Message.quoting("goes on after the end of its JSON object: ", private(rest))
    line, column = _position(data, at)
    rest = data[at:].decode(errors="replace")
    hint = next((f"; {advice}" for start, advice in _HINTS if start.match(rest)), "")
    start = f"is not JSON: {reason} at column {column}, before "
    return line, Message.quoting(start, private(f"{_rest(data, at)}{hint}"))


def _truncated(data: bytes) -> str:
    if b"\\u" in data and data.rstrip().endswith(b"}"):
        return "is not JSON: a \\u escape is only half of a character"
    return "is cut off in the middle; was the export stopped before it had finished?"


def _rest(data: bytes, at: int) -> str:
    line = data[at : at + 4 * bounds.JSON_REST].decode(errors="replace").rstrip("\r\n").split("\n")[0]
    return repr(line[: bounds.JSON_REST]) if line else "the end of the line"


def _position(data: bytes, at: int) -> tuple[int, int]:
    """Return the 1-based line and column of a byte; columns count characters, as editors do."""
    start = data.rfind(b"\n", 0, at) + 1
    return data.count(b"\n", 0, at) + 1, len(data[start:at].decode(errors="replace")) + 1


Name = TypeVar("Name", bound=Hashable)
_NAME = re.compile(rb'"([^"\\]*+)"\s*+:')


class _DoubledError(Exception):
    """An object has a key twice."""


def doubled_key(data: bytes) -> str | None:
    """Return a key that an object within a document has twice; None without such a key, and if it is not JSON."""
    if b"\\" not in data:
        names = _NAME.findall(data)
        if len(set(names)) == len(names):
            return None  # nearly all rows, except those of runs, in which each result has a doc_id
    try:
        json.loads(data, object_pairs_hook=_refuse_doubled, parse_int=len, parse_float=len)
    except _DoubledError as doubled:
        return str(doubled)
    except (ValueError, RecursionError):
        pass  # the decoder reports it
    return None


def _refuse_doubled(pairs: Sequence[tuple[str, object]]) -> None:
    """Raise _DoubledError for an object with a key twice; return nothing, so that no objects are held."""
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise _DoubledError(first_doubled(names))


def first_doubled(names: Iterable[Name]) -> Name | None:
    """Return the first name that occurs a second time; None if each occurs once."""
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def fault(key: str) -> str:
    """Return the message about an object that has a key twice."""
    rest = f"{shorten(key, bounds.NAME)!r} in one object; leave one of the two values"
    return Message.quoting("duplicate key ", private(rest))


class DoubledKeys:
    """Finds keys that occur twice in the rows of a file.

    The first ``limit`` bytes are searched, up to the end of the row that goes beyond them. None is no limit. Runs have
    one, because a search of all rows would take longer than reading them. Rows that are decoded as ``row_type`` are
    searched faster.
    """

    def __init__(self, limit: int | None, row_type: type[msgspec.Struct] | None = None) -> None:
        self._left: float = math.inf if limit is None else limit
        fields = msgspec.structs.fields(row_type) if row_type else ()
        has_only_none = all(field.required or field.default is None for field in fields)
        self._fields = len(fields) if has_only_none else 0

    def of_row(self, line: bytes) -> str | None:
        """Return a key that a row has twice, if the row is searched."""
        if self._left <= 0:
            return None
        self._left -= len(line)
        return doubled_key(line)

    def of_rows(self, lines: Sequence[bytes], rows: Sequence[msgspec.Struct] | None = None) -> dict[int, str]:
        """Return the keys that rows have twice, by the index of their lines; ``rows`` are the rows, if all are decoded.

        A row has a colon for each key, and a key for each field that is not None. If there are as many colons as such
        fields, no key occurs twice. This makes it four times as fast.
        """
        if self._left <= 0:
            return {}
        if rows is None or not self._fields:
            return {index: key for index, line in enumerate(lines) if (key := self.of_row(line)) is not None}
        key_counts = [self._fields - values.count(None) for values in map(astuple, rows)]
        if sum(map(bytes.count, lines, repeat(b":"))) == sum(key_counts):
            return {}
        unclear = [index for index, line in enumerate(lines) if _most_keys(line) != key_counts[index]]
        return {index: key for index in unclear if (key := self.of_row(lines[index])) is not None}


def _most_keys(line: bytes) -> int:
    """Return how many keys a row and the objects in it can have at most. A blank or a colon follows each key."""
    return sum(map(line.count, (b'":', b" :", b"\t:", b"\r:")))


_SPACE = re.compile(r"[ \t\r\n]*")


class JsonLocator:
    """Locates the values of a valid JSON document, which is scanned only when a line is requested."""

    def __init__(self, text: str) -> None:
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
        """The offset of the whole value, which may follow any number of blank lines."""
        return self._skip(0)

    def _line_at(self, at: int) -> int:
        """Return the line of an offset, counted from the last one, because values are mostly located in order."""
        start, line = self._last if self._last[0] <= at else (0, 1)
        self._last = at, line + self._text.count("\n", start, at)
        return self._last[1]

    def _child(self, at: int, part: str | int) -> int | None:
        """Return the offset of the value at a key or index of the object or list at ``at``.

        Scans only as far as necessary, because the offsets of millions of values need more memory than the document.
        """
        if at not in self._starts:
            self._starts[at] = {}, self._scan(at)
        offsets, rest = self._starts[at]
        while part not in offsets:
            try:
                name, start = next(rest)
            except StopIteration:
                return None
            offsets[name] = start
        return offsets[part]

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
