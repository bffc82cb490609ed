"""What a page shows of Markdown letter by letter: code, blocks of HTML (but for their tags), escaped characters.

Characters that would be markup elsewhere are replaced by stand-ins there, so that later steps see no markup in them.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

from ragcontract.answers.tracing import Change

_PLANE = 0xF0000  # private use: no text has a meaning there
_OF_MARKDOWN = "!()*[\\]_`~"
_STAND_INS = {ord(char): chr(_PLANE + ord(char)) for char in f"{_OF_MARKDOWN}:@&<>"}
_MEANT = {ord(stand_in): chr(code) for code, stand_in in _STAND_INS.items()}
MARKUP = re.compile(f"[{re.escape(_OF_MARKDOWN)}&<>]")
_MARKDOWN = re.compile(f"[{re.escape(_OF_MARKDOWN[1:])}:@]")  # without "!", which begins a comment
HTML = re.compile(r"[&<>\\`]")
_HAS_STAND_IN = re.compile("[\U000f0021-\U000f007e]")

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_QUOTE = re.compile(r"(?: {0,3}> ?)+")
_FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}(?=[^`\n]*$)|~{3,})", re.MULTILINE)
_CODE = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})(?s:.*?)(?:^[ \t>]*(?P=fence)|\Z)|(?P<ticks>`+)", re.MULTILINE
)
_LIST = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")
_BLOCKS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
# How a block of HTML begins, and with what text in a line it ends; the last two end before a blank line.
_UNTIL_BLANK = re.compile("(?!)")
_HTML_BLOCKS = tuple(
    (re.compile(rf"[ \t]*{start}", re.IGNORECASE), re.compile(end, re.IGNORECASE) if end else _UNTIL_BLANK)
    for start, end in (
        (r"<(?:pre|script|style|textarea)(?=[\s>]|$)", "</(?:pre|script|style|textarea)>"),
        ("<!--", "-->"),
        (r"<\?", r"\?>"),
        (r"<!\[CDATA\[", "]]>"),
        ("<![a-z]", ">"),
        (rf"</?(?:{_BLOCKS})(?=[\s/>]|$)", ""),
        (r"</?[a-z][a-z0-9-]*(?:\s[^<>]*)?/?>[ \t]*$", ""),
    )
)
_INTERRUPTING = len(_HTML_BLOCKS) - 1  # the last one begins only after a blank line
# Where a paragraph ends, which code does not go across.
_END_OF_PARAGRAPH = re.compile(r"\n(?=[ \t]*(?:\n|[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|</?[a-z]))", re.IGNORECASE)


def stand_ins(text: str) -> str:
    """Return a text in which no character is markup."""
    return text.translate(_STAND_INS)


def meant(text: str) -> str:
    """Return a text with the characters for which others stand."""
    return text.translate(_MEANT) if _HAS_STAND_IN.search(text) else text


def literally(text: str, start: int, end: int, markup: re.Pattern[str] = MARKUP) -> Iterator[Change]:
    """Yield the changes that replace what would be markup in a part of a text."""
    for match in markup.finditer(text, start, end):
        yield match.start(), match.end(), stand_ins(match[0])


def without_brackets_of_code(text: str) -> Iterator[Change]:
    """Yield the changes that replace the brackets in code by others, one for one: ``list[9]`` cites nothing."""
    runs = CodeSpans(text)
    at = 0
    while match := _CODE.search(text, at):
        start, at = match.span()
        if match["ticks"]:
            close = runs.close(at, at - start)
            if close is None:
                continue
            start, at = at, close
        for bracket in re.compile(r"[\[\]]").finditer(text, start, at):
            yield bracket.start(), bracket.end(), "⟦" if bracket[0] == "[" else "⟧"
        if match["ticks"]:
            at += len(match["ticks"])


def blocks(text: str) -> Iterator[Change]:
    """Yield the changes that remove the marks of fences and quotes, and make blocks of code and HTML literal."""
    fence = ""
    html: re.Pattern[str] | None = None  # with what the block of HTML ends that the line is in
    after_blank, in_list = True, False
    for line in _LINE.finditer(text):
        start, end = line.span()
        if quote := _QUOTE.match(text, start, end):
            yield start, quote.end(), ""
            start = quote.end()
        rest = text[start:end].rstrip("\n")
        blank = not rest or rest.isspace()
        mark = _FENCE.match(rest)
        if fence:
            if mark and mark["marks"].startswith(fence) and not rest[mark.end() :].strip():
                yield start, start + len(rest), ""
                fence = ""
            else:
                yield from literally(text, start, end)
        elif html and not (blank and html is _UNTIL_BLANK):
            yield from literally(text, start, end, _MARKDOWN)
            html = None if html.search(rest) else html
        elif mark:
            yield start, start + len(rest), ""
            fence, html = mark["marks"], None
        elif _INDENTED.match(rest) and after_blank and not in_list:
            yield from literally(text, start, end)
            continue  # the next line is code, too
        else:
            html = _html_block(rest, after_blank=after_blank)
            if html:
                yield from literally(text, start, end, _MARKDOWN)
                html = None if html.search(rest) else html
            in_list = bool(_LIST.match(rest)) or (in_list and (blank or not after_blank or rest[:1].isspace()))
        after_blank = blank


def _html_block(line: str, *, after_blank: bool) -> re.Pattern[str] | None:
    """Return with what a block of HTML ends that begins with a line, or None if none does."""
    if "<" not in line:
        return None
    kinds = _HTML_BLOCKS if after_blank else _HTML_BLOCKS[:_INTERRUPTING]
    return next((end for start, end in kinds if start.match(line)), None)


class CodeSpans:
    """Finds where code ends that begins with backquotes: at the next run of as many, in the same paragraph."""

    def __init__(self, text: str) -> None:
        """Look at all runs of a text once."""
        self._runs: dict[int, list[int]] = {}
        for run in re.finditer("`+", text):
            self._runs.setdefault(len(run[0]), []).append(run.start())
        self._ends = [match.start() for match in _END_OF_PARAGRAPH.finditer(text)] if self._runs else []

    def close(self, start: int, length: int) -> int | None:
        """Return where the run begins that closes one of this length; None if there is none."""
        runs = self._runs.get(length, [])
        after = bisect_right(runs, start)
        if after == len(runs):
            return None
        paragraph = bisect_right(self._ends, start)
        inside = paragraph == len(self._ends) or runs[after] < self._ends[paragraph]
        return runs[after] if inside else None
