"""Answers that are JSON: alone, or in one fenced block as models like to write it."""

import json
import re

import msgspec

from ragcontract.answers.tracing import Traced, Tracing, replaced
from ragcontract.core import bounds
from ragcontract.core.text import encodable, shorten
from ragcontract.files.nesting import NestingError, check_nesting

_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\[^u]")
_FENCE = re.compile(r"\s*```[A-Za-z0-9]{0,20}[^\S\n]*\n(.*)```\s*", re.DOTALL)
FENCES = 2  # where the block opens and where it closes


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
    """Return whether an answer is JSON."""
    try:
        parsed(answer)
    except NotJsonError:
        return False
    return True


def _meant(escapes: re.Match[str]) -> str:
    return encodable(str(json.loads(f'"{escapes[0]}"')))


def unfenced(answer: str) -> str:
    """Return what is in the one fenced block that an answer is; the answer itself if it is anything else."""
    fenced = _FENCE.fullmatch(answer) if answer.count("```") == FENCES else None
    return fenced[1] if fenced else answer


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
