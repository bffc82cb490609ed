"""Rules made from fields of golden rows: forbidden_claims, required_elements, forbidden_elements."""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import ClassVar

from ragcontract.core import bounds
from ragcontract.core.answer_settings import Matcher
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, Phrase, excerpt, joined
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import encodable
from ragcontract.rules.answered import (
    AnswerRule,
    Flag,
    Flagging,
    Place,
    answer_in,
    begins,
    different,
    places,
    quoted,
    reason,
)


class _FromFields(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule made from fields; ``as_evaluated`` matches as the benchmark does from which the row was imported."""

    in_rows: ClassVar[bool] = False
    as_evaluated: bool = False


class ForbiddenClaims(_FromFields, Flagging, frozen=True, kw_only=True, gc=False, tag="forbidden_claims"):
    """``forbidden_claims``: what the user was shown has none of them, except within one of ``allowed_phrases``."""

    claims: tuple[Matcher, ...]
    allowed: tuple[Matcher, ...] = ()

    @property
    def sought(self) -> int:
        """How many claims and phrases there are."""
        return _number((*self.claims, *self.allowed))

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation for each claim that is there, which quotes where."""
        if self.as_evaluated:
            yield from (flag.violation for flag in self._as_evaluated(row))
            return
        for _, violation, _ in self._found(row, context):
            yield violation

    def flags(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Flag]:  # noqa: ARG002
        """Yield the violations, each with all that was found of the claim."""
        if self.as_evaluated:
            yield from self._as_evaluated(row)
            return
        for claim, violation, found in self._found(row, context):
            yield Flag(violation=violation, texts=different(found), why=reason("forbidden_claims", claim))

    def _found(self, row: RunRow, context: RowContext) -> Iterator[tuple[Matcher, Violation, Iterator[Place]]]:
        """Yield each claim that is there, its violation, and the places of its matches."""
        from ragcontract.answers.allowed_phrases import forbidden

        normalise = context.settings.answers.normalise
        for claim in self.claims:
            found = places(row, partial(forbidden, claim, self.allowed, normalise=normalise))
            if place := next(found, None):
                violation = Violation(
                    rule="forbidden_claims",
                    expected=("no ", *named([claim])),
                    found=(place.excerpt,),
                    causes=(_identity(claim),),
                )
                yield claim, violation, chain([place], found)

    def _as_evaluated(self, row: RunRow) -> Iterator[Flag]:
        from ragcontract.answers.allowed_phrases import forbidden_claims

        response = _response(row)
        for text, span in forbidden_claims(self.claims, self.allowed, response):
            violation = Violation(
                rule="forbidden_claims",
                expected=("no forbidden claim",),
                found=(excerpt(response, *span),),
                causes=(text,),
            )
            yield Flag(violation=violation, texts=(text,), why="forbidden_claims")


class RequiredElements(_FromFields, frozen=True, kw_only=True, gc=False, tag="required_elements"):
    """``required_elements``: the answer has all of them, or at least ``min_required``."""

    elements: tuple[Matcher, ...]
    least: int

    @property
    def sought(self) -> int:
        """How many elements there are."""
        return _number(self.elements)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield one violation if too few are there, with those that are missing."""
        missing = self.missing(row, normalise=context.settings.answers.normalise)
        found = len(self.elements) - len(missing)
        if found >= self.least:
            return
        needed = "all" if self.least == len(self.elements) else f"{self.least} of"
        count = f"{needed} {len(self.elements)} elements, missing " if len(self.elements) > 1 else ""
        yield Violation(
            rule="required_elements",
            expected=(count, *named(missing)) if count else named(missing),
            found=begins(answer_in(row)),
            causes=tuple(map(_identity, missing)),
        )

    def missing(self, row: RunRow, *, normalise: bool) -> list[Matcher]:
        """Return the elements that are not in the answer."""
        from ragcontract.answers.allowed_phrases import elements_found
        from ragcontract.answers.matchers import finds

        if self.as_evaluated:
            return [one for one in self.elements if not elements_found([one], _response(row))]
        answer = answer_in(row)
        return [one for one in self.elements if not finds(one, answer, normalise=normalise)]


class ForbiddenElements(_FromFields, Flagging, frozen=True, kw_only=True, gc=False, tag="forbidden_elements"):
    """``forbidden_elements``: what the user was shown has none of them."""

    elements: tuple[Matcher, ...]

    @property
    def sought(self) -> int:
        """How many elements there are."""
        return _number(self.elements)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation for each that is there, which quotes where."""
        for _, violation, _ in self._found(row, context):
            yield violation

    def flags(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Flag]:  # noqa: ARG002
        """Yield the violations, each with all that was found of the element."""
        for one, violation, found in self._found(row, context):
            yield Flag(violation=violation, texts=different(found), why=reason("forbidden_elements", one))

    def _found(self, row: RunRow, context: RowContext) -> Iterator[tuple[Matcher, Violation, Iterator[Place]]]:
        """Yield each element that is there, its violation, and its places."""
        if self.as_evaluated:
            yield from self._as_evaluated(row)
            return
        from ragcontract.answers.matchers import spans

        for one in self.elements:
            found = places(row, partial(spans, one, normalise=context.settings.answers.normalise))
            if place := next(found, None):
                yield one, _is_there(one, place.excerpt, _identity(one)), chain([place], found)

    def _as_evaluated(self, row: RunRow) -> Iterator[tuple[Matcher, Violation, Iterator[Place]]]:
        from ragcontract.answers.allowed_phrases import elements_found

        response = _response(row)
        for one in self.elements:
            for text, span in elements_found([one], response):
                place = Place(text=text, span=(0, len(text)), in_response=True)
                yield one, _is_there(one, excerpt(response, *span), text), iter([place])


def _is_there(element: Matcher, found: Name, cause: str) -> Violation:
    return Violation(rule="forbidden_elements", expected=("no ", *named([element])), found=(found,), causes=(cause,))


def _number(matchers: Iterable[Matcher]) -> int:
    """Return how many texts and patterns matchers look for: all of their alternatives."""
    return sum(1 if one.any is None else len(one.any) for one in matchers)


def named(matchers: Iterable[Matcher]) -> Phrase:
    """Return what matchers look for, for a message: the first ones, and the number of the others."""
    every = list(matchers)
    return joined((_named(one) for one in every[: bounds.LISTED]), len(every) - bounds.LISTED)


def _named(one: Matcher) -> list[str | Name]:
    from ragcontract.answers.matchers import described

    texts = described(one)
    parts: list[str | Name] = []
    for number, text in enumerate(texts[: bounds.LISTED]):
        parts += [" or ", quoted(text)] if number else [quoted(text)]
    more = len(texts) - bounds.LISTED
    return [*parts, f" or {more:,} more"] if more > 0 else parts


def _identity(one: Matcher) -> str:
    from ragcontract.answers.matchers import described

    return "\n".join(described(one))


def _response(row: RunRow) -> str:
    return encodable(row.response) if isinstance(row.response, str) else ""
