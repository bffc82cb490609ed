"""The rule on how the application must answer."""

from collections.abc import Iterator
from typing import ClassVar

from ragcontract.answers.metric_options import ABSTAIN, unknown_mode
from ragcontract.core.golden import GoldenQuery, Mode
from ragcontract.core.phrase import Phrase
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RESPONSE_FIELDS, RunRow, mode_of
from ragcontract.rules.answered import NO_ANSWER, says_nothing, the_error


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
        """Yield a violation if the mode is wrong or missing, or if the response says nothing."""
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
        yield Violation(rule="expected_mode", expected=(f"mode {self.mode}",), actual=answered, causes=causes)
