"""Rules about answers: what they share, and the rule that there is an answer at all."""

from collections.abc import Iterator
from typing import ClassVar

from msgspec import UNSET

from ragcontract.answers.answer_text import Answer, answer_of
from ragcontract.core import bounds
from ragcontract.core.excerpt import excerpt
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.core.text import shorten

CUT_OFF = "length"  # the finish_reason of an answer that reached the limit of tokens
NO_ANSWER = ("no answer",)
NO_CALLS = ("no tool_calls",)  # of a golden query without a row, or of a turn after an error: none are known
_ZERO_WIDTH = frozenset("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")  # as in the comparison of texts
LACKING = "has no response, which rules about its answer need; export it, as null if there was none"


class AnswerRule(RowRule, frozen=True, kw_only=True, gc=False):
    """A rule about the text of the answer. Without an answer, the text is empty, and ``answered`` is broken."""

    needs: ClassVar[frozenset[str]] = frozenset({"response", "error"})
    about_answer: ClassVar[bool] = True

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return that the row has neither a response nor an error: in the same words for all rules of a query."""
        return LACKING if row.response is UNSET and row.error is None else None


def answer_in(row: RunRow) -> Answer:
    """Return the answer of a row, prepared for searching; an empty one if there is none."""
    return answer_of(row.response if isinstance(row.response, str) else "")


def begins(answer: Answer) -> Phrase:
    """Return how an answer begins, for a message about what is not in it."""
    return NO_ANSWER if is_blank(answer.text) else (excerpt(answer.text),)


def is_blank(text: str) -> bool:
    """Return whether nothing of a text is seen: it has only blanks and characters without width."""
    return all(char.isspace() or char in _ZERO_WIDTH for char in text)


def the_error(text: str) -> Phrase:
    """Return the error of a row, for a message about what it prevented."""
    return ("the error ", excerpt(text)) if text.strip() else ("an error",)


def follows_from(violation: Violation, unanswered: Violation) -> bool:
    """Return whether a rule is violated because there is no answer, which another violation says, or only an error."""
    if violation is unanswered or violation.turn != unanswered.turn:
        return False
    return violation.found[:1] in {NO_ANSWER, NO_CALLS} or violation.found == unanswered.found


def quoted(text: str) -> Name:
    """Return a text or a pattern of the golden file for a message."""
    return Name(shorten(text, bounds.EXCERPT))


class Answered(AnswerRule, frozen=True, kw_only=True, gc=False, tag="answered"):
    """The application answered: the response is not blank, and there was no error.

    Checked for every query with a rule about its answer. A refusal that the model's interface reports apart from the
    text is an answer where one is wanted (``must_refuse``); a blank text is one for benchmarks that judge it.
    """

    in_rows: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"finish_reason", "refusal", "mode"}
    refusal_answers: bool = False
    blank_answers: bool = False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation without an answer, and a warning if it was cut off."""
        if row.error is not None:
            yield self._broken("error", the_error(row.error))
        elif not self._has_text(row) and not (self.refusal_answers and _has_refused(row)):
            yield self._broken("no answer", ("an empty response",) if isinstance(row.response, str) else ("null",))
        if row.finish_reason == CUT_OFF:
            found = ("an answer that was cut off: finish_reason is ", Name(CUT_OFF))
            yield Violation(
                rule="answered", expected=("a complete answer",), found=found, causes=("cut off",), warns=True
            )

    def _has_text(self, row: RunRow) -> bool:
        return isinstance(row.response, str) and (self.blank_answers or not is_blank(row.response))

    def _broken(self, cause: str, found: Phrase) -> Violation:
        return Violation(rule="answered", expected=("an answer",), found=found, causes=(cause,))


def _has_refused(row: RunRow) -> bool:
    from ragcontract.answers.refusal import declared_evidence

    evidence = declared_evidence(row)
    return evidence is not None and evidence.kind != "mode"
