"""What a page shows of an answer: without HTML tags and comments, link targets and Markdown, and entities decoded.

Characters are in their simplest form, as in the comparison of texts, so that patterns find 𝐬𝐞𝐜𝐫𝐞𝐭, too.

A word that markup cuts (``sec<b>ret</b>``, ``sec&shy;ret``) is one word for a reader. This is not a renderer: an answer
is always searched as it is written, too, so what is left out here by mistake is found there.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

from ragcontract.answers.composing import composed
from ragcontract.answers.normalising import LINK, by_cluster, invisible, simplified
from ragcontract.answers.tracing import Change, Traced, Tracing, replaced

_ESCAPE = r"\\(?P<escaped>[!-/:-@\[-`{-~])"
_ADDRESS = r"<(?P<address>(?:https?|ftp|mailto):[^\s<>]*|[^\s<>@]++@[^\s<>@]+)>"
_HIDDEN = r"<(?P<hidden>!--|(?:script|style|template)\b)"
_VALUES = r"""(?:[^<>"']|"[^"]*"|'[^']*')*+>"""  # at most three tags read the same quotes, so time stays linear
_UNCLOSED = r"(?:\s++[^\s<>=]++=[^\s<>]*+)*+\s*+(?=<)"  # the next tag closes this one, too
_TAG = rf"</?(?P<name>[a-z][^\s/<>]*+)(?:{_VALUES}|[^<>]*>|{_UNCLOSED})|<[!?/][^<>]*>"
_ENTITY = r"&(?:\#0*[0-9]{1,7}|\#x0*[0-9a-f]{1,6}|[a-z][a-z0-9]{1,31});?"
_HTML = re.compile(f"{_ESCAPE}|{_ADDRESS}|{_HIDDEN}|{_TAG}|{_ENTITY}", re.IGNORECASE)
_ENTITIES = re.compile(_ENTITY, re.IGNORECASE)
_BLOCK = re.compile(
    r"address|article|aside|blockquote|br|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6r]|"
    r"header|li|main|nav|ol|option|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_DEFINED = re.compile(r"^[ \t>]*\[([^\[\]\n]+)\]:", re.MULTILINE)
_REFERENCE = re.compile(r"!?\[([^\[\]\n]*)\](?:\[([^\[\]\n]*)\])?")
_PAIR = re.compile(r"(\*{1,3})([^\s*](?:[^*\n]*[^\s*])?)\1")
_MARKS = re.compile(r"~~|`|(?<![^\W_])_+|_++(?![^\W_])")
_RUN = re.compile(r"[\x00-\x7f]?[^\x00-\x7f]+")  # with the ASCII character that a mark may combine with


def rendered(text: str) -> Traced:
    """Return what a page shows of a text."""
    tracing = Tracing(text)
    tracing.take(invisible(text))
    for marks, changes in _STEPS:
        if any(mark in tracing.text for mark in marks):
            tracing.take(changes(tracing.text))
    tracing.take(_simpler(tracing.text))
    tracing.text = simplified(tracing.text)
    return tracing.result()


def _without_html(text: str) -> Iterator[Change]:
    """Yield the changes that remove tags, comments and backslashes of escapes, and decode entities."""
    at = 0
    unclosed: set[str] = set()
    while match := _HTML.search(text, at):
        start, at = match.span()
        kind = match.lastgroup
        if kind == "hidden":
            at = _end_of_hidden(text, match, unclosed)
            yield start, at, ""
        elif kind in {"escaped", "address"}:
            yield start, match.start(kind), ""
            yield match.end(kind), at, ""
        elif match[0][0] == "&":
            yield start, at, _decoded(match)
        else:
            yield start, at, "\n" if _BLOCK.fullmatch(match["name"] or "") else ""


def _end_of_hidden(text: str, match: re.Match[str], unclosed: set[str]) -> int:
    """Return where a comment, or an element that pages do not show, ends: with its first tag if it is not closed."""
    name = match["hidden"].lower()
    if name not in unclosed:
        close = re.compile("-->" if name == "!--" else rf"</{name}[^<>]*>", re.IGNORECASE).search(text, match.end())
        if close:
            return close.end()
        unclosed.add(name)
    return match.end()


def _decoded(match: re.Match[str]) -> str:
    from html import unescape

    return unescape(match[0])


def _simpler(text: str) -> Iterator[Change]:
    """Yield what NFKC changes, which writes 𝐬 and ｓ as s."""
    if composed(text, "NFKC") == text:  # the common case, and much faster
        return
    for run in _RUN.finditer(text):
        for start, end, new in by_cluster(run[0], partial(composed, form="NFKC")):
            yield run.start() + start, run.start() + end, new


def _only_groups(pattern: re.Pattern[str], text: str, *, group: int = 1) -> Iterator[Change]:
    """Yield the changes that leave of each match only a group."""
    for match in pattern.finditer(text):
        yield match.start(), match.start(group), ""
        yield match.end(group), match.end(), ""


def _without_references(text: str) -> Iterator[Change]:
    """Yield the changes that leave of links as ``[text][label]`` only the text, if the label is defined."""
    labels = frozenset(map(str.casefold, _DEFINED.findall(text)))
    for match in _REFERENCE.finditer(text) if labels else ():
        if (match[2] or match[1]).casefold() in labels:
            yield match.start(), match.start(1), ""
            yield match.end(1), match.end(), ""


_without_stars = partial(_only_groups, _PAIR, group=2)
# What each step looks for, and what it changes. Some applications encode entities twice, and emphasis is nested.
_STEPS: tuple[tuple[tuple[str, ...], Callable[[str], Iterator[Change]]], ...] = (
    (("```", "~~~"), partial(replaced, _FENCE)),
    (("<", "&", "\\"), _without_html),
    (("&",), partial(replaced, _ENTITIES, by=_decoded)),
    (("",), invisible),
    (("](",), partial(_only_groups, LINK)),
    (("]:",), _without_references),
    (("*",), _without_stars),
    (("*",), _without_stars),
    (("~~", "`", "_"), partial(replaced, _MARKS)),
)
