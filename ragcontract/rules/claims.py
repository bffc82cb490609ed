"""The rules of the fields forbidden_claims, required_elements and forbidden_elements of golden rows."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import ClassVar

from ragcontract.answers.allowed_phrases import elements_found, forbidden, forbidden_claims
from ragcontract.answers.matchers import described, finds, spans
from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings, Matcher
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.numbers import more
from ragcontract.core.phrase import Name, Phrase, excerpt, joined
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import encodable
from ragcontract.rules.answered import (
    AnswerRule,
    Flagging,
    Match,
    Place,
    Search,
    answer_in,
    begins,
    quoted,
)


class _FromFields(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule made from fields; with ``as_evaluated``, it matches as the benchmark of the imported row does."""

    in_rows: ClassVar[bool] = False
    as_evaluated: bool = False


class ForbiddenClaims(_FromFields, Flagging, frozen=True, kw_only=True, gc=False, tag="forbidden_claims"):
    """``forbidden_claims``: what the user was shown has none of them, except within one of ``allowed_phrases``."""

    claims: tuple[Matcher, ...]
    allowed: tuple[Matcher, ...] = ()

    @property
    def sought(self) -> int:
        return _number((*self.claims, *self.allowed))

    def matches(self, row: RunRow, context: RowContext) -> Iterator[Match]:
        """Yield each claim in the answer, its violation, and the places of its matches."""
        if not self.as_evaluated:
            yield from super().matches(row, context)
            return
        response = _response(row)
        for text, span in forbidden_claims(self.claims, self.allowed, response):
            violation = self.broken(("no forbidden claim",), (excerpt(response, *span),), text)
            yield None, violation, iter([_whole(text)])

    def searches(self, settings: AnswerSettings) -> Iterator[tuple[Matcher, Search]]:
        """Yield the claims; what stands within an allowed phrase is not found."""
        for claim in self.claims:
            yield claim, partial(forbidden, claim, self.allowed, normalise=settings.normalise)

    def broken_by(self, matcher: Matcher, place: Place) -> Violation:
        return self.broken(("no ", *named([matcher])), (place.excerpt,), _identity(matcher))


class RequiredElements(_FromFields, frozen=True, kw_only=True, gc=False, tag="required_elements"):
    """``required_elements``: the answer has all of them, or at least ``min_required``."""

    elements: tuple[Matcher, ...]
    least: int

    @property
    def sought(self) -> int:
        return _number(self.elements)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        missing = self.missing(row, normalise=context.settings.answers.normalise)
        present = len(self.elements) - len(missing)
        if present >= self.least:
            return
        needed = "all" if self.least == len(self.elements) else f"{self.least} of"
        count = f"{needed} {len(self.elements)} elements, missing " if len(self.elements) > 1 else ""
        expected = (count, *named(missing)) if count else named(missing)
        yield self.broken(expected, begins(answer_in(row)), *map(_identity, missing))

    def missing(self, row: RunRow, *, normalise: bool) -> list[Matcher]:
        """Return the elements that are not in the answer."""
        if self.as_evaluated:
            return [element for element in self.elements if not elements_found([element], _response(row))]
        answer = answer_in(row)
        return [element for element in self.elements if not finds(element, answer, normalise=normalise)]


class ForbiddenElements(_FromFields, Flagging, frozen=True, kw_only=True, gc=False, tag="forbidden_elements"):
    """``forbidden_elements``: what the user was shown has none of them."""

    elements: tuple[Matcher, ...]

    @property
    def sought(self) -> int:
        return _number(self.elements)

    def matches(self, row: RunRow, context: RowContext) -> Iterator[Match]:
        """Yield each element in the answer, its violation, and its places."""
        if not self.as_evaluated:
            yield from super().matches(row, context)
            return
        response = _response(row)
        for element in self.elements:
            for text, span in elements_found([element], response):
                violation = self.broken(("no ", *named([element])), (excerpt(response, *span),), text)
                yield element, violation, iter([_whole(text)])

    def searches(self, settings: AnswerSettings) -> Iterator[tuple[Matcher, Search]]:
        for element in self.elements:
            yield element, partial(spans, element, normalise=settings.normalise)

    def broken_by(self, matcher: Matcher, place: Place) -> Violation:
        return self.broken(("no ", *named([matcher])), (place.excerpt,), _identity(matcher))


def _whole(text: str) -> Place:
    """Return the place of a text that a benchmark's own matching found."""
    return Place(text=text, span=(0, len(text)), in_response=True)


def _number(matchers: Iterable[Matcher]) -> int:
    """Return how many texts and patterns matchers look for; each alternative counts."""
    return sum(1 if matcher.any is None else len(matcher.any) for matcher in matchers)


def named(matchers: Iterable[Matcher]) -> Phrase:
    """Return the texts and patterns of the first matchers, and the number of the others, for a message."""
    every = list(matchers)
    return joined((_named(matcher) for matcher in every[: bounds.LISTED]), len(every) - bounds.LISTED)


def _named(matcher: Matcher) -> list[str | Name]:
    texts = described(matcher)
    parts: list[str | Name] = []
    for number, text in enumerate(texts[: bounds.LISTED]):
        parts += [" or ", quoted(text)] if number else [quoted(text)]
    return [*parts, *filter(None, [more(len(texts), bounds.LISTED, form=" or {}")])]


def _identity(matcher: Matcher) -> str:
    return "\n".join(described(matcher))


def _response(row: RunRow) -> str:
    return encodable(row.response) if isinstance(row.response, str) else ""
