"""The text of an answer in the forms in which rules search it, each made once."""

from functools import lru_cache

from ragcontract.answers.composing import composed
from ragcontract.answers.normalising import Form, Span, Traced, normalised, traced
from ragcontract.core.text import encodable


class Answer:
    """An answer: ``text`` is what is quoted, without lone surrogates and, if it is ``compose``d, in normal form C."""

    def __init__(self, text: str, *, compose: bool = True) -> None:
        """Take the answer as the application gave it."""
        self.text = composed(encodable(text)) if compose else encodable(text)
        self._utf8: bytes | None = None
        self._normal: dict[Form, str] = {}
        self._traced: dict[Form, Traced] = {}

    @property
    def utf8(self) -> bytes:
        """The text as RE2 searches it."""
        if self._utf8 is None:
            self._utf8 = self.text.encode()
        return self._utf8

    def normal(self, form: Form) -> str:
        """Return the answer in a form in which texts are compared."""
        if form not in self._normal:
            self._normal[form] = normalised(self.text, form)
        return self._normal[form]

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


@lru_cache(maxsize=4)  # the rules of a query look at the same answer
def answer_of(text: str) -> Answer:
    """Return an answer in its forms."""
    return Answer(text)
