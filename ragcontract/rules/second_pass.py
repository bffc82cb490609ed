"""What a judge cleared of what rules about answers flagged, replayed for a check. Nothing is asked here."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.answers.cannot_score import CannotScoreError
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.judge_settings import Unconfirmed
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import CONTEXT_FIELDS, RunRow
from ragcontract.rules.confirming import Confirmation, confirmations, upheld
from ragcontract.rules.turns import InTurns
from ragcontract.runs.judged_cases import contexts_of
from ragcontract.runs.judged_texts import Confirmed, Item
from ragcontract.runs.judgments import Judgment
from ragcontract.runs.replaying import Replay


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
