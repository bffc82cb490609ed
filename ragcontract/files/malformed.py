"""Explains where and why bytes are not valid JSON, for users who know their export but not the parser."""

import re

from ragcontract.core import bounds
from ragcontract.files.lines import UTF16, UTF16_BOMS
from ragcontract.files.nesting import NestingError

_REASON = re.compile(r"JSON is malformed: (?P<reason>.+) \(byte (?P<at>\d+)\)")
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
    if found := _REASON.fullmatch(text):
        return _explain(data, found["reason"], int(found["at"]))
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
        return line, f"goes on after the end of its JSON object: {rest} at column {column}{hint}"
    line, column = _position(data, at)
    rest = data[at:].decode(errors="replace")
    hint = next((f"; {advice}" for start, advice in _HINTS if start.match(rest)), "")
    return line, f"is not JSON: {reason} at column {column}, before {_rest(data, at)}{hint}"


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
