"""Text for the HTML report, with visible control characters and limited length, and positions for bars.

The templates escape the text.
"""

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Scale
from ragcontract.core.phrase import Code, Name, Phrase
from ragcontract.core.safe_text import clipped, visible
from ragcontract.decision.gate_report import Status
from ragcontract.decision.policy import QueryStatus

# These labels are also passed to the page's script.
STATUS: dict[Status | QueryStatus, str] = {
    "pass": "✓ pass",
    "fail": "✕ fail",
    "unproven": "! over, not proven",
    "too_few": "! over, too few changed",
    "waived": "○ waived",
    "known": "○ known",
    "warn": "! warn",
    "counted": "! counted",
    "skipped": "○ skipped",
    "none": "no limit",
}
Style = Literal["text", "name", "code", "small"]


class Part(Struct, frozen=True):
    """A part of a sentence with its style; the template macro ``sentence`` renders it."""

    text: str
    style: Style = "text"


def shown(text: str, length: int = bounds.HTML_TEXT) -> str:
    """Return text with control characters made visible, shortened to ``length``."""
    return clipped(text, length)


def lines(text: str) -> str:
    """Return a text of up to forty lines with visible control characters; further line breaks are made visible, too."""
    first_lines = text.replace("\r\n", "\n").split("\n", bounds.HTML_SAID_LINES - 1)
    return "\n".join(map(visible, first_lines))


def code(name: str) -> Part:
    """Return a name as a part in the style of code."""
    return Part(shown(name, bounds.HTML_ID), "code")


def note(text: str | None) -> Sequence[str]:
    """Return a list with the note, or an empty list for None."""
    return [shown(text, bounds.HTML_NOTE)] if text else []


def sentence(phrase: Phrase, length: int = bounds.HTML_NAME) -> list[Part]:
    """Return the parts of a phrase; names have their own style and are shortened to ``length`` characters."""
    marks = {True: '"', False: ""}
    return [
        Part(f"{marks[part.quoted]}{shown(part.name, length)}{marks[part.quoted]}", "name")
        if isinstance(part, Name)
        else Part(shown(part))
        for part in phrase
    ]


def with_code(phrase: Phrase) -> list[Part]:
    """Return the parts of a phrase with names and commands as code."""
    return [
        code(part.name) if isinstance(part, Name) else Part(shown(part), "code" if isinstance(part, Code) else "text")
        for part in phrase
    ]


def of_scale(value: float | None, scale: Scale) -> str | None:
    """Return the position of a value on its scale as a percentage; None without a value or on an unbounded scale."""
    width = scale.high - scale.low
    if value is None or not 0 < width < math.inf:
        return None
    return f"{min(1.0, max(0.0, (value - scale.low) / width)) * 100:.2f}%"
