"""The text of an answer as a page shows it, and words that mix alphabets.

A page shows Markdown without HTML tags and comments and without link targets, with entities decoded. Characters are in
their simplest form, as in the comparison of texts, so that patterns find 𝐬𝐞𝐜𝐫𝐞𝐭, too. A word that markup cuts
(``sec<b>ret</b>``, ``sec&shy;ret``) is one word for a reader. Code, blocks of HTML (apart from their tags) and escaped
characters are shown letter by letter. There, stand-ins replace characters that would be markup elsewhere, so that later
steps see no markup in them.

This is not a complete renderer, and renderers disagree about what is code. So an answer is always searched as it is
written, as a page shows it, and without any markup, in code or not. A text that is left out of one form is found in
another.

No search for "password" finds "pаssword" with a Cyrillic а. Such words are the mixed-script confusables of UTS #39,
restricted to alphabets whose letters look alike. Other scripts are rightly mixed within texts without blanks, as in
"Tシャツ", or have no letter that looks like one of another script.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache, partial
from html import unescape
from itertools import permutations
from typing import TypeAlias

from ragcontract.answers.normalising import (
    LINK,
    TARGET,
    TITLE,
    Change,
    Span,
    Traced,
    Tracing,
    by_cluster,
    invisible,
    link_targets,
    plain,
    replaced,
    simplified,
)


def rendered(text: str) -> Traced:
    """Return a text as a page shows it."""
    return _after(text, _SHOWING)


def stripped(text: str) -> Traced:
    """Return a text without any markup, even in code and after backslashes, where a page shows it."""
    return _after(text, _STRIPPING)


def cited(text: str) -> Traced:
    """Return a text as a page shows it, but with its links as they are written, and without brackets of code.

    Pages do not show a footnote that nothing refers to.
    """
    tracing = Tracing(text)
    tracing.take(invisible(text))
    tracing.take(without_brackets_of_code(tracing.text))
    tracing.take(replaced(_ESCAPED_BRACKETS, tracing.text))
    tracing.take(_without_unused_notes(tracing.text) if "[^" in tracing.text else ())
    _take(tracing, _SHOWING[:-1])
    tracing.text = meant(tracing.text)
    tracing.take(_simpler(tracing.text))
    return tracing.result()


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
# The beginning of a block of HTML, and the text in a line with which it ends; the last two end before a blank line.
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
# The end of a paragraph, which is also the end of code in it.
_END_OF_PARAGRAPH = re.compile(r"\n(?=[ \t]*(?:\n|[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|</?[a-z]))", re.IGNORECASE)


def stand_ins(text: str) -> str:
    """Return a text in which no character is markup."""
    return text.translate(_STAND_INS)


def meant(text: str) -> str:
    """Return a text with the characters that stand-ins replaced."""
    return text.translate(_MEANT) if _HAS_STAND_IN.search(text) else text


def literally(text: str, start: int, end: int, markup: re.Pattern[str] = MARKUP) -> Iterator[Change]:
    """Yield the changes that replace the characters of markup in a part of a text."""
    for match in markup.finditer(text, start, end):
        yield match.start(), match.end(), stand_ins(match[0])


def without_brackets_of_code(text: str) -> Iterator[Change]:
    """Yield the changes that replace the brackets in code by other ones, because ``list[9]`` cites nothing."""
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
    html: re.Pattern[str] | None = None  # the end of the block of HTML that the line is in
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
    """Return the end of the block of HTML that begins with a line, or None if none does."""
    if "<" not in line:
        return None
    kinds = _HTML_BLOCKS if after_blank else _HTML_BLOCKS[:_INTERRUPTING]
    return next((end for start, end in kinds if start.match(line)), None)


class CodeSpans:
    """Finds the end of code between backquotes, which is the next run of as many in the same paragraph."""

    def __init__(self, text: str) -> None:
        self._runs: dict[int, list[int]] = {}
        for run in re.finditer("`+", text):
            self._runs.setdefault(len(run[0]), []).append(run.start())
        self._ends = [match.start() for match in _END_OF_PARAGRAPH.finditer(text)] if self._runs else []

    def close(self, start: int, length: int) -> int | None:
        """Return the beginning of the run that closes a run of this length; None if there is none."""
        runs = self._runs.get(length, [])
        after = bisect_right(runs, start)
        if after == len(runs):
            return None
        paragraph = bisect_right(self._ends, start)
        inside = paragraph == len(self._ends) or runs[after] < self._ends[paragraph]
        return runs[after] if inside else None


_Step: TypeAlias = tuple[tuple[str, ...], Callable[[str], Iterator[Change]]]

_ESCAPE = r"\\(?P<escaped>[!-/:-@\[-`{-~]|(?=\n))"
_TICKS = "(?P<ticks>`+)"
_TAIL = rf"(?P<tail>\]\([^\S\n]*+{TARGET}(?:[^\S\n]++{TITLE})?[^\S\n]*+\))"  # of a link
_ADDRESS = r"<(?P<address>(?:https?|ftp|mailto):[^\s<>]*|[^\s<>@]++@[^\s<>@]+)>"
_HIDDEN = r"<(?P<hidden>!--(?P<empty>-?>)?|\?|!\[CDATA\[|![a-z]|(?:script|style|template)\b)"
_VALUES = r"""(?:[^<>"']|"[^"]*"|'[^']*')*+>"""  # at most three tags read the same quotes, so time stays linear
_UNCLOSED = r"(?:\s++[^\s<>=]++=[^\s<>]*+)*+\s*+(?=<)"  # the next tag closes this one, too
_TAG = rf"</?(?P<name>[a-z][^\s/<>]*+)(?:{_VALUES}|[^<>]*>|{_UNCLOSED})|<[!?/][^<>]*>"
_ENTITY = r"&(?:\#0*[0-9]{1,7}|\#x0*[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});?"
_HTML = re.compile(f"{_ESCAPE}|{_TICKS}|{_TAIL}|{_ADDRESS}|{_HIDDEN}|{_TAG}|{_ENTITY}", re.IGNORECASE)
_ENTITIES = re.compile(_ENTITY, re.IGNORECASE)
_BLOCK = re.compile(
    r"address|article|aside|blockquote|br|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6r]|"
    r"header|li|main|nav|ol|option|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul",
    re.IGNORECASE,
)
_FENCE_LINE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t>]*\[([^\[\]\n]+)\]:", re.MULTILINE)
# A definition that leads somewhere and begins no paragraph's second line: [Answer]: Paris stays, as some pages show it.
_DEFINITION = re.compile(
    rf"(?P<before>\A|\n[ \t]*\n)(?P<all>(?:[ \t]*\[(?!\^)[^\[\]\n]*\w[^\[\]\n]*\]:[ \t]*+\n?[ \t]*+"
    rf"(?:<[^<>\n]*>|(?:[a-z][a-z0-9+.-]*+:|\.{{0,2}}/|\#|www\.)[^\s<>]*+)(?:[ \t]++{TITLE})?[ \t]*+(?:\n|\Z))+)",
    re.IGNORECASE,
)
_NOTE = re.compile(  # with the lines of its paragraph and indented paragraphs
    r"^[ \t>]*\[\^([^\[\]\n]+)\]:[^\n]*"
    r"(?:\n(?![ \t>]*(?:\n|\Z|\[\^[^\[\]\n]+\]:))[^\n]+|\n(?:[ \t]*+\n)++(?: {4}|\t)[^\n]+)*",
    re.MULTILINE,
)
_NOTE_MARK = re.compile(r"\[\^([^\[\]\n]+)\]")
_ESCAPED_BRACKETS = re.compile(r"\\(?=[\[\]])")
_REFERENCE = re.compile(r"!?\[([^\[\]\n]*)\](?:\[([^\[\]\n]*)\])?")
_PAIR = re.compile(r"(\*{1,3})([^\s*](?:[^*\n]*[^\s*])?)\1")
_STRUCK = re.compile(r"(?<!~)(~)([^\s~](?:[^~\n]*[^\s~])?)~(?!~)")
_MARKS = re.compile(r"~~|`|(?<![^\W_])_+|_++(?![^\W_])")
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_CLOSING = {"!--": "--!?>", "?": r"\?>", "![cdata[": "]]>"}
_LEAST_INDENTATION = 4  # characters, with the line end before them
_INDENTATION = re.compile(r"(?:\A|\n) *\Z")
_AFTER_BREAK = re.compile(r"[^\S\n]*\n?")
_RUN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")  # with the ASCII character that a mark may combine with


def _after(text: str, steps: Sequence[_Step]) -> Traced:
    tracing = Tracing(text)
    tracing.take(invisible(text))
    labels = frozenset(map(str.casefold, _DEFINED.findall(tracing.text))) if "]:" in tracing.text else frozenset()
    _take(tracing, steps)
    if labels:
        tracing.take(_without_references(tracing.text, labels))
    _take(tracing, _EMPHASIS)
    tracing.text = meant(tracing.text)
    tracing.take(_simpler(tracing.text))
    tracing.text = simplified(tracing.text)
    return tracing.result()


def _take(tracing: Tracing, steps: Sequence[_Step]) -> None:
    for marks, changes in steps:
        if any(mark in tracing.text for mark in marks):
            tracing.take(changes(tracing.text))


def _without_html(text: str, *, literal: bool) -> Iterator[Change]:
    """Yield the changes that remove tags, comments and backslashes of escapes, and decode entities.

    With ``literal``, code and characters that a backslash or an entity stands for are not markup.
    """
    at = 0
    closes: dict[str, int] = {}
    code = CodeSpans(text) if literal else None
    while match := _HTML.search(text, at):
        start, at = match.span()
        kind = "hidden" if match["hidden"] else match.lastgroup
        if kind == "hidden":
            at = at if match["empty"] else _end_of_hidden(text, match, closes, literal=literal)
            yield start, at, ""
        elif kind == "escaped":
            yield start, start + 1, ""
            yield from literally(text, start + 1, at) if literal else ()
        elif kind == "ticks":
            close = code.close(start, at - start) if code else None
            if close is not None:
                yield start, at, ""
                yield from literally(text, at, close)
                yield close, close + at - start, ""
                at = close + at - start
        elif kind == "tail":
            at = at if literal else start + 1
            yield from literally(text, start, at, HTML) if literal else ()
        elif kind == "address":
            yield start, match.start(kind), ""
            yield match.end(kind), at, ""
        elif match[0][0] == "&":
            yield start, at, _decoded(match, literal=literal)
        else:
            is_block = _BLOCK.fullmatch(match["name"] or "")
            if is_block and match["name"].lower() == "br" and (after := _AFTER_BREAK.match(text, at)):
                at = after.end()
            yield start, at, "\n" if is_block else ""


def _end_of_hidden(text: str, match: re.Match[str], closes: dict[str, int], *, literal: bool) -> int:
    """Return the end of a comment, or of an element that pages do not show; if unclosed, the end of its first tag.

    On a page, an unclosed comment at the beginning of a line hides all that follows. ``closes`` has the next end of
    each kind, which is beyond the text if there is none, so that each is searched for once.
    """
    name = match["hidden"].lower()
    if closes.get(name, 0) < match.end():
        end = _CLOSING.get(name) or (">" if name[0] == "!" else rf"</{name}[^<>]*>")
        close = re.compile(end, re.IGNORECASE).search(text, match.end())
        closes[name] = close.end() if close else len(text) + 1
    if closes[name] <= len(
        text
    ):  # in a browser, any ">" ends markup that is not a comment, once Markdown has left it as it is
        return closes[name] if name == "!--" or name.isalpha() else text.index(">", match.end()) + 1
    begins_line = _INDENTATION.search(text, max(0, match.start() - _LEAST_INDENTATION), match.start())
    return len(text) if literal and name == "!--" and begins_line else match.end()


def _decoded(match: re.Match[str], *, literal: bool = False) -> str:
    meant = unescape(match[0])
    # Some applications encode entities twice.
    return "&".join(map(stand_ins, meant.split("&"))) if literal else meant


def _simpler(text: str) -> Iterator[Change]:
    """Yield the changes that make letters plain, which write 𝐬 and ｓ as s."""
    if plain(text) == text:  # the common case, and much faster
        return
    for run in _RUN.finditer(text):
        for start, end, new in by_cluster(run[0], plain):
            yield run.start() + start, run.start() + end, new


def _only_groups(pattern: re.Pattern[str], text: str, *, group: int = 1) -> Iterator[Change]:
    """Yield the changes that reduce each match to a group."""
    for match in pattern.finditer(text):
        yield match.start(), match.start(group), ""
        yield match.end(group), match.end(), ""


def _without_definitions(text: str) -> Iterator[Change]:
    for match in _DEFINITION.finditer(text):
        yield *match.span("all"), ""


def _without_unused_notes(text: str) -> Iterator[Change]:
    """Yield the changes that remove footnotes to which nothing outside of footnotes refers."""
    used = frozenset(map(str.casefold, _NOTE_MARK.findall(_NOTE.sub("", text))))
    for note in _NOTE.finditer(text):
        if note[1].casefold() not in used:
            yield note.start(), note.end(), ""


def _without_references(text: str, labels: frozenset[str]) -> Iterator[Change]:
    """Yield the changes that reduce links such as ``[text][label]`` to their text, if the label is defined."""
    for match in _REFERENCE.finditer(text):
        if (match[2] or match[1]).casefold() in labels:
            yield match.start(), match.start(1), ""
            yield match.end(1), match.end(), ""


_without_stars = partial(_only_groups, _PAIR, group=2)
# The marks that each step looks for, and its changes. Emphasis is nested.
_SHOWING: tuple[_Step, ...] = (
    (("```", "~~~", "<", "    ", "\t", ">"), blocks),
    (("]:",), _without_definitions),
    (("<", "&", "\\", "`"), partial(_without_html, literal=True)),
    (("&",), partial(replaced, _ENTITIES, by=partial(_decoded, literal=True))),
    (("",), invisible),
    (("](",), partial(_only_groups, LINK)),
)
_STRIPPING: tuple[_Step, ...] = (
    (("```", "~~~"), partial(replaced, _FENCE_LINE)),
    (("<", "&", "\\"), partial(_without_html, literal=False)),
    (("&",), partial(replaced, _ENTITIES, by=_decoded)),
    (("",), invisible),
    ((">",), partial(replaced, _QUOTE_MARKS)),
    (("](",), link_targets),
)
_EMPHASIS: tuple[_Step, ...] = (
    (("*",), _without_stars),
    (("*",), _without_stars),
    (("~",), partial(_only_groups, _STRUCK, group=2)),
    (("~~", "`", "_"), partial(replaced, _MARKS)),
)


# The blocks of each alphabet. Greek has only the letters that look like Latin ones, because "kΩ" and "Δt" are right.
_ALPHABETS = {
    "Latin": "A-Za-zªºÀ-ÖØ-öø-ʯᴀ-ᴥᵢ-ᵥᵬ-ᵷᵹ-ᶥḀ-ỿⱠ-Ɀ꜠-ꟿꬰ-ꭤＡ-Ｚａ-ｚ𝐀-𝚥",
    "Greek": "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧΆΈΉΊΌΎονρυόύϲϳϹ",
    "Cyrillic": "Ѐ-ҁҊ-ԯᲀ-ᲈꙀ-ꙮꚀ-ꚝ",
    "Armenian": "Ա-Ֆՠ-ֈ",
    "Cherokee": "Ꭰ-Ᏽᏸ-ᏽꭰ-ꮿ",
    "Coptic": "Ϣ-ϯⲀ-ⳤ",
    "Lisu": "ꓐ-ꓷ",
}
_LETTERS = {name: re.compile(f"[{letters}]") for name, letters in _ALPHABETS.items()}
_ASCII = frozenset(map(chr, range(128)))
_ASCII_LETTERS = frozenset(filter(str.isalpha, _ASCII))
_MARK = "[\u0300-\u036f]"
_WORD = re.compile(rf"(?:[^\W_]|{_MARK}){{3,}}")  # shorter ones are symbols, as "hν"


def alphabets_of(text: str) -> tuple[str, ...]:
    """Return the names of the alphabets in a text that have letters which look alike."""
    chars = frozenset(text)
    names = {name for char in chars - _ASCII if (name := _alphabet(char))}
    if not chars.isdisjoint(_ASCII_LETTERS):  # to look at each of them takes half as long again
        names.add("Latin")
    return tuple(sorted(names))


def mixed_word(text: str) -> tuple[Span, list[str]] | None:
    """Return the span of the first word with letters of several alphabets, and the names of these."""
    present = alphabets_of(text)
    if len(present) < 2 or not _meeting(present).search(text):  # noqa: PLR2004
        return None
    for word in _WORD.finditer(text):
        names = [name for name in _ALPHABETS if _LETTERS[name].search(word[0])]
        if len(names) > 1 and _meeting(present).search(word[0]):
            return word.span(), names
    return None


@lru_cache(maxsize=4096)
def _alphabet(char: str) -> str:
    return next((name for name, letters in _LETTERS.items() if letters.match(char)), "")


@cache
def _meeting(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of two letters of different alphabets beside each other; few words need more than that."""
    pairs = permutations(names, 2)
    return re.compile("|".join(f"[{_ALPHABETS[first]}]{_MARK}*[{_ALPHABETS[second]}]" for first, second in pairs))
