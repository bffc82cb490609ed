"""Answers that are JSON, alone or in one fenced block as models like to write it, and the equality of JSON values.

Numbers are compared by value, objects regardless of the order of their keys, and all else exactly.
"""

import json
import re
from collections.abc import Hashable
from math import isfinite

import msgspec

from ragcontract.answers.normalising import Traced, Tracing, replaced
from ragcontract.core import bounds
from ragcontract.core.invisible import without_invisible
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.files.json_text import NestingError, check_nesting

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[\"\\/bfnrt]")
_FENCE = re.compile(r"\s*(?P<marks>`{3,}(?=[^`\n]*\n)|~{3,})[^\n]*\n")


class NotJsonError(ValueError):
    """The answer is not JSON; the message says why and completes "an answer that …"."""


def unescaped(answer: str) -> Traced | None:
    """Return an answer with the characters that its escapes stand for; None if it is not JSON."""
    if not is_json(answer):
        return None
    tracing = Tracing(answer)
    tracing.take(replaced(_ESCAPES, answer, _meant))
    return tracing.result()


def is_json(answer: str) -> bool:
    """Return whether a reader takes an answer for JSON, without invisible characters and even in an unclosed block."""
    seen = without_invisible(answer)
    fence = _FENCE.match(seen)
    try:
        parsed(f"{seen}\n{fence['marks']}" if fence and unfenced(seen) == seen else seen)
    except NotJsonError:
        return False
    return True


def _meant(escapes: re.Match[str]) -> str:
    return encodable(str(json.loads(f'"{escapes[0]}"')))


def unfenced(answer: str) -> str:
    """Return the content of an answer that is one fenced block of Markdown; any other answer as it is."""
    if fence := _FENCE.match(answer):
        marks = fence["marks"]
        block = answer[fence.end() :].rstrip()
        text = block.rstrip(marks[0])
        if len(block) - len(text) >= len(marks):
            return text
    return answer


def parsed(answer: str) -> object:
    """Return the JSON document that an answer is; raises :class:`NotJsonError`."""
    data = unfenced(answer).encode(errors="replace")
    try:
        check_nesting(data)
        return msgspec.json.decode(data)
    except NestingError as error:
        raise NotJsonError(f"is {error}") from None
    except msgspec.DecodeError as error:
        raise NotJsonError(f"is not JSON ({shorten(str(error), bounds.VALUE)})") from None


_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,3})?")
_AS_IT_IS = (str, bool, type(None))
_WORDS = {"true": True, "false": False, "null": None}


class TooDeepError(ValueError):
    """A value is nested too deeply to be compared."""


def comparable(value: object, *, lenient: bool = False, levels: float = bounds.ARGUMENT_LEVELS) -> Hashable:
    """Return something that is equal for equal JSON values, and only for these.

    A boolean is not a number, 1 is 1.0, and "1" is neither. If ``lenient``, a text that is a JSON number, true, false
    or null is that value. Raises TooDeepError for more than so many ``levels``.
    """
    if levels < 0:
        raise TooDeepError(f"is nested more than {bounds.ARGUMENT_LEVELS} levels deep")
    if lenient and isinstance(value, str):
        value = _lenient_scalar(value)
    if isinstance(value, _AS_IT_IS):
        return value
    if isinstance(value, dict):
        inner = [(name, comparable(item, lenient=lenient, levels=levels - 1)) for name, item in value.items()]
        return "object", frozenset(inner)
    if isinstance(value, list):
        return "list", tuple([comparable(item, lenient=lenient, levels=levels - 1) for item in value])
    # As text: unlike with numbers, nobody can choose texts whose hashes collide.
    return "number", repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _lenient_scalar(text: str) -> str | float | bool | None:
    """Return the number, boolean or null that a text is in JSON; otherwise the text."""
    if text in _WORDS:
        return _WORDS[text]
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text) if re.search("[.eE]", text) else int(text)
    return number if isfinite(number) else text
