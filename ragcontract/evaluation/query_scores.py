"""The scores of the queries of one side, with the values of all metrics and the violations of all rules.

Most queries have one row. Of several, each score is kept, and the means count.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import together
from ragcontract.core.rule import Violation
from ragcontract.core.run import QueryScore, Values
from ragcontract.evaluation.listed import ListedResults
from ragcontract.evaluation.plan import Plan, RowOutcome
from ragcontract.evaluation.scoring import Scored
from ragcontract.rules.ranks import RankRules
from ragcontract.statistics.means import averaged, averaged_values


class ValuesByQuery(Protocol):
    """The values of one family by query, and those of each row of a query."""

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:
        """Return the values of several queries; None for one that is not among the ``scored`` ones."""

    def rows(self, query_id: str) -> Sequence[Values]:
        """Return the values of each row of a query."""


class JudgedShares:
    """The shares of judged results, which are stored with the ranks."""

    def __init__(self, scores: Mapping[str, QueryScore]) -> None:
        self._scores = scores

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        return self._scores[query_id].judged

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:  # noqa: ARG002 (the seam's)
        get = self._scores.get
        return [score.judged if (score := get(query_id)) else None for query_id in query_ids]

    def rows(self, query_id: str) -> Sequence[Values]:
        score = self._scores[query_id]
        return [repeat.judged for repeat in score.repeats] or [score.judged]


class Column:
    """The values of one family by query.

    If a query has several rows, its values are the means, and ``rows`` returns those of each row.
    """

    def __init__(self) -> None:
        self._values: dict[str, Values] = {}
        self._repeats: dict[str, list[Values]] = {}

    def note(self, query_ids: Sequence[str], rows: Sequence[Values]) -> None:
        """Store the values of queries that have no other rows so far."""
        if rows:  # a baseline has no overlap with itself
            self._values.update(zip(query_ids, rows, strict=True))

    def add(self, query_id: str, values: Values) -> None:
        """Add the values of a row of a query; they are empty if the metrics do not apply to it, and do not count."""
        if not values:
            return
        values = tuple(map(float, values))  # of judged values, without the judgments
        if first := self._values.get(query_id):
            self._repeats.setdefault(query_id, [first]).append(values)
        else:
            self._values[query_id] = values

    def replace(self, query_id: str, values: Values) -> None:
        """Store the values of a query instead of those of its rows; with empty values, it has none."""
        self._repeats.pop(query_id, None)
        self._values[query_id] = values

    def __getitem__(self, query_id: str) -> Values:
        """Return the values of a query, empty if it has none."""
        if rows := self._repeats.get(query_id):
            return averaged_values(rows)  # when read: a mean for each of many rows would be quadratic in them
        return self._values.get(query_id, ())

    def of(self, query_ids: Iterable[str], scored: Container[str]) -> list[Values | None]:
        if self._repeats:
            return [self[query_id] if query_id in scored else None for query_id in query_ids]
        get = self._values.get
        return [get(query_id) or (() if query_id in scored else None) for query_id in query_ids]

    def rows(self, query_id: str) -> Sequence[Values]:
        return self._repeats.get(query_id) or [self[query_id]]


class FirstIds:
    """The packed first ids of a baseline's rows, by query."""

    def __init__(self) -> None:
        self._packed: dict[str, bytes] = {}
        self._repeats: dict[str, list[bytes]] = {}

    def note(self, query_ids: Sequence[str], rows: Sequence[bytes]) -> None:
        """Store the first ids of queries that have no other rows so far, each packed as the only row of its query."""
        if rows:  # those of a run are not packed
            self._packed.update(zip(query_ids, rows, strict=True))

    def add(self, query_id: str, first: bytes) -> None:
        """Add the first ids of a row, packed in the same way, of a query that may have others."""
        if query_id not in self._packed:
            self._packed[query_id] = first
            return
        rows = self._repeats.setdefault(query_id, [self._packed[query_id][1:]])  # without the head of a list
        if len(rows) < bounds.BASELINE_ROWS:
            rows.append(first[1:])

    def result(self) -> dict[str, bytes]:
        """Return the packed rows of each query."""
        if not self._repeats:
            return self._packed
        return self._packed | {query_id: together(rows) for query_id, rows in self._repeats.items()}


class ScoreTable:
    """The scores and values of the queries of a side, and what the rows of the broken ones have."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rules = RankRules(plan.rank_rules, plan.settings)
        self.scores: dict[str, QueryScore] = {}  # the ranks, and the values of ranking metrics
        self.columns = tuple(Column() for _ in plan.families)
        self.overlap = Column()
        self.diagnostics: list[ValuesByQuery] = [
            self.overlap if family is plan.overlap else JudgedShares(self.scores) for family in plan.diagnostics
        ]
        self.violations: dict[str, tuple[Violation, ...]] = {}  # of rules that read the row
        self.of_ranks: dict[str, tuple[Violation, ...]] = {}
        self.listed = ListedResults(plan)
        self.judged = plan.judge.counter(plan.families, words=plan.texts) if plan.judge else None
        self.first_ids = FirstIds()
        self.doc_ids: dict[str, list[list[str]]] = {}
        self.unordered_rows: dict[str, int] = {}  # of each query, if any has several and they have no order
        self._repeats: dict[str, list[QueryScore]] = {}

    def note(self, scored: Scored) -> None:
        """Store the scores of a batch. Of a query with several rows, each score is stored."""
        query_ids = [query.id for query in scored.queries]
        are_alone = not scored.may_repeat or (
            len(set(query_ids)) == len(query_ids) and self.scores.keys().isdisjoint(query_ids)
        )
        self._note_beside(scored)
        if are_alone:
            self.scores.update(zip(query_ids, scored.scores, strict=True))
            self.overlap.note(query_ids, scored.overlaps)
            self.first_ids.note(query_ids, scored.first_ids)
        else:
            self._add_rows(query_ids, scored)
        if self._plan.rank_rules:
            self._note_ranks(scored)
        if self._plan.keep_ids:
            for query_id, doc_ids in zip(query_ids, scored.doc_ids, strict=True):
                self.doc_ids.setdefault(query_id, []).append(doc_ids)

    def _add_rows(self, query_ids: Sequence[str], scored: Scored) -> None:
        """Add rows of queries that may have others."""
        for query_id, score in zip(query_ids, scored.scores, strict=True):
            if query_id in self.scores:
                self._repeats.setdefault(query_id, [self.scores[query_id]]).append(score)
            else:
                self.scores[query_id] = score
        for query_id, values in zip(query_ids, scored.overlaps, strict=False):  # not strict: none of a baseline
            self.overlap.add(query_id, values)
        for query_id, first in zip(query_ids, scored.first_ids, strict=False):  # not strict: none of a run
            self.first_ids.add(query_id, first)

    def _note_beside(self, scored: Scored) -> None:
        """Store the values and violations that need the row itself."""
        for query, row, beside in zip(scored.queries, scored.rows, scored.beside, strict=False):  # not strict: or none
            if beside is None:
                continue
            for column, values in zip(self.columns, beside.values, strict=True):
                column.add(query.id, values)
            if self.judged:
                self.judged.note(query.id, beside.values, beside.confirmed)
            if beside.violations:
                self.violations[query.id] = merged(self.violations.get(query.id, ()), beside.violations)
                if not self._plan.is_baseline:
                    self.listed.hold_row(query.id, row)

    def _note_ranks(self, scored: Scored) -> None:
        """Store the violations of rules about ranks, and hold the results of the rows that violate them."""
        may_be_violated = self._rules.may_be_violated
        for number, (query, score) in enumerate(zip(scored.queries, scored.scores, strict=True)):
            if may_be_violated(query, score) and (violations := self._rules.violations(query, score)):
                self.of_ranks[query.id] = violations
                if scored.rows:
                    self.listed.hold_row(query.id, scored.rows[number])

    def note_outcomes(self, query_id: str, outcomes: Sequence[RowOutcome], rows: Sequence[int]) -> None:
        """Store the outcomes of a query whose rows have no order; each of them is that of so many ``rows``."""
        once = sum(rows) == 1
        query, score = self._plan.golden[query_id], outcomes[0].score
        score = score if once else averaged([outcome.score for outcome in outcomes], rows)
        self.scores[query_id] = score
        self.unordered_rows[query_id] = sum(rows)
        for number, column in enumerate(self.columns):
            column.add(query_id, averaged_values([outcome.values[number] for outcome in outcomes], rows))
        self.overlap.add(query_id, averaged_values([outcome.overlap for outcome in outcomes], rows))
        violations = merged((), chain.from_iterable(outcome.violations for outcome in outcomes))
        if violations:
            self.violations[query_id] = violations
        if self._rules.may_be_violated(query, score) and (of_ranks := self._rules.violations(query, score)):
            self.of_ranks[query_id] = of_ranks

    def finish(self, changed: Container[str]) -> list[GoldenQuery]:
        """Average the rows of queries that have several; return those that neither have a row nor are ``changed``.

        In a run, a query without a row is scored as if nothing was retrieved; other metrics have their worst value.
        """
        golden, rules, missing = self._plan.golden, self._rules, list[GoldenQuery]()
        if len(self.scores) < len(golden):
            missing = [query for key, query in golden.items() if key not in self.scores and key not in changed]
        for query_id, rows in self._repeats.items():
            self.scores[query_id] = score = averaged(rows)
            self.of_ranks.pop(query_id, None)
            if self._plan.rank_rules and (violations := rules.violations(golden[query_id], score)):
                self.of_ranks[query_id] = violations
        for query in missing if not self._plan.is_baseline else ():
            outcome = self._plan.missing(query)
            self.scores[query.id] = outcome.score
            self.overlap.add(query.id, outcome.overlap)
            for column, values in zip(self.columns, outcome.values, strict=True):
                column.add(query.id, values)
            if self.judged:
                self.judged.note(query.id, outcome.values)
            if outcome.violations:
                self.violations[query.id] = outcome.violations
            if violations := rules.violations(query, outcome.score):
                self.of_ranks[query.id] = violations
            if outcome.violations or violations:
                self.listed.hold(query.id, ())
        return missing


def merged(first: Iterable[Violation], others: Iterable[Violation]) -> tuple[Violation, ...]:
    """Return the violations of several rows of a query, without duplicates."""
    return tuple(dict.fromkeys([*first, *others]))
