"""The text of an answer in the forms in which rules search it, each made once."""

import re
from functools import cached_property, lru_cache

from ragcontract.answers.composing import composed
from ragcontract.answers.normalising import Form, normalised, traced
from ragcontract.answers.tracing import Span, Traced
from ragcontract.core.text import encodable

WORD = re.compile(r"[^\W_]+")
# What can make a page show other words than are written, once both are in normal form.
_REWORDS = ("<", "&", "\\", "](", "][", "]:", "~", "```")


class Answer:
    """An answer: ``text`` is what is quoted, without lone surrogates and, if it is ``compose``d, in normal form C."""

    def __init__(self, text: str, *, compose: bool = True) -> None:
        """Take the answer as the application gave it."""
        self.text = composed(encodable(text)) if compose else encodable(text)
        self._normal: dict[Form, str] = {}
        self._words: dict[Form, frozenset[str]] = {}
        self._traced: dict[Form, Traced] = {}

    @cached_property
    def utf8(self) -> bytes:
        """The text as RE2 searches it."""
        return self.text.encode()

    @cached_property
    def shown(self) -> "Shown | None":
        """What a page shows of the answer, if that is not what is written."""
        from ragcontract.answers.rendering import rendered

        found = rendered(self.text)
        return None if found.text == self.text else Shown(found)

    @cached_property
    def reworded(self) -> "Shown | None":
        """What a page shows of the answer, if that may be another text also in normal form."""
        text = self.text
        single = any(text.count(mark) != 2 * text.count(2 * mark) for mark in "*_")
        return self.shown if single or any(part in text for part in _REWORDS) else None

    def normal(self, form: Form) -> str:
        """Return the answer in a form in which texts are compared."""
        if form not in self._normal:
            self._normal[form] = normalised(self.text, form)
        return self._normal[form]

    def words(self, form: Form) -> frozenset[str]:
        """Return the runs of letters and digits in a form of the answer."""
        if form not in self._words:
            self._words[form] = frozenset(WORD.findall(self.normal(form)))
        return self._words[form]

    def origin(self, form: Form, start: int, end: int) -> Span:
        """Return the span of ``text`` that became a span of a form."""
        if form not in self._traced:
            self._traced[form] = traced(self.text, form)
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
    """What a page shows of an answer."""

    def __init__(self, rendered: Traced) -> None:
        """Take the text, with where each part of it is written."""
        super().__init__(rendered.text, compose=False)
        self._rendered = rendered

    def written(self, span: Span) -> Span:
        """Return where in the answer a span of this text is written."""
        return self._rendered.span(*span)


@lru_cache(maxsize=4)  # the rules of a query look at the same answer
def answer_of(text: str) -> Answer:
    """Return an answer in its forms."""
    return Answer(text)
