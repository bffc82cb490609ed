"""Scores the queries of a stored baseline as if they were rows.

The metrics that cannot be computed from document ids and the broken rules are taken as they are stored.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id, as_ids, first_of, lists_as_ids, packed
from ragcontract.core.metric import Family, Invalid, Metric, Missing
from ragcontract.core.rule import Violation
from ragcontract.core.run import Confusion, QueryScore, Result, RunRow, Values
from ragcontract.evaluation.observations import ClassCounts, Classes, Latencies, Measured, Versions
from ragcontract.evaluation.plan import Plan, valid_values
from ragcontract.evaluation.query_scores import ScoreTable
from ragcontract.evaluation.scoring import Scored, Scorer
from ragcontract.runs.baseline_contract import REFERENCES, Expected, expected_of, has_other_turns, question_digest
from ragcontract.runs.baseline_file import ComparedQuery, MeasuredQuery, StoredBatch, StoredHead
from ragcontract.statistics.quantities import summed


class Stored(Struct, frozen=True, kw_only=True):
    """What only a stored baseline has."""

    head: StoredHead
    expected: Mapping[str, Expected] = {}  # what its queries expected, where the golden file differs now
    incomparable: frozenset[str] = frozenset()  # metrics that it computed in another way


class StoredQueries:
    """The queries of a stored baseline, which are compared with the golden queries while they are read."""

    def __init__(self, plan: Plan) -> None:
        self.head: StoredHead | None = None
        self.changed: list[str] = []  # queries with another question
        self.without_results: dict[str, None] = {}  # queries that name documents since, and were stored without results
        self.pools: dict[str, bytes] = {}  # of queries whose judged pool is not what they return first
        self._plan = plan
        self._expected: dict[str, Expected] = {}
        self._labels: dict[str, Confusion] = {}
        self._rows = 0
        self._has_same_golden = self._has_other_k = False

    def begin(self, head: StoredHead) -> None:
        """Note the head of the baseline, which comes before its queries."""
        plan, self.head = self._plan, head
        self._has_same_golden = head.has_golden(plan.golden_files, plan.relevance_level)
        self._has_other_k = max(head.k) != plan.k

    def scored(self, batch: StoredBatch, scorer: Scorer, table: ScoreTable) -> Scored:
        """Score a batch, and store in the table what cannot be computed from document ids."""
        golden, families = self._plan.golden, self._plan.families
        repeats = sum([len(stored.repeats) for stored in batch.queries])
        self._rows += len(batch.queries) + repeats
        unknown: list[str] = []
        queries: list[GoldenQuery] = []
        rows: list[list[str | int]] = []
        for stored in batch.queries:
            query = golden.get(as_id(stored.id))
            if query is None:
                unknown.append(as_id(stored.id))
                continue
            if self._has_changed(query, stored):
                self.changed.append(query.id)
                continue
            if stored.labels and query.answer and (label := query.answer.expected_label) is not None:
                self._labels[query.id] = Counter((label, chosen) for chosen in stored.labels)
            if stored.broken:
                table.violations[query.id] = tuple(stored_violations(stored))
            if has_results := bool(stored.doc_ids) or not had_no_results(query, stored):
                queries.append(query)
                rows.append(stored.doc_ids)
                if stored.repeats:
                    queries += [query] * len(stored.repeats)
                    rows += stored.repeats
                if stored.pool is not None or self._has_other_k:
                    self._note_pool(query.id, stored)
            else:
                self.without_results[query.id] = None
                table.scores[query.id] = unknown_ranks(query)
            if families:
                self._note_values(query, stored, table, has_results=has_results)
        ranked = scorer.ranked(batch, queries, lists_as_ids(rows), self.pools)
        return replace(ranked, unknown=unknown, may_repeat=bool(repeats))

    def finish(self) -> tuple[Stored | None, dict[type, Any]]:
        """Return what only a stored baseline has, and the results of the observations that its head knows."""
        head = self.head
        if head is None:
            return None, {}
        families = [family for family in self._plan.families if not family.from_ids]
        metrics = [metric for family in families for metric in family.metrics]
        others = [metric.key for metric in metrics if head.fingerprints.get(metric.key, "") != metric.fingerprint]
        unmeasured = max(0, self._rows - (head.latency.rows if head.latency else 0))
        results: dict[type, Any] = {
            Versions: head.versions,
            Latencies: Measured(latency=head.latency, unmeasured=unmeasured),
            ClassCounts: Classes(labels=summed(self._labels.values()), of_queries=self._labels),
        }
        return Stored(head=head, expected=self._expected, incomparable=frozenset(others)), results

    def _has_changed(self, query: GoldenQuery, stored: ComparedQuery) -> bool:
        """Return whether a query was another question; note what it expected if that was something else."""
        has_changed = stored.query != query.query and stored.query != question_digest(query.query)
        if self._has_same_golden or stored.expects is None or stored.expects == (now := expected_of(query)):
            return has_changed
        self._expected[query.id] = stored.expects
        return has_changed or has_other_turns(stored.expects, now)

    def _note_pool(self, query_id: str, stored: ComparedQuery) -> None:
        """Note the judged pool of a query: its own, or its first ids at the largest cut-off of the stored baseline."""
        if stored.pool is not None:
            self.pools[query_id] = packed([as_ids(stored.pool)])
        elif self.head:
            by_document = self._plan.ranking.by_document
            rows = [as_ids(doc_ids) for doc_ids in (stored.doc_ids, *stored.repeats)]
            self.pools[query_id] = packed([first_of(ids, max(self.head.k), by_document=by_document) for ids in rows])

    def _note_values(self, query: GoldenQuery, stored: ComparedQuery, table: ScoreTable, *, has_results: bool) -> None:
        """Store the values of all families but the ranking metrics, of which some are computed from document ids."""
        for family, column in zip(self._plan.families, table.columns, strict=True):
            if not family.from_ids:
                if not has_other_reference(family, query, stored):
                    column.add(query.id, stored_values(family.metrics, stored))
                continue
            for doc_ids in [stored.doc_ids, *stored.repeats] if has_results else ():
                results = [Result(doc_id=doc_id) for doc_id in doc_ids]
                values = valid_values(family, query, RunRow(query_id=query.id, results=results))
                if not isinstance(values, Missing | Invalid):
                    column.add(query.id, values)


def stored_values(metrics: Iterable[Metric], stored: ComparedQuery) -> Values:
    """Return the stored metrics of a query; an empty tuple if any of them is missing."""
    known = stored.metrics if isinstance(stored, MeasuredQuery) else {}
    values = [known.get(metric.key) for metric in metrics]
    return tuple([value for value in values if value is not None]) if None not in values else ()


def stored_violations(stored: ComparedQuery) -> Iterator[Violation]:
    """Yield the violations of rules about the answer of a stored query. Only digests of their causes are known."""
    for rule, causes in stored.broken.items():
        yield Violation(rule=rule, expected=(), actual=(), causes=tuple(causes))


def references_of(family: Family) -> list[str]:
    """Return the golden fields that a family compares an answer with, or shows to a judge."""
    fields = {family.switch, *(field for metric in family.metrics for field in metric.references)}
    return [field for field in REFERENCES if field in fields]


def has_other_reference(family: Family, query: GoldenQuery, stored: ComparedQuery) -> bool:
    """Return whether a family compared the stored query's answer with a reference that is not today's."""
    references = references_of(family)
    if stored.expects is None or not references:
        return False
    before, now = stored.expects.references, expected_of(query).references
    return any(before.get(field) != now.get(field) for field in references)


def had_no_results(query: GoldenQuery, stored: ComparedQuery) -> bool:
    """Return whether a query names documents, and was stored without results when it named none.

    Its row may have had no results at all, so nobody knows what would have been retrieved.
    """
    if stored.doc_ids or any(stored.repeats) or stored.expects is None:
        return False
    before, now = (
        (expected.relevant, expected.judged, expected.forbidden) for expected in (stored.expects, expected_of(query))
    )
    return not any(before) and any(now)


def unknown_ranks(query: GoldenQuery) -> QueryScore:
    """Return the score of a query of whose documents a baseline says nothing; it has no values to compare."""
    relevant, forbidden = len(query.relevant_doc_ids), len(query.forbidden_doc_ids)
    return QueryScore(ranks=(None,) * relevant, forbidden_ranks=(None,) * forbidden, values=())
