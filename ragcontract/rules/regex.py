"""The rules about patterns in answers, regex_must_match and regex_must_not_match."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Annotated, ClassVar

from msgspec import Meta

from ragcontract.answers.matchers import pattern_fault, pattern_of, pattern_spans
from ragcontract.answers.regexes import Pattern
from ragcontract.core.answer_settings import Wanted
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Fault, RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.answered import AnswerRule, answer_in, begins, places, quoted


class _Regex(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A pattern that is searched for."""

    pattern: Annotated[Wanted, Meta(description="A regular expression (RE2).")]
    ignore_case: Annotated[bool, Meta(description="Whether upper and lower case are the same.")] = True
    dot_all: Annotated[bool, Meta(description="Whether a dot matches line breaks, too.")] = False

    def faults(self) -> Iterable[Fault]:
        """Return what is wrong with the pattern."""
        fault = pattern_fault(self.pattern, ignore_case=self.ignore_case, dot_all=self.dot_all)
        return [(("pattern",), fault)] if fault else []

    @property
    def sought(self) -> int:
        """One pattern."""
        return 1

    @property
    def compiled(self) -> Pattern:
        """The pattern as it is searched for."""
        return pattern_of(self.pattern, ignore_case=self.ignore_case, dot_all=self.dot_all)


class RegexMustMatch(_Regex, frozen=True, kw_only=True, gc=False, tag="regex_must_match"):
    """The pattern matches somewhere in the answer."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation if the pattern does not match."""
        answer = answer_in(row)
        if not self.compiled.finds(answer):
            expected = ("a match of ", quoted(self.pattern))
            yield Violation(rule="regex_must_match", expected=expected, actual=begins(answer))


class RegexMustNotMatch(_Regex, frozen=True, kw_only=True, gc=False, tag="regex_must_not_match"):
    """The pattern matches nowhere in what the user was shown."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal"}
    forbids: ClassVar[bool] = True
    in_any_turn: ClassVar[bool] = False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation that quotes the first match."""
        search = partial(pattern_spans, self.compiled, normalise=context.settings.answers.normalise)
        if place := next(places(row, search), None):
            expected = ("no match of ", quoted(self.pattern))
            yield Violation(rule="regex_must_not_match", expected=expected, actual=(place.excerpt,))
