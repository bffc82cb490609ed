"""The second pass: a judge is asked about texts that rules flagged in answers, and what it denies is cleared.

``rag-contract judge`` asks about the cases that are made here. A check makes them again and replays the judgments;
equal texts make equal cases. Nothing is asked here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import CannotScoreError
from ragcontract.core.config_sections import Confirmed as Verdict
from ragcontract.core.config_sections import Unconfirmed
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Flag, RowContext, RowRule, Violation
from ragcontract.core.run import RunRow
from ragcontract.judgments.items import ASSERTS, Item, JudgeCase, contexts_of
from ragcontract.judgments.judgments_file import Judgment
from ragcontract.judgments.replay import Replay
from ragcontract.rules.answered import Flagging
from ragcontract.rules.turns import InTurns

Asked: TypeAlias = tuple[RowRule, Iterable[Violation]]  # a rule of a row, and what it yields


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
    query: GoldenQuery, row: RunRow, asked: Iterable[Asked], context: RowContext, contexts: Sequence[str]
) -> tuple[Confirmation, ...]:
    """Return what to ask about a row: a case for its answer, or for each turn, in which something is flagged.

    ``asked`` are the rules that search answers, with flags. ``contexts`` are the retrieved texts.
    """
    flags: dict[int | None, list[Flag]] = {}
    for rule, violations in asked:
        for turn in rule.turns if isinstance(rule, InTurns) else (None,):
            flags.setdefault(turn, [])
        for violation in violations:
            if violation.flag:
                flags.setdefault(violation.turn, []).append(violation.flag)
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
            response=_answer(row, turn, context),
        )
        made.append(_confirmation(whole, of_answer, turn))
    return tuple(made)


def _answer(row: RunRow, turn: int | None, context: RowContext) -> str:
    """Return the answer of a row, or of one of its turns."""
    response = row.response if turn is None else context.turns[turn].row.response
    return response if isinstance(response, str) else ""


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
    judgments: Mapping[str, Judgment]  # by the name of the item; items without a verdict are left out
    standing: frozenset[str]  # the names of the items of violations that stand


class Confirmed(Struct, frozen=True, kw_only=True):
    """The rules of a row after a second pass, and what the judge said of what they flagged."""

    asked: Sequence[Asked]  # with only the violations that stand
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
        self, query: GoldenQuery, row: RunRow, asked: Sequence[Asked], context: RowContext, *, strict: bool
    ) -> Confirmed:
        """Return the rules with the violations that the judge does not clear.

        With ``strict``, which is for a run and not for a baseline, raise CannotScoreError if there is no judgment on a
        flagged text.
        """
        contexts = contexts_of(row, self.k)
        known = () if isinstance(contexts, str) else contexts
        flagging = {at: (rule, tuple(of)) for at, (rule, of) in enumerate(asked) if isinstance(rule.inner, Flagging)}
        by_answer: dict[str, list[frozenset[Violation]]] = {}
        answers: list[tuple[Confirmation, Mapping[str, Judgment]]] = []
        unknown = False
        for confirmation in confirmations(query, row, flagging.values(), context, known):
            if isinstance(contexts, str) and strict:
                raise CannotScoreError(contexts)
            judgments = self._judgments(confirmation, strict=strict)
            left = upheld(confirmation, _verdicts(judgments))
            # Two rules may have the same violation, and only the items of one of them are all cleared.
            gone = frozenset(left.cleared) - frozenset(left.standing)
            if not strict and left.unknown and self.clears:
                gone |= frozenset(left.unknown)
                unknown = True
            by_answer.setdefault(confirmation.case.response or "", []).append(gone)
            answers.append((confirmation, judgments))
        # The same answer in several turns is cleared only of what is cleared in all of them.
        cleared = {answer: frozenset.intersection(*of) for answer, of in by_answer.items()} if self.clears else {}

        def stands(violation: Violation) -> bool:
            gone = cleared.get(_answer(row, violation.turn, context), frozenset())
            return violation.flag is None or violation.flag.violation not in gone

        return Confirmed(
            asked=[
                (rule, filter(stands, flagging[at][1]) if at in flagging else violations)
                for at, (rule, violations) in enumerate(asked)
            ],
            flagged=tuple(_flagged(confirmation, judgments, cleared) for confirmation, judgments in answers),
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


def _flagged(
    asked: Confirmation, judgments: Mapping[str, Judgment], cleared: Mapping[str, frozenset[Violation]]
) -> FlaggedAnswer:
    gone = cleared.get(asked.case.response or "", frozenset())
    standing = frozenset(name for violation, names in asked.violations if violation not in gone for name in names)
    return FlaggedAnswer(items=asked.case.items, judgments=judgments, standing=standing)
