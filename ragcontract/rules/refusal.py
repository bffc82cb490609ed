"""The rules about refusals, must_refuse and must_not_refuse."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Name, Phrase, excerpt
from ragcontract.core.rule import RowContext, Violation
from ragcontract.core.run import RunRow, mode_of
from ragcontract.rules.answered import NO_ANSWER, AnswerRule, answer_in, begins

if TYPE_CHECKING:
    from ragcontract.answers.refusals import Evidence


class _Refusal(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule about refusals, which fields of the row, phrases of the configuration or common English phrases show."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal", "finish_reason", "mode"}

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:
        """Return that the row has neither a response nor a field that shows a refusal, or that its mode is misspelled.

        An application may have other modes than the known ones.
        """
        from ragcontract.answers.metric_options import misspelled_mode
        from ragcontract.answers.refusals import declared_evidence

        if declared_evidence(row):
            return None
        return misspelled_mode(mode_of(row)) or super().lacking(query, row, context)

    def evidence(self, row: RunRow, context: RowContext) -> "Evidence | None":
        """Return what shows that the answer refuses, or None."""
        from ragcontract.answers.refusals import evidence

        return evidence(row, answer_in(row), context.settings.answers)


class MustRefuse(_Refusal, frozen=True, kw_only=True, gc=False, tag="must_refuse"):
    """The application refuses to answer. If only common phrases could have shown that, a violation is a warning."""

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation if there is no evidence of a refusal."""
        from ragcontract.answers.refusals import only_common_phrases

        if self.evidence(row, context):
            return
        has_text = begins(answer_in(row)) != NO_ANSWER  # an empty answer cannot hide a phrase
        unsure = has_text and only_common_phrases(row, context.settings.answers)
        yield Violation(
            rule="must_refuse",
            expected=("a refusal",),
            actual=(*begins(answer_in(row)), *([" (judged by common English phrases only)"] if unsure else [])),
            warns=unsure,
        )


class MustNotRefuse(_Refusal, frozen=True, kw_only=True, gc=False, tag="must_not_refuse"):
    """The application does not refuse to answer."""

    in_any_turn: ClassVar[bool] = False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation that names the evidence."""
        if evidence := self.evidence(row, context):
            yield Violation(rule="must_not_refuse", expected=("no refusal",), actual=_described(evidence, row))


def _described(evidence: "Evidence", row: RunRow) -> Phrase:
    match evidence.kind:
        case "refusal":
            return ("the refusal ", excerpt(row.refusal or ""))
        case "finish_reason" | "mode":
            return (f"{evidence.kind} ", Name(str(getattr(row, evidence.kind))))
        case "refusal_phrases":
            return (excerpt(answer_in(row).text, *evidence.span), " (a phrase of refusal_phrases)")
        case "common phrases":
            return (excerpt(answer_in(row).text, *evidence.span), " (a common English phrase)")
