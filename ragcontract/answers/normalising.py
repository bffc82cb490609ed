"""How texts are compared: without regard to case, quotes, dashes, Markdown emphasis, blanks and invisible characters.

What is searched for and what is searched are brought into the same form by the same steps. The form of an answer can be
traced, so that a message quotes the words that the application said.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial

from msgspec import Struct

from ragcontract.answers.composing import continues, pieces
from ragcontract.answers.plain_letters import plain
from ragcontract.answers.scripts import RAISED
from ragcontract.answers.tracing import Change, Traced, Tracing, replaced
from ragcontract.core.invisible import invisible_characters, without_invisible

# Unicode's category Pd and what else is drawn as a dash; its property Quotation_Mark, apostrophes and primes.
_DASHES = "֊־᐀᠆‐‑‒–—―⸗⸚⸺⸻⹀⹝〜〰゠︱︲﹘﹣－\U00010ead−˗⁃➖"
_SINGLE, _DOUBLE = "‘’‚‛‹›′‵ʹʻʼʽʾʿˈˊ׳ꞌ❛❜❟", "“”„‟«»″‶ʺ״⹂「」『』〝〞〟❝❞❠\U0001f676\U0001f677\U0001f678"
_SIMPLER = {char: simple for simple, chars in (("-", _DASHES), ("'", _SINGLE), ('"', _DOUBLE)) for char in chars}
TARGET = r"(?:<[^<>\s]*>|(?:[^\s()<>]|\([^\s()]*\))*+)"
TITLE = r"""(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\))"""
# A target has no blanks, so [note](the salary is 180,000) keeps its text. People see the title that may follow it.
LINK = re.compile(rf"!?\[([^\[\]\n]*)\]\([^\S\n]*+{TARGET}([^\S\n]++{TITLE})?[^\S\n]*+\)")
_EMPHASIS = re.compile(r"\*\*|__|`")
_BLANKS = re.compile(r"\s+")
_RAISED = re.compile(f"[{RAISED}]")


class Form(Struct, frozen=True):
    """How texts are compared: in the normal form or as they are, with case or without.

    With ``raised``, superscripts and other marks after words are the digits and letters that they show; or else blanks.
    """

    normalise: bool = True
    ignore_case: bool = True
    raised: bool = True


DEFAULT = Form()


def normalised(text: str, form: Form = DEFAULT, *, links: bool = True) -> str:
    """Return the text in the form in which it is compared; without ``links``, no brackets are taken for those."""
    if form.normalise:
        return _without_marks(_folded(without_invisible(text), form), links=links)
    return _folded(text, form)


def _folded(text: str, form: Form) -> str:
    if form.normalise:
        text = plain(text if form.raised else _RAISED.sub(" ", text))
    return text.casefold() if form.ignore_case else text


@lru_cache(maxsize=4096)
def wanted(text: str, form: Form = DEFAULT) -> str:
    """Return a text of the contract in the form in which it is searched for."""
    return normalised(text, form)


def simplified(text: str) -> str:
    """Return the text with simple quotes and dashes, one character for one."""
    if not text.isascii():
        for char in _SIMPLER.keys() & frozenset(text):  # str.translate: ten times as long
            text = text.replace(char, _SIMPLER[char])
    return text


def _without_marks(text: str, *, links: bool) -> str:
    text = simplified(text)
    if links and "](" in text:
        text = LINK.sub(r"\1\2", text)
    if "**" in text or "__" in text or "`" in text:
        text = _EMPHASIS.sub("", text)
    return " ".join(text.split())


def traced(text: str, form: Form = DEFAULT, *, links: bool = True) -> Traced:
    """Return the text in the form in which it is compared, with its origin; slower than :func:`normalised`."""
    tracing = Tracing(text)
    if form.normalise:
        tracing.take(invisible(text))
    tracing.take(by_cluster(tracing.text, partial(_folded, form=form)))
    if form.normalise:
        tracing.text = simplified(tracing.text)
        tracing.take(link_targets(tracing.text) if links else ())
        tracing.take(replaced(_EMPHASIS, tracing.text))
        tracing.take(replaced(_BLANKS, tracing.text, _one_blank))
    return tracing.result()


def invisible(text: str) -> Iterator[Change]:
    """Yield the changes that remove the characters that nobody sees."""
    if without_invisible(text) != text:
        hidden = invisible_characters()
        yield from ((at, at + 1, "") for at, char in enumerate(text) if char in hidden)


def by_cluster(text: str, change: Callable[[str], str]) -> Iterator[Change]:
    """Yield what a function changes in the characters of a text, each with those that combine with it."""
    start = 0
    for piece in [text] if text.isascii() else pieces(text):
        for cluster in [piece] if piece.isascii() else _clusters(piece):
            if (new := change(cluster)) != cluster:
                yield start, start + len(cluster), new
            start += len(cluster)


def _clusters(piece: str) -> Iterator[str]:
    start = 0
    for at in range(1, len(piece)):
        if not continues(piece[at]):
            yield piece[start:at]
            start = at
    yield piece[start:]


def link_targets(text: str) -> Iterator[Change]:
    """Yield the changes that leave of links their text and their title."""
    for link in LINK.finditer(text):
        yield link.start(), link.start(1), ""
        if link[2]:
            yield link.end(1), link.start(2), ""
        yield link.end(2 if link[2] else 1), link.end(), ""


def _one_blank(blanks: re.Match[str]) -> str:
    return " " if blanks.start() and blanks.end() < len(blanks.string) else ""
