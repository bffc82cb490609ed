"""The text of an answer in the forms in which rules search it, each made once, and whether it says anything.

An answer says something if a reader sees a letter, a digit or a symbol in it.
"""

import re
import unicodedata
from functools import cached_property, lru_cache
from typing import Any

from ragcontract.answers.normalising import (
    RAISED,
    UNSPACED,
    Form,
    Span,
    Traced,
    composed,
    flowing,
    has_raised,
    normalised,
    traced,
    trimmed,
)
from ragcontract.core.invisible import DRAWN_BLANK, without_invisible
from ragcontract.core.lines import Line
from ragcontract.core.safe_text import encodable

# Few answers have markup or are JSON.
SHOWN: Line[Any] = Line(home="ragcontract.answers.shown")
JSON: Line[Any] = Line(home="ragcontract.answers.json_answer")

# Marks that can make a page show markup as it is written, or leave out a title or a definition.
_LITERAL = ("`", "~~~", "<", "&", "\\", "    ", "\t", ">", "]:", ' "', " '", " (")
_MAY_BE_JSON = re.compile(r"\s*(?:[\[{\"]|```|~~~)")
_BEGINS_PLAIN = re.compile(r"\s*[!-~]")
WORD = re.compile(rf"[^\W_{UNSPACED}{RAISED}]+")
# Marks that can make a page show other words than are written, once both are in normal form.
_REWORDS = ("<", ">", "&", "\\", "](", "][", "]:", "~", "```")

# Marks that can hide texts from readers: of a tag or a comment, a definition, a target in angle brackets.
_HIDING = ("<", "]:")


class Answer:
    """An answer, of which messages quote the ``text``.

    It has no lone surrogates and, if it is ``compose``d, it is in normal form C. Without ``markup``, it is what a page
    shows, and has no further forms.
    """

    def __init__(self, text: str, *, compose: bool = True, markup: bool = True) -> None:
        self.text = composed(encodable(text)) if compose else encodable(text)
        self._markup = markup
        self._normal: dict[Form, str] = {}
        self._words: dict[Form, frozenset[str]] = {}
        self._traced: dict[Form, Traced] = {}

    @cached_property
    def utf8(self) -> bytes:
        """The text in UTF-8, which RE2 searches."""
        return self.text.encode()

    @cached_property
    def shown(self) -> "Shown | None":
        """The answer as a page shows it, if that is not as it is written."""
        page = SHOWN.load().rendered(self.text) if self._markup else None
        # Brackets that are not a link on the page look like one in the text as it is written.
        return Shown(page, self) if page and (page.text != self.text or "](" in self.text) else None

    @cached_property
    def stripped(self) -> "Shown | None":
        """The answer without any markup, even in code, if that is yet another text."""
        is_literal = self._is_reworded and any(part in self.text for part in _LITERAL)
        bare = self._shown(SHOWN.load().stripped(self.text)) if is_literal else None
        return bare if bare and bare.text != (self.shown or self).text else None

    @cached_property
    def flowing(self) -> "Shown | None":
        """The answer as a page shows it, with one blank for all blanks within a paragraph, if that is another text."""
        shown = self.shown or self
        joined = flowing(shown.text) if self._markup else None
        return Shown(joined, shown) if joined and joined.text != shown.text else None

    @cached_property
    def trimmed(self) -> "Shown | None":
        """The text without the blanks and the marks of blocks around its lines, if that is another text."""
        return self._shown(trimmed(self.text))

    @cached_property
    def decoded(self) -> "Shown | None":
        """The answer with the characters that its JSON escapes stand for, if it is JSON and has any."""
        if not self._markup or "\\" not in self.text or not self._may_be_json:
            return None
        made = JSON.load().unescaped(self.text)
        return self._shown(made, markup=True) if made else None

    @cached_property
    def has_raised(self) -> bool:
        """Return whether the answer has marks that may follow words, as superscripts do."""
        return not self.text.isascii() and has_raised(self.text) is not None

    @cached_property
    def is_json(self) -> bool:
        """Return whether the answer is JSON, alone or in one fenced block."""
        return self._may_be_json and JSON.load().is_json(self.text)

    @property
    def _may_be_json(self) -> bool:
        text = self.text if _BEGINS_PLAIN.match(self.text) else without_invisible(self.text)
        return _MAY_BE_JSON.match(text) is not None

    @cached_property
    def reworded(self) -> "tuple[Shown, ...]":
        """The forms of the answer that may be other texts also in normal form."""
        return tuple(filter(None, (self.shown, self.stripped))) if self._is_reworded else ()

    @cached_property
    def _is_reworded(self) -> bool:
        """Return whether a page may show another text also in normal form."""
        text = self.text
        single = any(text.count(mark) != 2 * text.count(2 * mark) for mark in "*_")
        return self._markup and (single or any(part in text for part in _REWORDS))

    @cached_property
    def seen(self) -> "tuple[Shown, ...]":
        """The answer as readers see it, with and without titles of links; nothing if they see all of it."""
        if not self._markup or not any(part in self.text for part in _HIDING) or not self.shown:
            return ()
        return self.shown, Shown(SHOWN.load().cited(self.text), self, markup=True)

    def _shown(self, made: Traced, *, markup: bool = False) -> "Shown | None":
        return None if made.text == self.text else Shown(made, self, markup=markup)

    def written(self, span: Span) -> Span:
        """Return where in the whole answer a span of this text is written."""
        return span

    def part(self, span: Span) -> "Answer":
        """Return a part of this text as an answer of its own."""
        return Answer(self.text[slice(*span)], compose=False, markup=self._markup)

    def normal(self, form: Form) -> str:
        """Return the answer in a form in which texts are compared."""
        if form not in self._normal:
            self._normal[form] = normalised(self.text, form, links=self._markup)
        return self._normal[form]

    def words(self, form: Form) -> frozenset[str]:
        """Return the runs of letters and digits in a form of the answer."""
        if form not in self._words:
            self._words[form] = frozenset(WORD.findall(self.normal(form)))
        return self._words[form]

    def origin(self, form: Form, start: int, end: int) -> Span:
        """Return the span of ``text`` that became a span of a form."""
        if form not in self._traced:
            self._traced[form] = traced(self.text, form, links=self._markup)
        return self._traced[form].span(start, end)

    def characters(self, start: int, end: int) -> int:
        """Return how many characters a span of ``utf8`` has."""
        if len(self.utf8) == len(self.text):
            return end - start
        return len(self.utf8[start:end].decode())

    def in_bytes(self, start: int, end: int) -> Span:
        """Return a span of ``text`` as one of ``utf8``."""
        if len(self.utf8) == len(self.text):
            return start, end
        before = len(self.text[:start].encode())
        return before, before + len(self.text[start:end].encode())


class Shown(Answer):
    """Another form of an answer, such as what a page shows of it."""

    def __init__(self, made: Traced, of: Answer, *, markup: bool = False) -> None:
        super().__init__(made.text, compose=False, markup=markup)
        self._made, self._of = made, of

    @cached_property
    def is_json(self) -> bool:
        """Return whether the original answer is JSON. This text may not be JSON, because it has no escapes."""
        return self._of.is_json

    def written(self, span: Span) -> Span:
        """Return where in the whole answer a span of this text is written."""
        return self._of.written(self._made.span(*span))


@lru_cache(maxsize=4)  # the rules of a query look at the same answer
def answer_of(text: str) -> Answer:
    """Return an answer in its forms."""
    return Answer(text)


_SEEN = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "Sc", "Sm", "So"})
_MARKUP = frozenset("+<=>|~")  # symbols of ASCII that draw rules, tables, quotes and lists
# Lines and blocks that are drawn.
_DRAWN = frozenset(map(chr, range(0x2500, 0x25A0)))
# Words that programs write in place of a missing text. A person who answers with such a word writes "None." or "none".
# "No" and "0" are answers.
_NO_TEXT = re.compile(r"None|null|NULL|undefined|nan|NaN|nil|<nil>|<NA>|object Object")
_OTHER_WORD = re.compile(rf"(?!(?:{_NO_TEXT.pattern})\b|\d+[.)])[A-Za-z0-9]+(?:[\s,.;:!?)]|\Z)")
_AROUND_NO_TEXT = r"[\s\"'`“”‘’,;|/(){}\[\]-]"
_ONLY_NO_TEXT = re.compile(rf"{_AROUND_NO_TEXT}*+(?:(?:{_NO_TEXT.pattern})(?:{_AROUND_NO_TEXT}++|\Z))++")


def says_something(answer: Answer) -> bool:
    """Return whether a reader sees a letter, a digit or a symbol; punctuation and markup alone say nothing.

    A word that programs write for a missing text says nothing, either. A tag in code is something that a reader sees.
    """
    if words_for_nothing(answer):
        return False
    first = answer.text[:1]
    if first.isascii() and first.isalnum():  # the common case: nothing before it can be markup
        return True
    return _is_seen((answer.shown or answer).text)


def words_for_nothing(answer: Answer) -> frozenset[str]:
    """Return the words of an answer if programs write all of them for a missing one, such as Python's ``None``."""
    if _OTHER_WORD.match(answer.text):  # the common case
        return frozenset()
    page = answer.shown or answer
    for text in (without_invisible(answer.text), (page.trimmed or page).text):
        if _ONLY_NO_TEXT.fullmatch(text):
            return frozenset(_NO_TEXT.findall(text))
    return frozenset()


def has_letter(text: str) -> bool:
    """Return whether a text has a letter in the form in which texts are compared."""
    return any(map(str.isalpha, normalised(text)))


def _is_seen(text: str) -> bool:
    return any(unicodedata.category(char) in _SEEN and not _is_drawing(char) for char in text)


def _is_drawing(char: str) -> bool:
    return char in _MARKUP or char in _DRAWN or char in DRAWN_BLANK
