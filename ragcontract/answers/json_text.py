"""Answers that are JSON: alone, or in one fenced block as models like to write it."""

import json
import re

import msgspec

from ragcontract.answers.tracing import Traced, Tracing, replaced
from ragcontract.core import bounds
from ragcontract.core.invisible import without_invisible
from ragcontract.core.text import encodable, shorten
from ragcontract.files.nesting import NestingError, check_nesting

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[\"\\/bfnrt]")
_FENCE = re.compile(r"\s*(?P<marks>`{3,}(?=[^`\n]*\n)|~{3,})[^\n]*\n")


class NotJsonError(ValueError):
    """The answer is no JSON; the message says why and completes "an answer that …"."""


def unescaped(answer: str) -> Traced | None:
    """Return an answer with what the escapes in it stand for; None if it is not JSON, in which they may be anything."""
    if not is_json(answer):
        return None
    tracing = Tracing(answer)
    tracing.take(replaced(_ESCAPES, answer, _meant))
    return tracing.result()


def is_json(answer: str) -> bool:
    """Return whether a reader takes an answer for JSON: without invisible characters, also in a block left open."""
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
    """Return what is in the one fenced block that an answer is, as Markdown has them; any other answer as it is."""
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
        raise NotJsonError(f"is no JSON ({shorten(str(error), bounds.VALUE)})") from None
