"""Applies a rule to turns of a conversation instead of to the whole row."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Message
from ragcontract.core.rule import RowContext, RowRule, Turn, Violation
from ragcontract.core.run import RunRow

OF_A_TURN = frozenset({"response", "tool_calls"})  # a rule that reads any of them can be checked turn by turn


class InTurns(RowRule, frozen=True, kw_only=True, gc=False, tag="in_turns"):
    """A rule that must hold in each of some turns, or in any of them; ``turns`` counts from 0."""

    in_rows: ClassVar[bool] = False
    needs: ClassVar[frozenset[str]] = frozenset({"messages", "error"})
    rule: RowRule
    turns: tuple[int, ...]
    how: Literal["each", "any"] = "each"

    @property
    def inner(self) -> RowRule:
        return self.rule

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002
        """Return what one of the turns lacks."""
        for number in self.turns:
            if why := self.rule.lacking(query, context.turns[number].row, context):
                return Message.of(why, f" (in turn {number + 1})")
        return None

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield the violations in each turn; with ``any``, the last turn's first violation if all turns have some."""
        by_turn = {
            number: list(self.rule.violations(query, context.turns[number].row, context)) for number in self.turns
        }
        if self.how == "any":
            yield from _in_no_turn(by_turn, context.turns)
            return
        for number, violations in by_turn.items():
            where = _named(number, context.turns[number])
            for violation in violations:
                causes = violation.causes or violation.doc_ids or ("",)
                yield replace(
                    violation,
                    expected=(f"in {where}: ", *violation.expected),
                    causes=tuple([f"turn {number + 1}: {cause}" for cause in causes]),
                    turn=number,
                )


def is_of_turns(rule: RowRule) -> bool:
    """Return whether a rule is about what an application answers or calls in a turn, and not about the whole row."""
    return bool(rule.needs & OF_A_TURN) and not rule.needs_metrics


def _in_no_turn(by_turn: dict[int, list[Violation]], turns: tuple[Turn, ...]) -> Iterator[Violation]:
    if not by_turn or not all(by_turn.values()):
        return
    number, violations = list(by_turn.items())[-1]
    last = violations[0]
    yield replace(
        last,
        expected=(f"in any of {len(by_turn)} turns: ", *last.expected),
        actual=(f"in {_named(number, turns[number])}: ", *last.actual),
        causes=("in no turn",),
        warns=any(all(violation.warns for violation in of_turn) for of_turn in by_turn.values()),
    )


def _named(number: int, turn: Turn) -> str:
    where = "" if turn.message is None else f" (messages[{turn.message}])"
    return f"turn {number + 1}{where}"
