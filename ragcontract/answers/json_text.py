"""Answers that are JSON: alone, or in one fenced block as models like to write it."""

import re

import msgspec

from ragcontract.core import bounds
from ragcontract.core.text import shorten
from ragcontract.files.nesting import NestingError, check_nesting

_FENCE = re.compile(r"\s*```[A-Za-z0-9]{0,20}[^\S\n]*\n(.*)```\s*", re.DOTALL)
FENCES = 2  # where the block opens and where it closes


class NotJsonError(ValueError):
    """The answer is no JSON; the message says why and completes "an answer that …"."""


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
