"""Observations: what is counted beside the scores while the rows of a side are scored, on any machine.

A new one is a subclass of :class:`Observation` and a line in ``OBSERVATIONS``. Workers of a cluster count as well.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery, named_in
from ragcontract.core.id_forms import Match, matches, most_common
from ragcontract.core.ids import as_id
from ragcontract.core.phrase import Location
from ragcontract.core.run import VERSION_FIELDS, Confusion, Latency, RunRow, has_failed, mode_of, versions_in
from ragcontract.evaluation.forbidden_forms import FOLDER, forbidden_patterns, is_folder
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.scoring import Key, Observation, Scored
from ragcontract.files.problems import Batch
from ragcontract.files.schema import shown
from ragcontract.runs.readers import Scores, descending, falls, look_like_distances, out_of_order, rises
from ragcontract.statistics.means import summary
from ragcontract.statistics.quantities import summed

MORE: Key = (None,)  # the key of rows whose query ids are not listed


class Depth(Struct, frozen=True, kw_only=True):
    """The number of results of a row."""

    most: int
    typical: int  # the median: at least half of the rows have no more


class Depths(Observation[Depth | None]):
    """How many results the rows have. A run that is shorter than k cannot show what ranks below."""

    def note(self, scored: Scored) -> None:
        for length, rows in Counter(map(len, scored.doc_ids)).items():
            self.counts[length,] += rows

    def result(self) -> Depth | None:
        """Return the depth; None if there are no rows."""
        half, below = self.counts.total() / 2, 0
        for (length,), rows in sorted(self.counts.items()):
            below += rows
            if below >= half:
                return Depth(most=max(self.counts)[0], typical=length)
        return None


class Duplicates(Struct, frozen=True, kw_only=True):
    """Documents that rows return more than once."""

    results: int = 0  # in the top k of all rows
    repeated: int = 0  # results in the top k that repeat a document of the same row
    short: int = 0  # rows with fewer than k distinct documents because some are repeated
    named: tuple[str, ...] = ()  # the first queries of short rows

    @property
    def rate(self) -> float:
        """The fraction of repeated results; 0 if there are no results."""
        return self.repeated / self.results if self.results else 0.0


class RepeatedResults(Observation[Duplicates]):
    """Documents that a row returns more than once, for example as chunks. They displace other documents."""

    nothing = Duplicates()

    def note(self, scored: Scored) -> None:
        k = self.plan.k
        tops = [doc_ids[:k] for doc_ids in scored.doc_ids]
        results = sum(map(len, tops))
        self.counts["results",] += results
        if results == sum(map(len, map(set, tops))):
            return
        for query, doc_ids, top in zip(scored.queries, scored.doc_ids, tops, strict=True):
            if repeated := len(top) - len(set(top)):
                self.counts["repeated",] += repeated
                if len(set(doc_ids)) < k:
                    self.counts["short", query.id] += 1

    def result(self) -> Duplicates:
        short = self.of("short")
        return Duplicates(
            results=self.counts["results",],
            repeated=self.counts["repeated",],
            short=sum(short.values()),
            named=tuple(short)[: bounds.NAMES],
        )


class UnseenIds(Struct, frozen=True, kw_only=True):
    """How many relevant ids of the queries with rows never occur, and in which other form they do."""

    relevant: int = 0
    compared: int = 0  # of those that never occur: compared with ids that do
    matched: int = 0  # of those compared: occur in the form of the example
    example: Match | None = None
    retrieved: tuple[str, ...] = ()  # the first ids of the run
    ids: set[str] | frozenset[str] = frozenset()  # the relevant ids that occur in no row


class UnseenIdSearch(Observation[UnseenIds]):
    """The relevant ids that occur in no row, which shows whether contract and run write ids the same way.

    In a good run, this costs almost nothing, because the search ends once every relevant id has occurred.
    """

    nothing = UnseenIds()
    on_cluster = False

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._unseen = set(chain.from_iterable(query.relevant_doc_ids for query in plan.golden.values()))
        self._relevant = len(self._unseen)
        self._held: list[tuple[GoldenQuery, list[str]]] = []  # rows that lack a relevant document
        self._room = bounds.COMPARED_IDS

    def note(self, scored: Scored) -> None:
        if not self._unseen:
            return
        if self._room > 0:
            for query, doc_ids, score in zip(scored.queries, scored.doc_ids, scored.scores, strict=True):
                if None in score.ranks and self._room > 0:
                    self._held.append((query, doc_ids))
                    self._room -= len(doc_ids)
        self._unseen.difference_update(*scored.doc_ids)

    def note_missing(self, queries: Sequence[GoldenQuery]) -> None:
        """Leave out the relevant ids of queries without a row, unless others have them as well."""
        if queries and self._unseen:
            absent = {query.id for query in queries}
            having = [query for query_id, query in self.plan.golden.items() if query_id not in absent]
            wanted = set(chain.from_iterable(query.relevant_doc_ids for query in having))
            self._relevant, self._unseen = len(wanted), self._unseen & wanted

    def result(self) -> UnseenIds:
        if not self._unseen:
            return UnseenIds(relevant=self._relevant)
        wanted_here = dict.fromkeys(chain.from_iterable(query.relevant_doc_ids for query, _ in self._held))
        compared = [doc_id for doc_id in wanted_here if doc_id in self._unseen]
        example, matched = most_common(matches(compared, chain.from_iterable(doc_ids for _, doc_ids in self._held)))
        retrieved = dict.fromkeys(chain.from_iterable(doc_ids[:1] for _, doc_ids in self._held[: bounds.NAMES]))
        return UnseenIds(
            relevant=self._relevant,
            compared=len(compared),
            matched=matched,
            example=example,
            retrieved=tuple(retrieved),
            ids=self._unseen,
        )


class Order(Struct, frozen=True, kw_only=True):
    """How the scores of the results are ordered. They never reorder the results."""

    distances: bool = False  # whether they look like distances
    warning: str | None = None  # about rows whose scores do not descend


class ScoreOrder(Observation[Order]):
    """Rows whose scores do not descend, whether or not they belong to golden queries."""

    nothing = Order()

    def note(self, scored: Scored) -> None:
        batch = scored.batch
        if not isinstance(batch, Batch):  # stored baselines have no scores
            return
        of_rows = [[result.score for result in row.results] for row in batch.rows]
        unordered = {number: scores for number, scores in enumerate(of_rows) if not descending(scores)}
        if unordered:
            self._note_unordered(batch, unordered)
        if ("falling",) not in self.counts:
            ordered = (scores for number, scores in enumerate(of_rows) if number not in unordered)
            if any(map(falls, ordered)):
                self.counts["falling",] += 1

    def _note_unordered(self, batch: Batch[RunRow], unordered: Mapping[int, Scores]) -> None:
        if ("unordered",) not in self.counts:
            number = min(unordered)
            query = "" if batch.line else shown(batch.rows[number].query_id)
            self.counts["first", batch.path, batch.line and batch.line + number, query] += 1
        self.counts["unordered",] += len(unordered)
        self.counts["rising",] += sum(map(rises, unordered.values()))

    def merge(self, counts: Mapping[Key, int]) -> None:
        """Add the counts of a part. Which of its rows comes first says nothing, so only the file is named."""
        super().merge({(*key[:3], "") if key[0] == "first" else key: rows for key, rows in counts.items()})

    def result(self) -> Order:
        unordered = self.counts["unordered",]
        if look_like_distances(unordered, self.counts["rising",], falling=bool(self.counts["falling",])):
            return Order(distances=True)
        for kind, *first in self.counts:
            if kind == "first":
                path, line, query = first
                return Order(
                    warning=out_of_order(Location(f"{path}: query {query}" if query else path, line), unordered)
                )
        return Order()


class Measured(Struct, frozen=True, kw_only=True):
    """The latencies of a side."""

    latency: Latency | None = None
    unmeasured: int = 0  # rows without a latency


class Latencies(Observation[Measured]):
    """How long the rows took. Each needs 8 bytes, because hardly any two are equal."""

    nothing = Measured()
    on_cluster = False

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._milliseconds = array("d")

    def note(self, scored: Scored) -> None:
        latencies = [row.latency_ms for row in scored.rows if row.latency_ms is not None]
        self._milliseconds.extend(latencies)
        self.counts["unmeasured",] += len(scored.rows) - len(latencies)

    def result(self) -> Measured:
        return Measured(latency=summary(self._milliseconds), unmeasured=self.counts["unmeasured",])


class Versions(Observation[dict[str, list[str]]]):
    """The distinct values of each version field."""

    on_cluster = False
    nothing: ClassVar[dict[str, Any]] = {}

    def note(self, scored: Scored) -> None:
        for values in dict.fromkeys(map(versions_in, scored.rows)):
            for field, value in zip(VERSION_FIELDS, values, strict=True):
                if value is not None:
                    self.counts[field, as_id(value)] = 1

    def result(self) -> dict[str, list[str]]:
        values = {field: [*self.of(field)] for field in VERSION_FIELDS}
        return {field: of_field for field, of_field in values.items() if of_field}


class Classes(Struct, frozen=True, kw_only=True):
    """The rows by expected and actual class."""

    modes: Confusion = {}
    labels: Confusion = {}
    of_queries: Mapping[str, Confusion] = {}  # the labels by query, with which a baseline is compared


class ClassCounts(Observation[Classes]):
    """The rows by expected and actual mode and label, each only if the contract needs that field."""

    nothing = Classes()

    def note(self, scored: Scored) -> None:
        needs = self.plan.needs
        for query, row, beside in zip(scored.queries, scored.rows, scored.beside, strict=False):  # not strict: or none
            if beside is not None:
                self._count(query, row, needs)

    def note_missing(self, queries: Sequence[GoldenQuery]) -> None:
        for query in queries:
            self._count(query, None, self.plan.needs)

    def _count(self, query: GoldenQuery, row: RunRow | None, needs: frozenset[str]) -> None:
        if (expected := query.answer) and "mode" in needs and expected.expected_mode is not None:
            self.counts["modes", expected.expected_mode, mode_of(row) if row else None, None] += 1
        if expected and "label" in needs and expected.expected_label is not None:
            self.counts["labels", expected.expected_label, row.label if row else None, query.id] += 1

    def result(self) -> Classes:
        modes, of_queries = Counter[tuple[str, str | None]](), dict[str, Counter[tuple[str, str | None]]]()
        for (kind, *pair, query_id), rows in self.counts.items():
            (modes if kind == "modes" else of_queries.setdefault(query_id, Counter()))[*pair,] += rows
        return Classes(modes=modes, labels=summed(of_queries.values()), of_queries=of_queries)


class Unknown(Struct, frozen=True, kw_only=True):
    """The query ids of a side that the golden set does not have."""

    listed: tuple[str, ...] = ()  # all of a baseline, the first of a run
    more: int = 0  # the number of rows of other unknown queries


class UnknownQueries(Observation[Unknown]):
    """Rows of queries that the golden set does not have. Golden queries outside the scope are known."""

    nothing = Unknown()
    on_cluster = False

    def note(self, scored: Scored) -> None:
        counts, lists_all = self.counts, self.plan.is_baseline
        for query_id in scored.unknown:
            if query_id not in self.plan.not_judged:
                is_listed = lists_all or (query_id,) in counts or len(counts) < bounds.UNKNOWN
                counts[(query_id,) if is_listed else MORE] += 1

    def result(self) -> Unknown:
        listed = tuple([query_id for (query_id,) in self.counts if query_id is not None])
        return Unknown(listed=listed, more=self.counts[MORE])


class Gaps(Struct, frozen=True, kw_only=True):
    """The scores that queries lack, and those that nothing reads."""

    lacking: dict[str, tuple[str, ...]] = {}  # the queries by the name of the score
    undeclared: tuple[str, ...] = ()  # the first names of scores that no metric reads


class ScoreGaps(Observation[Gaps]):
    """The scores that queries lack in any of their rows, and the names of scores that no metric reads."""

    nothing = Gaps()

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._known = frozenset(plan.scores)
        self._undeclared: set[str] = set()

    def note(self, scored: Scored) -> None:
        for query, beside in zip(scored.queries, scored.beside, strict=False):  # not strict: empty for stored queries
            for name in beside.lacking if beside else ():
                self.counts["lacking", name, query.id] = 1
        for row, beside in zip(scored.rows, scored.beside, strict=False) if self._known else ():
            if beside and row.scores and len(self._undeclared) < bounds.NAMES:
                self._undeclared.update([name for name in row.scores if name not in self._known][: bounds.NAMES])
                self.counts.update({("undeclared", name): 1 for name in row.scores if name in self._undeclared})

    def result(self) -> Gaps:
        lacking: dict[str, list[str]] = {}
        for key in self.counts:
            if key[0] == "lacking":
                lacking.setdefault(key[1], []).append(key[2])
        return Gaps(
            lacking={name: tuple(query_ids) for name, query_ids in lacking.items()},
            undeclared=tuple(self.of("undeclared"))[: bounds.NAMES],
        )


class UnreadChecks(Observation[dict[str, int]]):
    """The number of rows in which a check failed that no rule of the query reads, by the name of the check."""

    nothing: ClassVar[dict[str, Any]] = {}

    def note(self, scored: Scored) -> None:
        from ragcontract.rules.custom import checks_read

        for query, row, beside in zip(scored.queries, scored.rows, scored.beside, strict=False):
            checks = row.checks or {} if beside else {}
            for name in sorted(checks.keys() - checks_read(query)):
                if has_failed(checks[name]) and ((name,) in self.counts or len(self.counts) < bounds.NAMES):
                    self.counts[name,] += 1

    def result(self) -> dict[str, int]:
        return {name: rows for (name,), rows in sorted(self.counts.items())}


class QueryIds(Observation[tuple[str, ...]]):
    """The ids of queries, each of which is a key."""

    nothing = ()

    def result(self) -> tuple[str, ...]:
        return tuple([query_id for (query_id,) in self.counts])


class FailedRows(QueryIds):
    """The queries with a row whose error replaces what the contract reads of it."""

    def note(self, scored: Scored) -> None:
        for number, row in enumerate(scored.rows):
            if row.error:
                beside = scored.beside[number] if scored.beside else None
                if self.plan.has_failed(scored.queries[number], row, beside.values if beside else ()):
                    self.counts[scored.queries[number].id,] = 1


class OtherQuestions(QueryIds):
    """The queries with a conversation that asks other questions than the golden turns."""

    def note(self, scored: Scored) -> None:
        self.counts.update([(query_id,) for query_id in scored.asked_otherwise])


class PatternIds(Observation[dict[str, Location]]):
    """The forbidden ids that look like patterns and occur nowhere, with the location where each is first forbidden.

    An id that ends in ``/`` is not a pattern if ids of documents end like that, too.
    """

    nothing: ClassVar[dict[str, Any]] = {}

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._patterns = forbidden_patterns(plan.golden.values(), plan.settings.different_documents)
        self.note_ids([sorted(named_in(plan.golden.values()) | plan.wanted_elsewhere)] if self._patterns else [])

    def note(self, scored: Scored) -> None:
        if self._patterns:
            self.note_ids(scored.doc_ids)

    def note_ids(self, lists: Iterable[Sequence[str]]) -> None:
        """Note ids of documents that exist."""
        for doc_ids in lists:
            for doc_id in self._patterns.keys() & set(doc_ids):
                self.counts["seen", doc_id] = 1
            if any(doc_id.endswith(FOLDER) for doc_id in doc_ids):
                self.counts["folders",] = 1

    def result(self) -> dict[str, Location]:
        has_folders = ("folders",) in self.counts
        return {
            doc_id: location
            for doc_id, location in self._patterns.items()
            if ("seen", doc_id) not in self.counts and not (has_folders and is_folder(doc_id))
        }


# A line for each, with the plans of sides that want it. Each side reads the result of ScoreOrder.
OBSERVATIONS: dict[type[Observation[Any]], Callable[[Plan], bool]] = {
    ScoreOrder: lambda _: True,
    Depths: lambda _: True,
    UnknownQueries: lambda _: True,
    Latencies: lambda _: True,
    Versions: lambda _: True,
    FailedRows: lambda _: True,
    RepeatedResults: lambda plan: not plan.is_baseline,
    UnseenIdSearch: lambda plan: not plan.is_baseline,
    PatternIds: lambda plan: any(query.forbidden_doc_ids for query in plan.golden.values()),
    OtherQuestions: lambda plan: plan.turns,
    ScoreGaps: lambda plan: bool(plan.families),
    UnreadChecks: lambda plan: "checks" in plan.needs,
    ClassCounts: lambda plan: not plan.needs.isdisjoint({"mode", "label"}),
}


def observations(plan: Plan) -> list[Observation[Any]]:
    """Return the observations that the plan of a side wants."""
    return [kind(plan) for kind, is_wanted in OBSERVATIONS.items() if is_wanted(plan)]
