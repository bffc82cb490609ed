"""The second pass: a judge is asked about texts that rules flagged in answers, and what it denies is cleared.

``rag-contract judge`` asks about the cases that are made here. A check makes them again and replays the judgments;
equal texts make equal cases. Nothing is asked here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.judge_settings import Confirmed as Verdict
from ragcontract.core.judge_settings import Unconfirmed
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.judgments.items import ASSERTS, Item, JudgeCase, contexts_of
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.judgments.replay import Replay
from ragcontract.rules.answered import Flag, Flagging
from ragcontract.rules.turns import InTurns


class Confirmation(Struct, frozen=True, kw_only=True):
    """A case to ask a judge about, and the violations that depend on it."""

    case: JudgeCase  # without items if there is too much to ask about
    violations: tuple[tuple[Violation, tuple[str, ...]], ...]  # of one or more rules, with the names of their items


class Upheld(Struct, frozen=True, kw_only=True):
    """The violations that stand, and those that the judge cleared."""

    standing: tuple[Violation, ...] = ()
    cleared: tuple[Violation, ...] = ()
    unknown: tuple[Violation, ...] = ()  # stand as well: the judge neither asserts one of their items nor denies all


def confirmations(
    query: GoldenQuery, row: RunRow, rules: Iterable[RowRule], context: RowContext, contexts: Sequence[str]
) -> tuple[Confirmation, ...]:
    """Return what to ask about a row: a case for its answer, or for each turn, in which something is flagged.

    ``contexts`` are the retrieved texts. Raise CannotScoreError for an answer that cannot be searched.
    """
    flags: dict[int | None, list[Flag]] = {}
    for rule in rules:
        if isinstance(rule, Flagging):
            flags.setdefault(None, []).extend(rule.flags(query, row, context))
        elif isinstance(rule, InTurns) and isinstance(rule.rule, Flagging):
            in_turns = {at: list(rule.rule.flags(query, context.turns[at].row, context)) for at in rule.turns}
            if rule.how == "each" or all(in_turns.values()):  # a rule for any turn holds if one turn has no flags
                for at, of_turn in in_turns.items():
                    flags.setdefault(at, []).extend(of_turn)
    questions = (query.answer and query.answer.turns) or ()
    made = []
    for turn, of_answer in flags.items():
        if not of_answer:
            continue
        whole = JudgeCase(
            task="confirmation",
            query_id=query.id,
            question=query.query if turn is None else questions[turn],
            items=(),
            contexts=tuple(contexts),
            response=_answer(row if turn is None else context.turns[turn].row),
        )
        made.append(_confirmation(whole, of_answer, turn))
    return tuple(made)


def _answer(row: RunRow) -> str:
    return row.response if isinstance(row.response, str) else ""


def _confirmation(whole: JudgeCase, flags: Sequence[Flag], turn: int | None) -> Confirmation:
    """Return a case with an item for each flagged text. The same words for the same reason are one item."""
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


def upheld(asked: Confirmation, verdicts: Mapping[str, Verdict | None]) -> Upheld:
    """Return the violations that stand and those that are cleared; ``verdicts`` are by item, None if missing.

    A violation stands if the judge says of any of its items that the response asserts it without support. It also
    stands if it has no item, because there was too much to ask about. It is cleared only if the judge denies that of
    all its items, because nothing that is missing clears a violation.
    """
    standing, cleared, unknown = list[Violation](), list[Violation](), list[Violation]()
    for violation, names in asked.violations:
        answers = [verdicts.get(name) for name in names]
        if ASSERTS in answers or not answers:
            standing.append(violation)
        elif None not in answers:
            cleared.append(violation)
        else:
            standing.append(violation)
            unknown.append(violation)
    return Upheld(standing=tuple(standing), cleared=tuple(cleared), unknown=tuple(unknown))


class FlaggedAnswer(Struct, frozen=True, kw_only=True):
    """An answer in which rules flagged texts, and what the judge said of them."""

    items: tuple[Item, ...]
    violations: tuple[tuple[Violation, tuple[str, ...]], ...]  # with the names of their items
    judgments: Mapping[str, Judgment]  # by the name of the item; items without a verdict are left out
    cleared: frozenset[Violation]

    @property
    def standing(self) -> frozenset[str]:
        return frozenset(
            name for violation, names in self.violations if violation not in self.cleared for name in names
        )


class Confirmed(Struct, frozen=True, kw_only=True):
    """The rules of a row after a second pass, and what the judge said of what they flagged."""

    rules: Sequence[tuple[RowRule, RowRule]]  # each with one that has only the violations that stand
    flagged: tuple[FlaggedAnswer, ...] = ()
    cleared: int = 0  # how many violations the judge cleared
    unknown: bool = False  # whether violations of a baseline are left out because they have no verdict


class SecondPass(Struct, frozen=True, kw_only=True):
    """The judgments on flagged texts, applied to the rules of rows.

    A baseline keeps only the violations that the judge asserts. Otherwise a new violation would pass for a known one
    because nobody judged the baseline.
    """

    replay: Replay
    k: int  # the largest cut-off
    unconfirmed: Unconfirmed  # what happens to texts without a verdict
    clears: bool = True  # a judge that is not calibrated clears nothing; what it said is only shown

    def confirmed(
        self, query: GoldenQuery, row: RunRow, rules: Sequence[RowRule], context: RowContext, *, strict: bool
    ) -> Confirmed:
        """Return the rules with the violations that the judge does not clear.

        With ``strict``, which is for a run and not for a baseline, raise CannotScoreError if there is no judgment on a
        flagged text.
        """
        contexts = contexts_of(row, self.k)
        known = () if isinstance(contexts, str) else contexts
        by_answer: dict[str, list[frozenset[Violation]]] = {}
        answers: list[tuple[Confirmation, Mapping[str, Judgment]]] = []
        unknown = False
        for asked in confirmations(query, row, rules, context, known):
            if isinstance(contexts, str) and strict:
                raise CannotScoreError(contexts)
            judgments = self._judgments(asked, strict=strict)
            left = upheld(asked, _verdicts(judgments))
            # Two rules may have the same violation, and only the items of one of them are all cleared.
            gone = frozenset(left.cleared) - frozenset(left.standing)
            if not strict and left.unknown and self.clears:
                gone |= frozenset(left.unknown)
                unknown = True
            by_answer.setdefault(asked.case.response or "", []).append(gone)
            answers.append((asked, judgments))
        # The same answer in several turns is cleared only of what is cleared in all of them.
        cleared = {answer: frozenset.intersection(*of) for answer, of in by_answer.items()} if self.clears else {}
        flagged = [
            FlaggedAnswer(
                items=asked.case.items,
                violations=asked.violations,
                judgments=judgments,
                cleared=cleared.get(asked.case.response or "", frozenset()),
            )
            for asked, judgments in answers
        ]
        return Confirmed(
            rules=[(rule, _without(rule, cleared)) for rule in rules],
            flagged=tuple(flagged),
            cleared=sum(map(len, cleared.values())),
            unknown=unknown,
        )

    def _judgments(self, asked: Confirmation, *, strict: bool) -> Mapping[str, Judgment]:
        if not asked.case.items:
            return {}
        judgments = self.replay.judgments(asked.case)
        if isinstance(judgments, str):
            if strict and self.unconfirmed == "error":
                raise CannotScoreError(judgments)
            return self.replay.partly(asked.case) if self.unconfirmed == "stands" else {}
        return {item.name: judgment for item, judgment in zip(asked.case.items, judgments, strict=True)}


def _verdicts(judgments: Mapping[str, Judgment]) -> dict[str, Verdict | None]:
    return {name: judgment.verdict for name, judgment in judgments.items() if not isinstance(judgment.verdict, bool)}


class _Left(RowRule, frozen=True, kw_only=True, gc=False, tag="left"):
    """A rule without the violations that a judge cleared."""

    in_rows: ClassVar[bool] = False
    rule: RowRule
    cleared: dict[str, frozenset[Violation]]  # by the answer

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:
        cleared = self.cleared.get(row.response if isinstance(row.response, str) else "", frozenset())
        yield from (violation for violation in self.rule.violations(query, row, context) if violation not in cleared)


def _without(rule: RowRule, cleared: Mapping[str, frozenset[Violation]]) -> RowRule:
    if not any(cleared.values()):
        return rule
    if isinstance(rule, InTurns):
        return replace(rule, rule=_Left(rule=rule.rule, cleared=dict(cleared)))
    return _Left(rule=rule, cleared=dict(cleared))
