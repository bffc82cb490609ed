"""The rules about refusals, must_refuse and must_not_refuse."""

from collections.abc import Iterator
from typing import ClassVar

from ragcontract.answers.metric_options import misspelled_mode
from ragcontract.answers.refusals import Evidence, declared_evidence, only_common_phrases
from ragcontract.answers.refusals import evidence as evidence_in
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, Phrase, excerpt
from ragcontract.core.rule import NO_ANSWER, RowContext, Violation
from ragcontract.core.run import RunRow, mode_of
from ragcontract.rules.answered import AnswerRule, answer_in, begins


class _Refusal(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule about refusals, which fields of the row, phrases of the configuration or common English phrases show."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal", "finish_reason", "mode"}

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:
        """Return that the row has neither a response nor a field that shows a refusal, or that its mode is misspelled.

        An application may have other modes than the known ones.
        """
        if declared_evidence(row):
            return None
        return misspelled_mode(mode_of(row)) or super().lacking(query, row, context)

    def evidence(self, row: RunRow, context: RowContext) -> Evidence | None:
        """Return what shows that the answer refuses, or None."""
        return evidence_in(row, answer_in(row), context.settings.answers)


class MustRefuse(_Refusal, frozen=True, kw_only=True, gc=False, tag="must_refuse"):
    """The application refuses to answer. If only common phrases could have shown that, a violation is a warning."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        if self.evidence(row, context):
            return
        has_text = begins(answer_in(row)) != NO_ANSWER  # an empty answer cannot hide a phrase
        unsure = has_text and only_common_phrases(row, context.settings.answers)
        only = (" (judged by common English phrases only)",) if unsure else ()
        yield self.broken(("a refusal",), (*begins(answer_in(row)), *only), warns=unsure)


class MustNotRefuse(_Refusal, frozen=True, kw_only=True, gc=False, tag="must_not_refuse"):
    """The application does not refuse to answer."""

    @property
    def in_any_turn(self) -> bool:
        return False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        if evidence := self.evidence(row, context):
            yield self.broken(("no refusal",), _described(evidence, row))


def _described(evidence: Evidence, row: RunRow) -> Phrase:
    match evidence.kind:
        case "refusal":
            return ("the refusal ", excerpt(row.refusal or ""))
        case "finish_reason" | "mode":
            return (f"{evidence.kind} ", Name(str(getattr(row, evidence.kind))))
        case "refusal_phrases":
            return (excerpt(answer_in(row).text, *evidence.span), " (a phrase of refusal_phrases)")
        case "common phrases":
            return (excerpt(answer_in(row).text, *evidence.span), " (a common English phrase)")
