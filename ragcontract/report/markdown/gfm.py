"""GitHub Flavored Markdown: escaping, tables, lists and folded sections.

All text from files is escaped here: ids become code, questions become plain text. Neither can mention a user, refer to
an issue or a commit, link, show an image, open an HTML tag, or end a table, a fence or a folded section.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ragcontract.core import bounds
from ragcontract.core.numbers import more
from ragcontract.core.phrase import Phrase, render, shortened
from ragcontract.core.safe_text import clipped

ZERO_WIDTH_SPACE = "\u200b"

Item = TypeVar("Item")

# GitHub turns these into links and images after rendering Markdown, so escapes have no effect; a zero-width space has.
_MADE_A_LINK = re.compile(
    r"(?<=@)(?!(?<=\w@)\d+(?![\w.+-]))"  # a user, a team, an e-mail address; not MRR@5
    r"|(?<=#)(?=\d)"  # an issue, also of another repository
    r"|(?<=gh)(?=-\d)|(?<=ghsa)(?=-)|(?<=cve)(?=-\d)"
    r"|(?<=:)(?=//)|(?<=www)(?=\.)"
    r"|(?<=:)(?=[\w+-]+:)",  # an emoji
    re.IGNORECASE,
)
_COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b", re.IGNORECASE)
# Joiners and variation selectors, which `visible` allows. A renderer may drop them and see a line start behind them.
_START = re.compile("^([ \u180b-\u180d\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]*)([0-9]*[-+#.)])?")


def text(value: str) -> str:
    """Escape plain text that may be at the start of a line."""
    return _START.sub(_escaped_start, inline(value), count=1)


def _escaped_start(start: re.Match[str]) -> str:
    block = start[2] or ""  # a list, a heading
    return start[1].replace(" ", "&#32;") + (f"{block[:-1]}\\{block[-1]}" if block else "")  # blanks: an indented block


# Each of these characters becomes the text beside it. The span is GitHub's documented escape from formulas.
_ESCAPES = str.maketrans(
    {
        **{char: f"\\{char}" for char in r"\`*_[]~"},
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "|": "&#124;",
        "$": "<span>$</span>",
        ZERO_WIDTH_SPACE: "&#8203;",
    }
)


def inline(value: str) -> str:
    """Escape plain text within a line or a table cell, shortened: a text from a file may have any length."""
    plain = _MADE_A_LINK.sub(ZERO_WIDTH_SPACE, clipped(value, bounds.MARKDOWN_SENTENCE))
    plain = _COMMIT.sub(lambda match: ZERO_WIDTH_SPACE.join(re.findall(".{1,6}", match[0])), plain)
    return plain.translate(_ESCAPES)


def sentence(phrase: Phrase, escaped: Callable[[str], str] = inline, *, marks: str = '"') -> str:
    """Render a phrase, shortened, with its names as code."""
    return render(shortened(phrase, bounds.MARKDOWN_SENTENCE, bounds.MARKDOWN_ID), code, escaped, marks=marks)


def code(value: str) -> str:
    """Format an id as code, shortened; nothing in it is interpreted as Markdown, a mention or a link."""
    shown = clipped(value, bounds.MARKDOWN_ID)
    if shown and not re.search(r"[`|\\]", shown) and shown.strip() == shown:
        return f"`{shown}`"
    # Two backquotes around nothing would start code instead of being code, so they do not quote an empty name.
    return f"<code>{_entities(shown)}</code>"


def breaking_code(value: str) -> str:
    """Format an id as :func:`code` does, but allow line breaks in it, for tables that must fit on a phone."""
    shown = clipped(value, bounds.MARKDOWN_ID)
    pieces = re.findall("[A-Za-z0-9]{1,12}[^A-Za-z0-9]?|[^A-Za-z0-9]", shown)
    return f"<code>{'<wbr>'.join(map(_entities, pieces))}</code>" if len(pieces) > 1 else code(value)


def _entities(shown: str) -> str:
    """Write everything but letters and digits as entities: backquotes and pipes would end the code or the table cell.

    The empty comment prevents that the text around an @ is taken for an e-mail address.
    """
    entities = re.sub("[^A-Za-z0-9 ]", lambda match: f"&#{ord(match[0])};", shown)
    return entities.replace("&#64;", "&#64;<!-- -->")


def line(value: str) -> str:
    """Shorten plain text and escape it."""
    return text(clipped(value, bounds.MARKDOWN_LINE))


def bullets(lines: Sequence[str], max_rows: int, further: int = 0) -> str:
    """Return a Markdown list of the first lines, and a count of the others; ``further`` is added to the count."""
    shown = [f"- {line(item)}" for item in lines[:max_rows]]
    return "\n".join(filter(None, [*shown, more(len(lines) + further, len(shown), form="- … and {}")]))


def first_of(items: Sequence[Item], most: int, render: Callable[[Item], str]) -> str:
    """Return the first items with commas between them, and a count of the others."""
    return ", ".join(filter(None, [*map(render, items[:most]), more(len(items), most)]))


def cut(
    items: Sequence[Item],
    max_rows: int,
    noun: str,
    render: Callable[[Sequence[Item]], str],
    where: str = ", in `report.json`",
) -> list[str]:
    """Render the first items, and add a line that counts the others and says ``where`` they are."""
    parts = [render(items[:max_rows])] if items[:max_rows] else []
    return list(filter(None, [*parts, more(len(items), max_rows, noun, f"… and {{}}{where}.")]))


def table(head: Sequence[str], align: str, body: Iterable[Sequence[str]]) -> str:
    """Return a table; ``align`` has one letter per column, ``l`` or ``r``."""
    ruler = ["---:" if side == "r" else "---" for side in align]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ruler, *body))


def fold(summary: str, *parts: str) -> str:
    """Return a folded section with these parts."""
    return "\n\n".join([f"<details><summary>{summary}</summary>", *parts, "</details>"])
