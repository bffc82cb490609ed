"""The second pass of rules that search answers: a judge is asked about what they found, and what it denies is dropped.

Whoever asks a judge makes these cases, and so does whoever replays its judgments: equal texts make equal cases.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.rules.flagging import Flag, Flagging
from ragcontract.rules.turns import InTurns
from ragcontract.runs.judged_texts import ASSERTS, Case, Confirmed, Item


class Confirmation(Struct, frozen=True, kw_only=True):
    """A case to ask a judge about, and the violations of one rule or more that depend on it, with their items.

    The case has no items where there is too much to ask about.
    """

    case: Case
    violations: tuple[tuple[Violation, tuple[str, ...]], ...]


class Upheld(Struct, frozen=True, kw_only=True):
    """What a judge leaves of the violations: those that stand, and those that it cleared.

    Of those that stand, the ``unknown`` ones lack a verdict: the judge asserts none of their items, nor denies all.
    """

    standing: tuple[Violation, ...] = ()
    cleared: tuple[Violation, ...] = ()
    unknown: tuple[Violation, ...] = ()


def confirmations(
    query: GoldenQuery, row: RunRow, rules: Iterable[RowRule], context: RowContext, contexts: Sequence[str]
) -> tuple[Confirmation, ...]:
    """Return what to ask of a row: a case for its answer, or one for each turn, if anything in it is flagged.

    ``contexts`` are the texts that were retrieved. Raises CannotScoreError for an answer that cannot be searched.
    """
    flags: dict[int | None, list[Flag]] = {}
    for rule in rules:
        if isinstance(rule, Flagging):
            flags.setdefault(None, []).extend(rule.flags(query, row, context))
        elif isinstance(rule, InTurns) and isinstance(rule.rule, Flagging):
            in_turns = {at: list(rule.rule.flags(query, context.turns[at].row, context)) for at in rule.turns}
            if rule.how == "each" or all(in_turns.values()):  # where it must hold in any turn, it does in one of them
                for at, of_turn in in_turns.items():
                    flags.setdefault(at, []).extend(of_turn)
    said = (query.answer and query.answer.turns) or ()
    made = []
    for turn, found in flags.items():
        if not found:
            continue
        whole = Case(
            task="confirmation",
            query_id=query.id,
            question=query.query if turn is None else said[turn],
            items=(),
            contexts=tuple(contexts),
            response=_answer(row if turn is None else context.turns[turn].row),
        )
        made.append(_confirmation(whole, found, turn))
    return tuple(made)


def _answer(row: RunRow) -> str:
    return row.response if isinstance(row.response, str) else ""


def _confirmation(whole: Case, flags: Sequence[Flag], turn: int | None) -> Confirmation:
    """Return a case with items for what is flagged; the same words for the same reason are one item."""
    items: dict[tuple[str, str], Item] = {}
    numbers: dict[str, int] = {}
    depending = []
    prefix = "" if turn is None else f"turn:{turn + 1}/"
    for flag in flags:
        names = []
        for text in flag.texts:
            if (text, flag.why) not in items:
                rule = flag.violation.rule
                numbers[rule] = numbers.get(rule, 0) + 1
                items[text, flag.why] = Item(name=f"{prefix}{rule}:{numbers[rule]}", text=text, why=flag.why)
            names.append(items[text, flag.why].name)
        depending.append((flag.violation, tuple(names)))
    case = replace(whole, items=tuple(items.values()))
    return Confirmation(case=case, violations=tuple(depending))


def upheld(asked: Confirmation, verdicts: Mapping[str, Confirmed | None]) -> Upheld:
    """Return what a judge leaves of the violations, given its verdicts by item; None is no verdict.

    A violation stands if the judge says of any of its items that the response asserts it without support; and if it has
    no item, because there was too much to ask about. It is cleared only if the judge denies that of all its items:
    nothing that is missing clears it.
    """
    standing, cleared, unknown = list[Violation](), list[Violation](), list[Violation]()
    for violation, names in asked.violations:
        said = [verdicts.get(name) for name in names]
        if ASSERTS in said or not said:
            standing.append(violation)
        elif None not in said:
            cleared.append(violation)
        else:
            standing.append(violation)
            unknown.append(violation)
    return Upheld(standing=tuple(standing), cleared=tuple(cleared), unknown=tuple(unknown))
