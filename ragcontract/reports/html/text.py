"""What the parts of the HTML page are made of: escaped text, ids as code, notes, folds, statuses."""

import re
from collections.abc import Sequence
from html import escape

from ragcontract.core.text import shorten, visible
from ragcontract.judging.decision import QueryStatus
from ragcontract.judging.gates import Status

MAX_ID, MAX_NOTE, MAX_LINES = 120, 5_000, 100
# The page's script has these words from here.
STATUS: dict[Status | QueryStatus, str] = {
    "pass": "✓ pass",
    "fail": "✕ fail",
    "waived": "○ waived",
    "warn": "! warn",
    "none": "no limit",
}


def text(value: str, length: int = 1_000) -> str:
    """Write text from a file for HTML: visible, of bounded length, escaped."""
    return escape(shorten(visible(value), length))


def code(value: str) -> str:
    """Write a name from a file as code. Its backquotes are none for :func:`sentence`."""
    return f"<code>{text(value, MAX_ID).replace('`', '&#96;')}</code>"


def sentence(words: str) -> str:
    """Write our own words, in which names are :func:`code` already and commands stand in backquotes."""
    return re.sub("`([^`<]+)`", r"<code>\1</code>", words)


def paragraph(words: str | None) -> str:
    """Write a note, if there is one."""
    return f'<p class="note">{text(words, MAX_NOTE)}</p>' if words else ""


def badge(status: Status | QueryStatus) -> str:
    """Write a status."""
    return f'<span class="status {status}">{STATUS[status]}</span>'


def fold(title: str, lines: Sequence[str]) -> str:
    """Hide a list of lines, which are HTML, behind a title."""
    more = [f"… and {len(lines) - MAX_LINES:,} more"] if len(lines) > MAX_LINES else []
    listed = "".join(f"<li>{line}</li>" for line in [*lines[:MAX_LINES], *more])
    return f"<details><summary>{title}</summary><ul>{listed}</ul></details>"
