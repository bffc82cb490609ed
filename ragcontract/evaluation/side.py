"""Evaluates one side, a run or a baseline, while its rows are read, without holding the whole run in memory."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.numbers import more
from ragcontract.core.rule import Violation
from ragcontract.core.run import Confusion, Latency, QueryScore, SourceFile, Values
from ragcontract.evaluation.listed import Listed
from ragcontract.evaluation.observations import (
    ClassCounts,
    Gaps,
    Latencies,
    OtherQuestions,
    ScoreGaps,
    ScoreOrder,
    UnknownQueries,
    observations,
)
from ragcontract.evaluation.plan import Plan, worst_values
from ragcontract.evaluation.query_scores import Column, ScoreTable, ValuesByQuery
from ragcontract.evaluation.scoring import FirstRows, Observation, R_co, Scored, Scorer
from ragcontract.evaluation.stored import Stored, StoredQueries
from ragcontract.files.problems import Batch, Collector, FileRead, MoreProblems, Problem, Problems, Warned
from ragcontract.runs.baseline_file import StoredBatch, StoredHead
from ragcontract.runs.readers import RunEvent

if TYPE_CHECKING:
    from ragcontract.judgments.check import UsedJudgments


class Rows(Struct, frozen=True, kw_only=True):
    """Which golden queries have rows."""

    missing: tuple[str, ...] = ()  # golden queries without a row
    changed: tuple[str, ...] = ()  # queries for which a baseline has a different question
    without_results: Mapping[str, None] = {}  # queries that name documents, and of which a baseline has no results
    of_queries: Mapping[str, int] = {}  # the rows of each query if any has several and they have no order
    runs: int = 1  # the good runs whose means the values are


class RetrievedIds(Struct, frozen=True, kw_only=True):
    """The document ids of a side, as far as anything needs them."""

    pools: Mapping[str, bytes] = {}  # the judged pools of a baseline's queries, see ragcontract.core.ids
    first_ids: Mapping[str, bytes] = {}  # of a baseline's rows, see ragcontract.core.ids
    doc_ids: Mapping[str, list[list[str]]] = {}  # the document ids of each row, if the plan requests them


class Side(Struct, frozen=True, kw_only=True):
    """The evaluated rows of a run or a baseline."""

    scores: dict[str, QueryScore]  # by query id
    columns: tuple[ValuesByQuery, ...] = ()  # the values of each family except the ranking metrics
    violations: Mapping[str, tuple[Violation, ...]] = {}  # of rules that read the row, by query id
    of_ranks: Mapping[str, tuple[Violation, ...]] = {}  # of rules about ranks, by query id; of a run
    rows: Rows = Rows()
    observations: Mapping[type, Any] = {}  # the result of each observation that was wanted, by its class
    ids: RetrievedIds = RetrievedIds()
    listed: Listed = Listed()  # what the queries retrieved and said that the run breaks
    stored: Stored | None = None  # None if the rows are those of a run
    files: tuple[SourceFile, ...] = ()
    judged: "UsedJudgments | None" = None  # the judgments that its rows used
    problems: Problems = Problems()

    def observed(self, kind: type[Observation[R_co]]) -> R_co:
        """Return the result of an observation, also if nothing wanted it."""
        result: R_co = self.observations.get(kind, kind.nothing)
        return result

    @property
    def latency(self) -> Latency | None:
        return self.observed(Latencies).latency

    @property
    def labels(self) -> Confusion:
        return self.observed(ClassCounts).labels

    @property
    def labels_of_queries(self) -> Mapping[str, Confusion]:
        return self.observed(ClassCounts).of_queries

    @property
    def name(self) -> str:
        """The path of the first file, and the number of further files."""
        first = self.files[0].path if self.files else "the run"
        return first + more(len(self.files), 1, "file", " (and {})")

    def values(self, family: int, query_ids: Iterable[str]) -> list[Values | None]:
        """Return the queries' values of a family; None for a query without scores. Family 0 is the ranking metrics."""
        scores = self.scores
        if family > len(self.columns):  # a baseline has no overlap with itself
            return [None for _ in query_ids]
        if family:
            return self.columns[family - 1].of(query_ids, scores)
        return [score.values if (score := scores.get(query_id)) else None for query_id in query_ids]

    def values_of_rows(self, family: int, query_id: str) -> Sequence[Values]:
        if family:
            return self.columns[family - 1].rows(query_id)
        score = self.scores[query_id]
        return [repeat.values for repeat in score.repeats] or [score.values]

    @property
    def queries(self) -> int:
        """How many queries the side has rows for, golden or not."""
        missing, unknown = self.rows.missing, self.observed(UnknownQueries)
        absent = len(missing) if missing and missing[0] in self.scores else 0  # scored without a row
        return len(self.scores) - absent + len(self.rows.changed) + len(unknown.listed) + unknown.more


def evaluate_side(plan: Plan, events: Iterable[RunEvent]) -> Side:
    """Return the side that results from the events; its ``problems`` contain everything wrong with the rows."""
    scorer = Scorer(plan, Collector(), None if plan.repeats else FirstRows())
    table, stored, counted = ScoreTable(plan), StoredQueries(plan), observations(plan)
    files: list[SourceFile] = []
    for event in events:
        batches: Iterable[Scored] = ()
        match event:
            case Batch():
                batches = scorer.rows(event)
            case StoredBatch():
                batches = [stored.scored(event, scorer, table)]
            case StoredHead():
                stored.begin(event)
            case FileRead(file=file):
                files.append(file)
            case Warned(beside=text) if text and is_reference(plan, text):
                pass  # such a field has the wanted answer, not a second one
            case Problem() | MoreProblems() | Warned():
                scorer.problems.add(event)
        for scored in batches:
            table.note(scored)
            for observation in counted:
                observation.note(scored)
    return side_of(plan, table, counted, scorer.problems, files=files, stored=stored)


def is_reference(plan: Plan, text: str) -> bool:
    """Return whether a text is the wanted answer of a golden query."""
    return any(query.answer is not None and query.answer.reference == text for query in plan.golden.values())


def side_of(
    plan: Plan,
    table: ScoreTable,
    counted: Iterable[Observation[Any]],
    problems: Collector,
    *,
    files: Sequence[SourceFile],
    stored: StoredQueries | None = None,
    results: Mapping[type, Any] = {},
) -> Side:
    """Return the side of which all rows are in the table and in the observations, unless their ``results`` are known.

    ``problems`` are those of the rows. A run is scored for each golden query, whether or not it has a row.
    """
    stored = stored or StoredQueries(plan)
    kinds = {type(observation): observation for observation in counted}
    asked_otherwise = kinds[OtherQuestions].result() if plan.is_baseline and OtherQuestions in kinds else ()
    changed = dict.fromkeys((*stored.changed, *asked_otherwise))
    missing = table.finish(changed)
    for observation in kinds.values() if not plan.is_baseline else ():
        observation.note_missing(missing)
    record, known = stored.finish()
    results = {kind: observation.result() for kind, observation in kinds.items()} | known | dict(results)
    if ScoreGaps in results:
        results[ScoreGaps] = with_worst_values(plan, table.columns, results[ScoreGaps])
    if warning := results[ScoreOrder].warning:
        problems.warning(warning)
    first_ids = table.first_ids.result()
    pools = first_ids | stored.pools if stored.pools else first_ids
    return Side(
        scores=table.scores,
        columns=(*table.columns, *table.diagnostics),
        violations=table.violations,
        of_ranks=table.of_ranks,
        rows=Rows(
            missing=tuple([query.id for query in missing]),
            changed=tuple(changed),
            without_results=stored.without_results,
            of_queries=table.unordered_rows if max(table.unordered_rows.values(), default=1) > 1 else {},
            runs=stored.head.runs if stored.head else 1,
        ),
        observations=results,
        ids=RetrievedIds(pools=pools, first_ids=first_ids, doc_ids=table.doc_ids),
        listed=Listed(retrieved=table.listed.held, said=table.listed.said),
        stored=record,
        files=tuple(files),
        judged=table.judged.result() if table.judged else None,
        problems=problems.collected(),
    )


def with_worst_values(plan: Plan, columns: Sequence[Column], gaps: Gaps) -> Gaps:
    """Give queries that lack a score in any row the worst value, or none in a baseline; return the gaps to report.

    Otherwise, the mean of their other rows would pass for the score. Of a baseline, only metrics that need
    judgments are returned, because a limit on their change leaves no query out.
    """
    for family, column in zip(plan.families, columns, strict=True):
        values = () if plan.is_baseline else worst_values(family.metrics)
        for query_id in {query_id for metric in family.metrics for query_id in gaps.lacking.get(metric.key, ())}:
            column.replace(query_id, values)
    if not plan.is_baseline:
        return gaps
    judged = {metric.key for family in plan.families for metric in family.metrics if metric.task}
    return replace(gaps, lacking={key: query_ids for key, query_ids in gaps.lacking.items() if key in judged})
