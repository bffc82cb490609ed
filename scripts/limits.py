"""Reads the limits and their comments from ``ragcontract/core/bounds.py``.

Their tables stand in docs/reference/limits.md.
"""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ragcontract.core import bounds

_HEADING = re.compile(r"# (?P<heading>.+)")
_LIMIT = re.compile(r"(?P<name>[A-Z_]+) = [^#]+  # (?P<unit>[^;]*); (?P<what>[^;]+); (?P<beyond>[^;]+)")
SIZES = {"MiB": 1 << 20, "KiB": 1 << 10}


class Limit(Struct, frozen=True, kw_only=True):
    """One limit: its name in the code, its value with its unit, what it is about, what happens beyond it."""

    name: str
    value: str
    what: str
    beyond: str


class Group(Struct, frozen=True, kw_only=True):
    """The limits under one heading, and the reasons that stand below it; they may be empty."""

    heading: str
    reasons: str
    limits: list[Limit]


def groups() -> Iterator[Group]:
    """Yield the groups in their order; raises ValueError for a line that is no comment and no limit with its parts."""
    source = Path(bounds.__file__).read_text(encoding="utf-8")
    for block in source.split("\n\n"):
        comments = [match["heading"] for line in block.splitlines() if (match := _HEADING.fullmatch(line))]
        if comments:
            limits = [_limit(line) for line in block.splitlines()[len(comments) :]]
            yield Group(heading=comments[0], reasons=textwrap.fill(" ".join(comments[1:]), 120), limits=limits)


def _limit(line: str) -> Limit:
    match = _LIMIT.fullmatch(line)
    if not match:
        raise ValueError(f"expected `NAME = value  # unit; what is limited; what happens beyond`, found {line!r}")
    return Limit(
        name=match["name"],
        value=_value(getattr(bounds, match["name"]), match["unit"]),
        what=_sentence(re.sub("^those", match["unit"], match["what"])),
        beyond=_sentence(match["beyond"]),
    )


def _value(value: float, unit: str) -> str:
    """Format a value for people: ``64 MiB``, ``2,000 characters``, ``0.001``."""
    if unit == "bytes":
        for name, size in SIZES.items():
            if value >= size and value % size == 0:
                return f"{value // size:,} {name}"
    written = f"{value:,}" if isinstance(value, int) else f"{value:g}".replace("e-0", "e-")
    return f"{written} {unit}".rstrip()


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
