"""The rules on how the application answers: must_refuse, must_not_refuse and expected_mode."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from ragcontract.answers.metric_options import ABSTAIN, misspelled_mode, unknown_mode
from ragcontract.core.golden import GoldenQuery, Mode
from ragcontract.core.phrase import Name, Phrase, excerpt
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RESPONSE_FIELDS, RunRow, mode_of
from ragcontract.rules.answered import NO_ANSWER, AnswerRule, answer_in, begins, says_nothing, the_error

if TYPE_CHECKING:
    from ragcontract.answers.refusals import Evidence


class _Refusal(AnswerRule, frozen=True, kw_only=True, gc=False):
    """A rule about refusals, which fields of the row, phrases of the configuration or common English phrases show."""

    needs: ClassVar[frozenset[str]] = AnswerRule.needs | {"refusal", "finish_reason", "mode"}

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:
        """Return that the row has neither a response nor a field that shows a refusal, or that its mode is misspelled.

        An application may have other modes than the known ones.
        """
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
        from ragcontract.answers.refusals import only_common_phrases

        if self.evidence(row, context):
            return
        has_text = begins(answer_in(row)) != NO_ANSWER  # an empty answer cannot hide a phrase
        unsure = has_text and only_common_phrases(row, context.settings.answers)
        only = (" (judged by common English phrases only)",) if unsure else ()
        yield self.broken(("a refusal",), (*begins(answer_in(row)), *only), warns=unsure)


class MustNotRefuse(_Refusal, frozen=True, kw_only=True, gc=False, tag="must_not_refuse"):
    """The application does not refuse to answer."""

    in_any_turn: ClassVar[bool] = False

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        if evidence := self.evidence(row, context):
            yield self.broken(("no refusal",), _described(evidence, row))


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


class ExpectedMode(RowRule, frozen=True, kw_only=True, gc=False, tag="expected_mode"):
    """``expected_mode``: the application answers in this mode. With an ``error``, it answers in no mode.

    A ``response`` that says nothing is an answer in the mode ``abstain`` only. Rows may leave it out.
    """

    needs: ClassVar[frozenset[str]] = RESPONSE_FIELDS | {"mode"}
    in_rows: ClassVar[bool] = False
    mode: Mode

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002 (the seam's)
        """Return that the mode is missing, unless that counts as a wrong mode, or that it is unknown."""
        missing_fails = row.error is not None or context.settings.answers.missing_modes == "fail"
        mode = mode_of(row)
        return None if mode is None and missing_fails else unknown_mode(mode)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002 (the seam's)
        mode = mode_of(row)
        says_no_answer = self.mode != ABSTAIN and row.error is None and says_nothing(query, row)
        if mode == self.mode and not says_no_answer:
            return
        causes: tuple[str, ...] = ()
        answered: Phrase = (f"mode {mode}",)
        if row.error is not None or mode is None:  # that is new where the baseline answered in a wrong mode
            answered = ("no mode",) if row.error is None else the_error(row.error)
            causes = ("no answer",)
        elif mode == self.mode:
            answered, causes = NO_ANSWER, ("no answer",)
        yield self.broken((f"mode {self.mode}",), answered, *causes)
