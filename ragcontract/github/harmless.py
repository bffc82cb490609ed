"""Text of a stranger, in the shape of our own reports, made harmless.

Nothing is filtered out of the Markdown: each line is taken apart as our reports would have written it, and what is in
it is written anew by the functions that reports are written with. So whatever the text was, what comes out has no
mention, link, picture or HTML but ours, and a genuine report reads as before.
"""

import html
import re
from collections.abc import Iterator

from ragcontract.reports.markdown.gfm import code, text

_FOLD = re.compile(r"<details><summary>(?!.*\b[0-9a-fA-F]{7,40}\b)(?:[A-Za-z0-9 ,]|: ){1,200}</summary>")
_STARTS = ("### ", "- ")
_BOLD = re.compile(r"\*\*([^* ][^*]*)\*\*(.*)")
_RULER = re.compile(r"\|(?: -{3}:? \|)+")
# What stands in a line of ours besides text: ids as code, in one of two spellings; breaks in cells; dollar signs.
_PIECES = re.compile(
    r"(?P<escaped>\\[!-/:-@\[-`{-~])"
    r"|`(?P<plain>[^`|\\]+)`(?!`)"
    r"|<code>(?P<entities>(?:[A-Za-z0-9 ]|&#[0-9]{1,7};|<!-- -->)*)</code>"
    r"|(?P<line_break><br>)"
    r"|(?P<dollar><span>\$</span>)"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<char>.)",
    re.DOTALL,
)
_WRITTEN_BY_US = re.compile("[\u200b\u200c]")  # zero-width spaces: where they are needed they come again


def harmless(markdown: str) -> str:
    """Write Markdown anew, line by line: with nothing that reaches beyond it, and all folds closed."""
    lines: list[str] = []
    depth = 0
    for raw in markdown.replace("\r\n", "\n").split("\n"):
        line = raw.strip(" ")
        if line.startswith("<!-- rag-contract "):
            continue
        if _FOLD.fullmatch(line):  # a summary is HTML: it has letters and numbers only, and none like a commit's
            lines += ["", line, ""]  # HTML lasts to the next empty line, and nothing in it is read as Markdown
            depth += 1
        elif line == "</details>":
            lines += ["", line, ""] if depth else []
            depth -= depth > 0
        else:
            lines.append(_line(line))
    lines += ["", "</details>", ""] * depth
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _line(line: str) -> str:
    if _RULER.fullmatch(line):
        return line
    if line.startswith("| ") and line.endswith(" |"):
        return "| " + " | ".join(_written(cell, breaks=True) for cell in line[2:-2].split(" | ")) + " |"
    if bold := _BOLD.fullmatch(line):
        return f"**{_written(bold[1])}**{_written(bold[2])}"
    start = next((start for start in _STARTS if line.startswith(start)), "")
    written = start + _written(line.removeprefix(start).lstrip(" "))
    return f"\\{written}" if written.startswith("=") else written  # under a line of text it would be a heading's


def _written(markdown: str, *, breaks: bool = False) -> str:
    """Write a stretch of text and ids anew. ``breaks`` are for table cells: alone in a line one would begin HTML."""
    return "".join(_pieces(markdown, breaks=breaks))


def _pieces(markdown: str, *, breaks: bool) -> Iterator[str]:
    plain = ""
    for piece in _PIECES.finditer(markdown):
        kind, found = piece.lastgroup, piece[0]
        if kind == "plain":
            written = code(piece["plain"])
        elif kind == "entities":
            written = code(html.unescape(piece["entities"].replace("<!-- -->", "")))
        elif (kind == "line_break" and breaks) or found == "&#32;":  # a space that would else be lost at the start
            written = found
        else:
            meant = {"escaped": found[1:], "dollar": "$", "entity": html.unescape(found)}
            plain += meant.get(kind or "", found)
            continue
        yield _plain(plain)
        yield written
        plain = ""
    yield _plain(plain)


def _plain(meant: str) -> str:
    words = _WRITTEN_BY_US.sub("", meant)
    spaces = len(words) - len(words.lstrip(" "))
    return words[:spaces] + text(words[spaces:])
