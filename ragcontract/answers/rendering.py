"""What a page shows of an answer: without HTML tags and comments, link targets and Markdown, and entities decoded.

Characters are in their simplest form, as in the comparison of texts, so that patterns find 𝐬𝐞𝐜𝐫𝐞𝐭, too.

A word that markup cuts (``sec<b>ret</b>``, ``sec&shy;ret``) is one word for a reader. This is no complete renderer, and
readers differ: what is code for one is none for another. So an answer is always searched as it is written, as a page
shows it, and without any markup, whether it is in code or not. What is left out of one form is found in another.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from ragcontract.answers.literal import HTML, CodeSpans, blocks, literally, meant, stand_ins, without_brackets_of_code
from ragcontract.answers.normalising import LINK, TARGET, TITLE, by_cluster, invisible, link_targets, simplified
from ragcontract.answers.plain_letters import plain
from ragcontract.answers.tracing import Change, Traced, Tracing, replaced

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
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t>]*\[([^\[\]\n]+)\]:", re.MULTILINE)
# A definition that leads somewhere and begins no paragraph's second line: [Answer]: Paris stays, as some pages show it.
_DEFINITION = re.compile(
    rf"(?P<before>\A|\n[ \t]*\n)(?P<all>(?:[ \t]*\[(?!\^)[^\[\]\n]*\w[^\[\]\n]*\]:[ \t]*+\n?[ \t]*+"
    rf"(?:<[^<>\n]*>|(?:[a-z][a-z0-9+.-]*+:|\.{{0,2}}/|\#|www\.)[^\s<>]*+)(?:[ \t]++{TITLE})?[ \t]*+(?:\n|\Z))+)",
    re.IGNORECASE,
)
_ESCAPED_BRACKETS = re.compile(r"\\(?=[\[\]])")
_REFERENCE = re.compile(r"!?\[([^\[\]\n]*)\](?:\[([^\[\]\n]*)\])?")
_PAIR = re.compile(r"(\*{1,3})([^\s*](?:[^*\n]*[^\s*])?)\1")
_STRUCK = re.compile(r"(?<!~)(~)([^\s~](?:[^~\n]*[^\s~])?)~(?!~)")
_MARKS = re.compile(r"~~|`|(?<![^\W_])_+|_++(?![^\W_])")
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_BROKEN = re.compile(r"(?<=\S)[^\S\n]*\n(?![^\S\n]*(?:\n|[-*+>|#]|\d+[.)]\s|`{3}|~{3}))[^\S\n]*|[^\S\n]{2,}|[^\S\n ]")
_CLOSING = {"!--": "--!?>", "?": r"\?>", "![cdata[": "]]>"}
_INDENTED = 4  # characters, with the line end before them
_INDENTATION = re.compile(r"(?:\A|\n) *\Z")
_AFTER_BREAK = re.compile(r"[^\S\n]*\n?")
_RUN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")  # with the ASCII character that a mark may combine with


def rendered(text: str) -> Traced:
    """Return what a page shows of a text."""
    return _after(text, _SHOWING)


def stripped(text: str) -> Traced:
    """Return a text without any markup, also where a page shows it: in code and after backslashes."""
    return _after(text, _STRIPPING)


def cited(text: str) -> Traced:
    """Return what a page shows of a text, but with its links as they are written, and without brackets of code."""
    tracing = Tracing(text)
    tracing.take(invisible(text))
    tracing.take(without_brackets_of_code(tracing.text))
    tracing.take(replaced(_ESCAPED_BRACKETS, tracing.text))
    _take(tracing, _SHOWING[:-1])
    tracing.text = meant(tracing.text)
    tracing.take(_simpler(tracing.text))
    return tracing.result()


def flowing(text: str) -> Traced:
    """Return a text whose blanks within a paragraph are one each, as pages show them."""
    tracing = Tracing(text)
    tracing.take(replaced(_BROKEN, text, " "))
    return tracing.result()


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

    With ``literal``, code and what a backslash or an entity stands for are no markup.
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
    """Return where a comment, or an element that pages do not show, ends: with its first tag if it is not closed.

    On a page, a comment at the beginning of a line that is not closed hides all that follows. ``closes`` has where each
    kind is closed next, beyond the text if it never is, so that all of them are looked for once.
    """
    name = match["hidden"].lower()
    if closes.get(name, 0) < match.end():
        end = _CLOSING.get(name) or (">" if name[0] == "!" else rf"</{name}[^<>]*>")
        found = re.compile(end, re.IGNORECASE).search(text, match.end())
        closes[name] = found.end() if found else len(text) + 1
    if closes[name] <= len(text):  # to a browser, any ">" ends what is no comment, once Markdown has left it as it is
        return closes[name] if name == "!--" or name.isalpha() else text.index(">", match.end()) + 1
    begins_line = _INDENTATION.search(text, max(0, match.start() - _INDENTED), match.start())
    return len(text) if literal and name == "!--" and begins_line else match.end()


def _decoded(match: re.Match[str], *, literal: bool = False) -> str:
    from html import unescape

    meant = unescape(match[0])
    # Some applications encode entities twice.
    return "&".join(map(stand_ins, meant.split("&"))) if literal else meant


def _simpler(text: str) -> Iterator[Change]:
    """Yield what makes letters plain, which writes 𝐬 and ｓ as s."""
    if plain(text) == text:  # the common case, and much faster
        return
    for run in _RUN.finditer(text):
        for start, end, new in by_cluster(run[0], plain):
            yield run.start() + start, run.start() + end, new


def _only_groups(pattern: re.Pattern[str], text: str, *, group: int = 1) -> Iterator[Change]:
    """Yield the changes that leave of each match only a group."""
    for match in pattern.finditer(text):
        yield match.start(), match.start(group), ""
        yield match.end(group), match.end(), ""


def _without_definitions(text: str) -> Iterator[Change]:
    """Yield the changes that remove definitions of links."""
    for match in _DEFINITION.finditer(text):
        yield *match.span("all"), ""


def _without_references(text: str, labels: frozenset[str]) -> Iterator[Change]:
    """Yield the changes that leave of links as ``[text][label]`` only the text, if the label is defined."""
    for match in _REFERENCE.finditer(text):
        if (match[2] or match[1]).casefold() in labels:
            yield match.start(), match.start(1), ""
            yield match.end(1), match.end(), ""


_without_stars = partial(_only_groups, _PAIR, group=2)
# What each step looks for, and what it changes. Emphasis is nested.
_SHOWING: tuple[_Step, ...] = (
    (("```", "~~~", "<", "    ", "\t", ">"), blocks),
    (("]:",), _without_definitions),
    (("<", "&", "\\", "`"), partial(_without_html, literal=True)),
    (("&",), partial(replaced, _ENTITIES, by=partial(_decoded, literal=True))),
    (("",), invisible),
    (("](",), partial(_only_groups, LINK)),
)
_STRIPPING: tuple[_Step, ...] = (
    (("```", "~~~"), partial(replaced, _FENCE)),
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
