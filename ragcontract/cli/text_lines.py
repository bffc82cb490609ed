"""Texts of files as lines that fit on a terminal, for screens that a person reads."""

import textwrap
import unicodedata

from ragcontract.core.safe_text import printable, visible

NARROWEST, TAB, NARROW, WIDE = 20, 4, 1, 2


def room(text: str, columns: int) -> int:
    """Return how many characters of a text fit on a line; Chinese, Japanese and Korean ones take two columns."""
    is_wide = not text.isascii() and any(unicodedata.east_asian_width(char) in "WF" for char in text)
    return max(columns, NARROWEST) // (WIDE if is_wide else NARROW)


def text_lines(text: str, columns: int, indent: str = "", *, most: int | None = None) -> list[str]:
    """Return a text in lines that fit on a terminal, on which nothing in it acts.

    The text keeps its own lines and their indentation, because code cannot be read without them; blank lines are left
    out. Of more than ``most`` lines, an ellipsis stands for the last ones.
    """
    lines: list[str] = []
    for line in text.split("\n"):
        shown = printable(visible(line.rstrip().expandtabs(TAB)))
        words, width = shown.lstrip(), room(shown, columns)
        margin = indent + " " * min(len(shown) - len(words), (width - len(indent)) // 2)
        lines += textwrap.wrap(words, width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
    return lines if most is None or len(lines) <= most else [*lines[: most - 1], f"{indent}…"]
