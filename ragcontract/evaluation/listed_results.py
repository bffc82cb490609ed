"""Holds the results of broken queries, on both sides, so that reports can list what was retrieved instead.

For no other query are results held, so the memory of a check does not depend on the size of the run.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from math import isfinite

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import Id, as_id
from ragcontract.core.run import ListedResult, Result, RunRow
from ragcontract.core.scores import QueryScore
from ragcontract.evaluation.plan import Plan
from ragcontract.rules.ranks import RankRules


class ListedResults:
    """The results of the first ``bounds.RETRIEVED_QUERIES`` broken queries, by query id.

    Of a run, the rows that break a rule are held; if a query has several rows, the first of these. Of a baseline, the
    first rows of the queries that the plan lists.
    """

    def __init__(self, plan: Plan) -> None:
        """Hold nothing yet; the plan says what breaks a rule."""
        self.held: dict[str, tuple[ListedResult, ...]] = {}
        self._plan = plan
        self._rules = RankRules(plan.rank_rules, plan.settings)

    def note(self, rows: Iterable[RunRow], queries: Iterable[GoldenQuery], scores: Iterable[QueryScore]) -> None:
        """Hold the results of those rows that break a rule about ranks, or, in a baseline, are of a listed query."""
        if self._plan.is_baseline:
            listed = self._plan.listed
            for row, query in zip(rows, queries, strict=True) if listed else ():
                if query.id in listed:
                    self.hold(query.id, row.results)
        elif self._plan.rank_rules and self.has_room:
            for row, query, score in zip(rows, queries, scores, strict=True):
                if self.breaks(query, score):
                    self.hold(query.id, row.results)

    @property
    def has_room(self) -> bool:
        """Whether the results of a further query can be held."""
        return len(self.held) < bounds.RETRIEVED_QUERIES

    def breaks(self, query: GoldenQuery, score: QueryScore) -> bool:
        """Return whether the ranks of a row violate a rule."""
        rules = self._rules
        return rules.may_be_violated(query, score) and any(True for _ in rules.violations(query, score))

    def hold(self, query_id: str, results: Iterable[Result]) -> None:
        """Hold the top k of a row, unless another row of the query is held already."""
        if query_id not in self.held and self.has_room:
            self.held[query_id] = top(results, self._plan)

    def hold_ids(self, query_id: str, doc_ids: Sequence[Id]) -> None:
        """Hold the top k of a stored query, of which only document ids are known, if it is listed."""
        if query_id in self._plan.listed:
            self.hold(query_id, (Result(doc_id=doc_id) for doc_id in doc_ids))


def top(results: Iterable[Result], plan: Plan) -> tuple[ListedResult, ...]:
    """Return the top k, at most ``bounds.RETRIEVED`` results; each document once if ranks count documents."""
    if plan.ranking.by_document:
        first: dict[str, Result] = {}
        for result in results:
            first.setdefault(as_id(result.doc_id), result)
        results = first.values()
    return tuple([_retrieved(result) for result in islice(results, min(plan.k, bounds.RETRIEVED))])


def _retrieved(result: Result) -> ListedResult:
    score, chunk = result.score, result.chunk_id
    return ListedResult(
        doc_id=as_id(result.doc_id),
        score=score if score is not None and isfinite(score) else None,
        chunk_id=None if chunk is None else as_id(chunk),
    )
