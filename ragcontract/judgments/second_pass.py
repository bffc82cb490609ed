"""The second pass of rules that search answers: a judge is asked about what they found, and what it denies is dropped.

Whoever asks a judge makes these cases, and so does whoever replays its judgments: equal texts make equal cases.

What a judge cleared of what rules about answers flagged, replayed for a check. Nothing is asked here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.judge_settings import Confirmed, Unconfirmed
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import CONTEXT_FIELDS, RunRow
from ragcontract.judgments.items import ASSERTS, Case, Item, contexts_of
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.judgments.replay import Replay
from ragcontract.rules.answered import Flag, Flagging
from ragcontract.rules.turns import InTurns


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


class FlaggedAnswer(Struct, frozen=True, kw_only=True):
    """What was flagged in an answer, what the judge said of it, by item, and the violations that are left out for that.

    ``violations`` have the names of the items that they depend on. Items without a verdict are not in ``said``.
    """

    items: tuple[Item, ...]
    violations: tuple[tuple[Violation, tuple[str, ...]], ...]
    said: Mapping[str, Judgment]
    cleared: frozenset[Violation]

    @property
    def standing(self) -> frozenset[str]:
        """The items of the violations that stand."""
        return frozenset(
            name for violation, names in self.violations if violation not in self.cleared for name in names
        )


class SecondPass:
    """Judgments on what is flagged. ``cleared`` counts the violations that are left out, by query.

    A baseline has only those that the judge asserts: a violation that is new must not pass for a known one because
    nobody judged the baseline. Its queries of which something was left out so are in ``unknown_before``.

    ``found`` is what was flagged in the answers of each query of the run. A judge that nobody has calibrated clears
    nothing (``clears``): what it said is only noted.
    """

    needs = CONTEXT_FIELDS

    def __init__(self, replay: Replay, k: int, unconfirmed: Unconfirmed, *, clears: bool = True) -> None:
        """Store the judgments, the largest cut-off, and what becomes of what has no verdict."""
        self._replay, self._k, self._unconfirmed, self._clears = replay, k, unconfirmed, clears
        self.cleared: dict[str, int] = {}
        self.unknown_before: dict[str, None] = {}
        self.found: dict[str, tuple[FlaggedAnswer, ...]] = {}

    def applied(
        self, query: GoldenQuery, row: RunRow, rules: Sequence[RowRule], context: RowContext, *, strict: bool
    ) -> Iterable[tuple[RowRule, RowRule]]:
        """Return each rule with one that has only the violations that the judge does not clear.

        With ``strict``, which is for the run that is judged and not for a baseline, raises CannotScoreError where
        something is flagged of which the judgments say nothing.
        """
        contexts = contexts_of(row, self._k)
        known = () if isinstance(contexts, str) else contexts
        by_answer: dict[str, list[frozenset[Violation]]] = {}
        said_of: list[tuple[Confirmation, Mapping[str, Judgment]]] = []
        for asked in confirmations(query, row, rules, context, known):
            if isinstance(contexts, str) and strict:
                raise CannotScoreError(contexts)
            said = self._said(asked, strict=strict)
            left = upheld(asked, _verdicts(said))
            # Of two rules that say the same of an answer, one may have found more than is cleared.
            gone = frozenset(left.cleared) - frozenset(left.standing)
            if not strict and left.unknown and self._clears:
                gone |= frozenset(left.unknown)
                self.unknown_before[query.id] = None
            by_answer.setdefault(asked.case.response or "", []).append(gone)
            said_of.append((asked, said))
        # The same answer in several turns is cleared only of what is cleared in all of them.
        cleared = {answer: frozenset.intersection(*of) for answer, of in by_answer.items()} if self._clears else {}
        if strict and said_of:
            self._note(query.id, said_of, cleared)
        return [(rule, _without(rule, cleared)) for rule in rules]

    def _note(
        self,
        query_id: str,
        said_of: Iterable[tuple[Confirmation, Mapping[str, Judgment]]],
        cleared: Mapping[str, frozenset[Violation]],
    ) -> None:
        """Add what is flagged in a row of a query, which may have several, and what of it the judge cleared."""
        found = tuple(
            FlaggedAnswer(
                items=asked.case.items,
                violations=asked.violations,
                said=said,
                cleared=cleared.get(asked.case.response or "", frozenset()),
            )
            for asked, said in said_of
        )
        self.found[query_id] = (*self.found.get(query_id, ()), *found)
        if number := sum(map(len, cleared.values())):
            self.cleared[query_id] = self.cleared.get(query_id, 0) + number

    def _said(self, asked: Confirmation, *, strict: bool) -> Mapping[str, Judgment]:
        if not asked.case.items:
            return {}
        said = self._replay.said(asked.case)
        if isinstance(said, str):
            if strict and self._unconfirmed == "error":
                raise CannotScoreError(said)
            return self._replay.partly(asked.case) if self._unconfirmed == "stands" else {}
        return {item.name: one for item, one in zip(asked.case.items, said, strict=True)}


def _verdicts(said: Mapping[str, Judgment]) -> dict[str, Confirmed | None]:
    return {name: one.verdict for name, one in said.items() if not isinstance(one.verdict, bool)}


class _Left(RowRule, frozen=True, kw_only=True, gc=False, tag="left"):
    """A rule without the violations that a judge cleared, by the answer."""

    in_rows: ClassVar[bool] = False
    rule: RowRule
    cleared: dict[str, frozenset[Violation]]

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:
        """Yield the violations that stand."""
        cleared = self.cleared.get(row.response if isinstance(row.response, str) else "", frozenset())
        yield from (one for one in self.rule.violations(query, row, context) if one not in cleared)


def _without(rule: RowRule, cleared: Mapping[str, frozenset[Violation]]) -> RowRule:
    if not any(cleared.values()):
        return rule
    if isinstance(rule, InTurns):
        return replace(rule, rule=_Left(rule=rule.rule, cleared=dict(cleared)))
    return _Left(rule=rule, cleared=dict(cleared))
