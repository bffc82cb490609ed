"""Scores the rows of one side batch by batch, and collects what is wrong with them.

Run rows, the queries of a stored baseline and the rows that a worker of a cluster reads all become :class:`Scored`,
which observations count.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import EVERYTHING, NOTHING, as_id, as_ids, lists_as_ids, packed_firsts
from ragcontract.core.metric import Invalid
from ragcontract.core.phrase import Location, Message, Name, parts_of
from ragcontract.core.run import QueryScore, RunRow, Values, lacks_results
from ragcontract.evaluation.forbidden_forms import ForbiddenForms
from ragcontract.evaluation.plan import BesideRanks, Plan, asks_otherwise
from ragcontract.files.problems import Batch, Collector
from ragcontract.files.rows import Places
from ragcontract.files.schema import Mismatch, shown
from ragcontract.runs.baseline_file import StoredBatch

Key: TypeAlias = tuple[Any, ...]  # of texts, numbers and None
R_co = TypeVar("R_co", covariant=True)


class Scored(Struct, frozen=True, kw_only=True, gc=False):
    """The rows of one batch that belong to golden queries, as parallel lists, and what is known of its other rows."""

    batch: Batch[RunRow] | StoredBatch  # as it was read
    queries: Sequence[GoldenQuery] = ()
    rows: Sequence[RunRow] = ()  # none for a stored baseline
    doc_ids: Sequence[list[str]] = ()
    scores: Sequence[QueryScore] = ()
    first_ids: Sequence[bytes] = ()  # the packed first ids of each row of a baseline
    overlaps: Sequence[Values] = ()  # with the baseline; empty values without a row of the baseline
    beside: Sequence[BesideRanks | None] = ()  # None for an invalid row; no items if the contract reads only ids
    unknown: Sequence[str] = ()  # the query ids of rows without a golden query
    may_repeat: bool = True  # false if each query is known to have only this row on its side
    asked_otherwise: Sequence[str] = ()  # queries with a conversation that asks other questions than the golden turns


class Observation(Generic[R_co]):
    """Something that is counted while rows are scored.

    ``counts`` says how often each key occurred, so the counts of the parts of a side add up. A cluster yields them
    sorted by their keys, not in the order of the rows. An observation that reads more than the plan and the counts for
    its result sets ``on_cluster`` to False.
    """

    # Whether the workers of a cluster count, and the driver gets all counts. If not, there are too many of them, or
    # rows are compared that no worker has together.
    on_cluster: ClassVar[bool] = True
    nothing: ClassVar[Any] = None  # the result if no row is counted

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.counts: Counter[Key] = Counter()

    def note(self, scored: Scored) -> None:
        """Count the rows of a batch."""
        raise NotImplementedError

    def note_missing(self, queries: Sequence[GoldenQuery]) -> None:
        """Count the golden queries that have no row, once all rows are counted."""

    def of(self, kind: str) -> dict[Any, int]:
        """Return the counts by the second part of keys, of those whose first part is this kind."""
        return {key[1]: rows for key, rows in self.counts.items() if key[0] == kind}

    def merge(self, counts: Mapping[Key, int]) -> None:
        """Add the counts of a part of the side."""
        self.counts.update(counts)

    def result(self) -> R_co:
        """Return what was counted, in the form in which the side has it."""
        raise NotImplementedError


def location_of(batch: Batch[RunRow], index: int) -> Location:
    """Return the location of a row, such as ``run.jsonl:17``; of a run in memory, path and query."""
    if batch.line:
        return batch.location(index)
    return Location(f"{batch.path}: query {shown(batch.rows[index].query_id)}")


def without_results(query: GoldenQuery) -> Mismatch:
    """Return the fault of a row that lacks results although its query names documents."""
    what = f"is missing, and query {shown(query.id)} names documents"
    return Mismatch(("results",), f"{what}; export what was retrieved, [] where nothing was")


class FirstRows:
    """The places of the first rows of queries, which messages about second rows name."""

    def __init__(self) -> None:
        self._places = Places()
        self._rows: dict[str, int] = {}

    def note(self, batch: Batch[RunRow], numbers: Sequence[int], query_ids: Sequence[str]) -> bool:
        """Note rows of a batch by their numbers; return False and note none if any is not the first of its query."""
        if len(set(query_ids)) < len(query_ids) or not self._rows.keys().isdisjoint(query_ids):
            return False
        first = self._places.at(batch.path, batch.line)
        self._rows.update(zip(query_ids, [first + number for number in numbers], strict=True))
        return True

    def location(self, query_id: str) -> Location:
        return self._places.location(self._rows[query_id])


class Scorer:
    """Scores the batches of one side. ``problems`` gets everything that is wrong with its rows.

    Without ``first_rows``, a query may have several rows: because the contract says so, or because a worker of a
    cluster does not know the rows of the others.
    """

    def __init__(self, plan: Plan, problems: Collector, first_rows: FirstRows | None = None) -> None:
        self.problems = problems
        self._plan = plan
        self._first_rows = first_rows
        self._forbidden_forms = ForbiddenForms.of(plan)
        self._reads_rows = bool(plan.families or plan.row_rules)

    def rows(self, batch: Batch[RunRow]) -> Iterator[Scored]:
        """Yield the scored rows of a batch: together, or one by one if a row lacks results or is a query's second one.

        So problems come in the order of the rows.
        """
        query_ids = as_ids([row.query_id for row in batch.rows])
        wanted = [*map(self._plan.golden.get, query_ids)]
        numbers = [number for number, query in enumerate(wanted) if query is not None]
        queries = [query for query in wanted if query is not None]
        has_faults = not self._plan.results_required and any(
            query.needs_results and lacks_results(batch.rows[number])
            for number, query in zip(numbers, queries, strict=True)
        )
        if not has_faults and self._first_rows:
            # The golden queries' own ids are noted, so that those of the rows can be freed.
            has_faults = not self._first_rows.note(batch, numbers, [query.id for query in queries])
        if not has_faults:
            unknown = [query_ids[number] for number, query in enumerate(wanted) if query is None]
            yield self._scored(batch, numbers, queries, unknown)
        elif len(batch.rows) == 1:
            self._refuse_row(batch, queries[0])
            yield Scored(batch=batch)
        else:
            for number, row in enumerate(batch.rows):
                yield from self.rows(Batch(batch.path, batch.line and batch.line + number, [row]))

    def _refuse_row(self, batch: Batch[RunRow], query: GoldenQuery) -> None:
        """Report what is wrong with the only row of a batch."""
        location = location_of(batch, 0)
        if self._first_rows and not self._first_rows.note(batch, [0], [query.id]):
            self.problems.problem(
                location.at("query_id"),
                f"duplicate id {query.id!r}, first defined at {self._first_rows.location(query.id)} "
                "(several rows per query are averaged with --repeats)",
            )
        else:
            self.problems.mismatch(location, without_results(query))

    def _scored(
        self, batch: Batch[RunRow], numbers: list[int], queries: list[GoldenQuery], unknown: Sequence[str]
    ) -> Scored:
        asked_otherwise: list[str] = []
        if self._plan.turns:
            pairs = [*zip(numbers, queries, strict=True)]
            others = {number: query.id for number, query in pairs if asks_otherwise(query, batch.rows[number])}
            asked_otherwise = [*others.values()]
            if self._plan.is_baseline:  # they are not compared
                numbers = [number for number in numbers if number not in others]
                queries = [query for number, query in pairs if number not in others]
        rows = batch.rows if len(numbers) == len(batch.rows) else [batch.rows[number] for number in numbers]
        doc_ids = lists_as_ids([[result.doc_id for result in row.results] for row in rows])
        beside = self._beside_ranks(batch, numbers, queries, doc_ids)
        ranked = self.ranked(batch, queries, doc_ids)
        return replace(
            ranked,
            rows=rows,
            beside=beside,
            unknown=unknown,
            may_repeat=self._first_rows is None,
            asked_otherwise=asked_otherwise,
        )

    def ranked(
        self,
        batch: Batch[RunRow] | StoredBatch,
        queries: Sequence[GoldenQuery],
        doc_ids: Sequence[list[str]],
        own_pools: Mapping[str, bytes] = {},
    ) -> Scored:
        """Return the scores of document ids.

        The first ids of a baseline's row are judged, unless the baseline has a pool of its own for the query. So is
        all that a row of the run returns first if the baseline returned the same.
        """
        plan, ranking = self._plan, self._plan.ranking
        if not (plan.is_baseline or plan.first_ids):
            scores = [*map(ranking.score, queries, doc_ids)]
            return Scored(batch=batch, queries=queries, doc_ids=doc_ids, scores=scores)
        query_ids = [query.id for query in queries]
        first_ids = packed_firsts(doc_ids, plan.k, by_document=ranking.by_document)
        overlaps: list[Values] = []
        pools: list[bytes | None] = [EVERYTHING] * len(queries)
        if not plan.is_baseline:
            before = [*map(plan.first_ids.get, query_ids)]
            others = [number for number, now in enumerate(first_ids) if now != before[number] or now == NOTHING]
            if plan.pools is not plan.first_ids:
                pools = [*map(plan.pools.get, query_ids)]
            for number in others:
                pools[number] = plan.pools.get(query_ids[number])
            if plan.overlap:
                overlaps = [plan.overlap.same] * len(queries)
                for number in others:
                    then = before[number]
                    overlaps[number] = () if then is None else plan.overlap.against(doc_ids[number], then)
        elif own_pools:
            pools = [own_pools.get(query_id, EVERYTHING) for query_id in query_ids]
        return Scored(
            batch=batch,
            queries=queries,
            doc_ids=doc_ids,
            scores=[*map(ranking.score, queries, doc_ids, pools)],
            first_ids=first_ids if plan.is_baseline else (),
            overlaps=overlaps,
        )

    def _beside_ranks(
        self,
        batch: Batch[RunRow],
        numbers: Sequence[int],
        queries: Sequence[GoldenQuery],
        doc_ids: Sequence[list[str]],
    ) -> list[BesideRanks | None]:
        """Return the outcomes of rows but for their ranks; none if the contract reads only ids of documents."""
        forms, outcomes = self._forbidden_forms, list[BesideRanks | None]()
        for at, query in enumerate(queries) if forms or self._reads_rows else ():
            if forms and query.forbidden_doc_ids:
                row = batch.rows[numbers[at]]
                for fault in (*forms.unknown(query, row), *forms.faults(query, doc_ids[at])):
                    self.problems.mismatch(location_of(batch, numbers[at]), fault)
            if self._reads_rows:
                outcome = self._plan.beside_ranks(query, batch.rows[numbers[at]])
                if isinstance(outcome, list):
                    self._refuse(batch, numbers[at], outcome)
                outcomes.append(None if isinstance(outcome, list) else outcome)
        return outcomes

    def _refuse(self, batch: Batch[RunRow], number: int, faults: Iterable[Invalid]) -> None:
        name = f"query {shown(as_id(batch.rows[number].query_id))} "
        for fault in faults:
            if fault.field:
                self.problems.problem(location_of(batch, number).at(fault.field), fault.why)
            else:  # the message names the query
                location = batch.location(number) if batch.line else Location(batch.path)
                self.problems.problem(location, Message.quoting(Name(name), *parts_of(fault.why)))
