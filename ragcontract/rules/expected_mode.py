"""The rule on how the application must answer."""

from collections.abc import Iterator
from typing import ClassVar

from ragcontract.answers.known_modes import unknown_mode
from ragcontract.core.golden import GoldenQuery, Mode
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow


class ExpectedMode(RowRule, frozen=True, kw_only=True, gc=False, tag="expected_mode"):
    """``expected_mode``: the application answers in this mode."""

    needs: ClassVar[frozenset[str]] = frozenset({"mode"})
    in_rows: ClassVar[bool] = False
    mode: Mode

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002 (the seam's)
        """Return that the mode is missing, unless that counts as a wrong one, or that it is unknown."""
        if row.mode is None and context.settings.answers.missing_modes == "fail":
            return None
        return unknown_mode(row.mode)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002 (the seam's)
        """Yield a violation if the mode is another one, or missing."""
        if row.mode != self.mode:
            found = "no mode" if row.mode is None else f"mode {row.mode}"
            yield Violation(rule="expected_mode", expected=(f"mode {self.mode}",), found=(found,))
