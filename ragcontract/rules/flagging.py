"""Rules that search answers for what must not be there, and what a judge needs to know of what they find.

A search does not understand what it finds: "it does not cost $5" has a price in it. A judge can be asked whether the
answer really says so.
"""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec import Struct

from ragcontract.answers.matcher_records import Matcher
from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.text import shorten
from ragcontract.rules.answering import AnswerRule


class Flag(Struct, frozen=True, kw_only=True, gc=False):
    """A violation, with the different words that were found, and why they were searched for.

    There are no words where there are too many to ask about: such a violation stands.
    """

    violation: Violation
    texts: tuple[str, ...]
    why: str


class Flagging(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule that searches the answer for what must not be there. A judge can confirm what it finds."""

    forbids: ClassVar[bool] = True

    def flags(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Flag]:
        """Yield the violations that :meth:`violations` yields, in the same order, with what was found."""
        raise NotImplementedError


def different(found: Iterable[str]) -> tuple[str, ...]:
    """Return the different texts among some, in their order; none at all if there are more than can be asked about."""
    texts: dict[str, None] = {}
    for number, text in enumerate(found):
        texts[text] = None
        if len(texts) > bounds.FLAGGED or number >= bounds.MATCHES:
            return ()
    return tuple(texts)


def reason(rule: str, one: Matcher) -> str:
    """Return why something was searched for: the rule, and what it looks for."""
    from ragcontract.answers.matchers import described

    return shorten(f"{rule}: {' | '.join(described(one))}", bounds.EVIDENCE)
