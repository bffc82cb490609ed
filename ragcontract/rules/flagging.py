"""Rules that search answers for what must not be there, and what a judge needs to know of what they find.

A search does not understand what it finds: "it does not cost $5" has a price in it. A judge can be asked whether the
answer really says so.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from msgspec import Struct

from ragcontract.answers.answer_text import Answer
from ragcontract.answers.matcher_records import Matcher
from ragcontract.answers.tracing import Span
from ragcontract.core import bounds
from ragcontract.core.excerpt import excerpt
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.text import shorten
from ragcontract.rules.answering import AnswerRule, answers_in


class Flag(Struct, frozen=True, kw_only=True, gc=False):
    """A violation, with the different words that were found, and why they were searched for.

    There are no words where there are too many to ask about: such a violation stands.
    """

    violation: Violation
    texts: tuple[str, ...]
    why: str


class Place(Struct, frozen=True, kw_only=True, gc=False):
    """Where something was found in what the user was shown; a judge is asked only about the response."""

    text: str
    span: Span
    in_response: bool

    @property
    def words(self) -> str:
        """What was found, as it is written."""
        return self.text[slice(*self.span)]

    @property
    def excerpt(self) -> Name:
        """What was found, with what is around it."""
        return excerpt(self.text, *self.span)


def places(row: RunRow, search: Callable[[Answer], Iterator[Span]]) -> Iterator[Place]:
    """Yield where a search finds something in all that the user was shown."""
    for number, answer in enumerate(answers_in(row)):
        for span in search(answer):
            yield Place(text=answer.text, span=span, in_response=number == 0)


class Flagging(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule that searches the answer for what must not be there. A judge can confirm what it finds."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal"}
    forbids: ClassVar[bool] = True
    in_any_turn: ClassVar[bool] = False

    def flags(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Flag]:
        """Yield the violations that :meth:`violations` yields, in the same order, with what was found."""
        raise NotImplementedError


def different(found: Iterable[Place]) -> tuple[str, ...]:
    """Return the different words that were found, in their order; none at all if a judge cannot be asked about all."""
    texts: dict[str, None] = {}
    for number, place in enumerate(found):
        texts[place.words] = None
        if len(texts) > bounds.FLAGGED or number >= bounds.MATCHES or not place.in_response:
            return ()
    return tuple(texts)


def reason(rule: str, one: Matcher) -> str:
    """Return why something was searched for: the rule, and what it looks for."""
    from ragcontract.answers.matchers import described

    return shorten(f"{rule}: {' | '.join(described(one))}", bounds.EVIDENCE)
