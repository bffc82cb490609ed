"""Converts ``turns`` of a golden row: the rules of each turn, and those of the row that apply to turns."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ragcontract.contract.answer_fields import answer_fields
from ragcontract.contract.golden_row import TURN_FIELDS, AnswerFields, GoldenRow, present
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.rule import RowRule, Rule
from ragcontract.files.schema import Mismatch
from ragcontract.rules.answering import Answered
from ragcontract.rules.turns import InTurns, is_of_turns

NO_RULES = "no turn has rules, and neither has the row; write what must hold into `rules` of a turn or of the row"
ALL_OWN = (
    "all have rules of their own, so those of the row apply to none; give entries of `rules` an `in` (each, any or "
    "last), and write fields such as forbidden_claims into the turns"
)
OF_THE_ROW = "is about the whole row, not about a turn; write it into the row's rules"

NOT_IN_ANY = (
    'is "any", with which the rule would hold as soon as one turn keeps to it; write "each" for what no turn may have, '
    "or write the rule into the turns that it is for"
)


def fields_of(row: GoldenRow) -> AnswerFields:
    """Convert the fields of a row about the answer, of which it has at least one, and of its turns."""
    fields = answer_fields(row)
    wrong = [*fields.mismatches, *_in_faults(row)]
    if row.turns is None or wrong:
        return replace(fields, mismatches=tuple(wrong))
    own = [_own_rules(row, number, turn) for number, turn in enumerate(row.turns)]
    wrong = [mismatch for one in own for mismatch in one.mismatches]
    of_turns = [
        InTurns(rule=rule, turns=(number,))
        for number, one in enumerate(own)
        for rule in one.rules
        if isinstance(rule, RowRule)
    ]
    without = [number for number, one in enumerate(own) if not one.rules]
    of_row = list(_of_row(fields.rules, without, len(own)))
    if not wrong and not of_turns and not of_row:
        wrong = [Mismatch(("turns",), ALL_OWN if fields.rules else NO_RULES)]
    if not wrong and not without and any(_is_for_others(rule) for rule in fields.rules):
        wrong = [Mismatch(("turns",), ALL_OWN)]
    return AnswerFields(
        rules=(*of_row, *of_turns),
        answer=replace(fields.answer or ExpectedAnswer(), turns=tuple(turn.query for turn in row.turns)),
        mismatches=tuple(wrong),
    )


def _own_rules(row: GoldenRow, number: int, turn: Any) -> AnswerFields:
    """Convert the fields of a turn as if it were a row."""
    given = {name: getattr(turn, name) for name in ("rules", *TURN_FIELDS) if hasattr(turn, name)}
    as_row = type(row)(id=row.id, query=turn.query, as_evaluated=row.as_evaluated, **given)
    fields = answer_fields(as_row) if present(as_row) or any(value is not None for value in given.values()) else None
    wrong = [*(fields.mismatches if fields else ()), *_turn_faults(given.get("rules") or ())]
    at = ("turns", number)
    return AnswerFields(
        rules=fields.rules if fields and not wrong else (),
        mismatches=tuple([Mismatch((*at, *mismatch.path), mismatch.message) for mismatch in wrong]),
    )


def _turn_faults(rules: Sequence[Rule]) -> Iterator[Mismatch]:
    for number, rule in enumerate(rules):
        if isinstance(rule, RowRule) and not is_of_turns(rule):
            yield Mismatch(("rules", number), OF_THE_ROW)
        elif isinstance(rule, RowRule) and rule.in_turns is not None:
            yield Mismatch(("rules", number, "in"), "is for the rules of the row; this one is about its turn")


def _in_faults(row: GoldenRow) -> Iterator[Mismatch]:
    for number, rule in enumerate(getattr(row, "rules", None) or ()):
        if rule.in_turns is None:
            continue
        if row.turns is None:
            yield Mismatch(("rules", number, "in"), "needs `turns`, which this row does not have")
        elif not is_of_turns(rule):
            yield Mismatch(("rules", number, "in"), "does not apply: the rule is about the whole row")
        elif rule.in_turns == "any" and not rule.in_any_turn:
            yield Mismatch(("rules", number, "in"), NOT_IN_ANY)


def _is_for_others(rule: Rule) -> bool:
    """Return whether a rule that somebody wrote is for the turns without rules of their own."""
    return any(one.in_turns is None for one in _written([rule]))


def _written(rules: Iterable[Rule]) -> Iterator[RowRule]:
    """Yield the rules about turns that somebody wrote, as entries of ``rules`` or as other fields."""
    for rule in rules:
        if isinstance(rule, RowRule) and is_of_turns(rule) and not isinstance(rule, Answered):
            yield rule


def _of_row(rules: Sequence[Rule], without: Sequence[int], turns: int) -> Iterator[Rule]:
    """Yield the rules of the row, applied to turns; without ``in``, to those that have no rules of their own.

    That there is an answer, which nobody writes, applies to the last turn if all others do.
    """
    hows = [rule.in_turns for rule in _written(rules)]
    only_last = bool(hows) and set(hows) == {"last"}
    for rule in rules:
        if not isinstance(rule, RowRule) or not is_of_turns(rule):
            yield rule
            continue
        how = "last" if only_last else rule.in_turns
        chosen = {"last": [turns - 1], None: without}.get(how, range(turns))
        if chosen:
            yield InTurns(rule=replace(rule, in_turns=None), turns=tuple(chosen), how="any" if how == "any" else "each")
