"""Text of a report for the page: visible and of bounded length. The templates escape it."""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.text import shorten, visible
from ragcontract.judging.decision import QueryStatus
from ragcontract.judging.gates import Status

MAX_TEXT, MAX_ID, MAX_NAME, MAX_NOTE = 1_000, 120, 80, 5_000
# The page's script has these labels from here.
STATUS: dict[Status | QueryStatus, str] = {
    "pass": "✓ pass",
    "fail": "✕ fail",
    "waived": "○ waived",
    "warn": "! warn",
    "none": "no limit",
}
Style = Literal["text", "name", "code", "small"]


class Part(Struct, frozen=True):
    """A part of a sentence, and how it looks; the macro ``sentence`` puts it together."""

    text: str
    style: Style = "text"


class Badge(Struct, frozen=True):
    """A status and its label."""

    status: Status | QueryStatus
    label: str


def badge(status: Status | QueryStatus) -> Badge:
    """Return a status with its label."""
    return Badge(status, STATUS[status])


def shown(text: str, length: int = MAX_TEXT) -> str:
    """Return text from a file as the page shows it."""
    return shorten(visible(text), length)


def code(name: str) -> Part:
    """Return a name from a file that is shown as code."""
    return Part(shown(name, MAX_ID), "code")


def note(text: str | None) -> Sequence[str]:
    """Return a note as the page shows it, none where there is nothing to say."""
    return [shown(text, MAX_NOTE)] if text else []


def sentence(phrase: Phrase, length: int = MAX_NAME) -> list[Part]:
    """Return the parts of a phrase; its names, of at most ``length`` characters, are set apart from the text."""
    return [Part(shown(part.name, length), "name") if isinstance(part, Name) else Part(shown(part)) for part in phrase]


def with_code(phrase: Phrase) -> list[Part]:
    """Return the parts of a phrase of our own, whose names and commands (which are in backquotes) are code."""
    return [piece for part in phrase for piece in ([code(part.name)] if isinstance(part, Name) else _commands(part))]


def _commands(text: str) -> Iterable[Part]:
    for number, piece in enumerate(re.split("`([^`]+)`", text)):
        if piece:
            yield Part(shown(piece), "code" if number % 2 else "text")
