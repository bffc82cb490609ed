"""How ranks changed since the baseline: computed, side by side, and as the output of ``diff --format json``.

``rag-contract schema diff`` prints the schema of that output.
"""

from collections.abc import Container, Iterable, Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import SAME
from ragcontract.core.run import RanksById
from ragcontract.files.writing import document
from ragcontract.report.headline import changed_versions
from ragcontract.report.metric_table import at_largest_k
from ragcontract.report.parts import Inputs
from ragcontract.report.queries import broken_queries, not_failing_queries
from ragcontract.report.record import MetricReport, QueryReport, Report, RetrievedReport
from ragcontract.runs.baseline_file import Tool


class Step(Struct, frozen=True, kw_only=True):
    """A document whose rank changed: its rank before and now, None if it was not retrieved."""

    doc_id: str
    before: int | None
    now: int | None
    forbidden: bool = False


class RankChange(Struct, frozen=True, kw_only=True):
    """A query whose ranks changed.

    The change is the sum of differences in reciprocal rank, positive for relevant documents that rose and for
    forbidden documents that fell. For a query with several rows, it is the change of a metric, because worst ranks
    over different numbers of rows cannot be compared. The steps are then between worst ranks.
    """

    query: QueryReport
    change: float  # negative if worse
    steps: list[Step]
    metric: str | None = None  # the key of the metric that changed, for a query with several rows


class RankChanges(Struct, frozen=True, kw_only=True):
    """The queries that both sides have, by how they changed."""

    worse: list[RankChange]  # the worst first
    better: list[RankChange]  # the best first
    # How many are neither, as nothing changed or documents swapped ranks; None if only broken queries are listed.
    even: int | None


def rank_changes(report: Report) -> RankChanges:
    """Return the queries of a report that got worse or better since the baseline."""
    worse: list[RankChange] = []
    better: list[RankChange] = []
    keys = frozenset(at_largest_k(report))
    for query in report.queries:
        if query.baseline_ranks is None:
            continue
        metric = _metric_that_differs(query, keys) if query.repeated else None
        forbidden = query.baseline_forbidden_ranks or {}, query.forbidden_ranks
        steps = [*_steps(query.baseline_ranks, query.ranks), *_steps(*forbidden, forbidden=True)]
        change = sum(map(_gain, steps))
        if query.repeated:
            change = _delta(query, metric) * (1 if metric and report.metrics[metric].better == "higher" else -1)
        if abs(change) > SAME:
            (better if change > 0 else worse).append(RankChange(query=query, change=change, steps=steps, metric=metric))
    worse.sort(key=lambda item: item.change)
    better.sort(key=lambda item: -item.change)
    shared = report.inputs.baseline.shared if report.inputs.baseline else 0
    even = None if report.detail == "failed" else max(shared - len(worse) - len(better), 0)
    return RankChanges(worse=worse, better=better, even=even)


def _metric_that_differs(query: QueryReport, keys: Container[str]) -> str | None:
    """Return the first of these metrics in which both sides differ."""
    return next((key for key in query.metrics if key in keys and abs(_delta(query, key)) > SAME), None)


def _delta(query: QueryReport, key: str | None) -> float:
    now = query.metrics.get(key) if key else None
    before = (query.baseline_metrics or {}).get(key) if key else None
    return 0.0 if now is None or before is None else now - before


def _steps(before: RanksById, now: RanksById, *, forbidden: bool = False) -> list[Step]:
    if before == now:
        return []
    return [
        Step(doc_id=doc_id, before=before.get(doc_id), now=now.get(doc_id), forbidden=forbidden)
        for doc_id in {**before, **now}
        if before.get(doc_id) != now.get(doc_id)
    ]


def _gain(step: Step) -> float:
    gain = (1 / step.now if step.now else 0.0) - (1 / step.before if step.before else 0.0)
    return -gain if step.forbidden else gain


def rank(number: int | None) -> str:
    """Format a rank; None is ``missing``."""
    return "missing" if number is None else f"{number:,}"  # with commas, no number of a report is a commit


def listed_queries(report: Report) -> list[QueryReport]:
    """Return the queries whose results are listed: broken ones, worst first, then those that do not fail."""
    return [query for query in (*broken_queries(report), *not_failing_queries(report)) if query.retrieved is not None]


def top(report: Report) -> str:
    """Return how far the lists go: ``top 5``, or ``first 20 of the top 50``."""
    k = max(report.k)
    return f"top {k}" if k <= bounds.RETRIEVED else f"first {bounds.RETRIEVED} of the top {k}"


def about(result: RetrievedReport) -> list[str]:
    """Return the chunk and the score of a result, as far as they are known; control characters are not escaped."""
    chunk = [] if result.chunk_id is None or result.chunk_id == result.doc_id else [result.chunk_id]
    return [*chunk, *([] if result.score is None else [f"{result.score:.4g}"])]


class ChangedQuery(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A query that got better or worse."""

    id: str
    location: str
    query: str
    change: Annotated[
        float,
        Meta(
            description="The sum of the differences in reciprocal rank or, for a query with several rows, the change "
            "of the metric; negative if it is worse."
        ),
    ]
    steps: Annotated[
        list[Step], Meta(description="The documents whose rank changed; a rank is null if one was not retrieved.")
    ]
    metric: str | None = None
    retrieved: Annotated[
        list[RetrievedReport] | None, Meta(description="The top k of a broken query, as in report.json.")
    ] = None
    baseline_retrieved: list[RetrievedReport] | None = None


class ChangedVersion(Struct, frozen=True, kw_only=True):
    """The values of a version field in the baseline and in the run."""

    before: str
    now: str


class DiffReport(Struct, frozen=True, kw_only=True):
    """How ranks changed since the baseline: version 1, to which keys are only added.

    ``metrics``, ``inputs`` and ``run_notes`` are as in ``report.json``.
    """

    schema_version: Literal[1] = 1
    tool: Tool
    created_at: str
    k: list[int]
    inputs: Inputs
    metrics: dict[str, MetricReport]
    worse: Annotated[list[ChangedQuery], Meta(description="The worst first.")]
    better: Annotated[list[ChangedQuery], Meta(description="The best first.")]
    same: Annotated[
        int | None, Meta(description="How many other queries both sides have; null if they were not counted.")
    ]
    new: Annotated[list[str], Meta(description="Queries that the baseline does not have.")]
    changed: Annotated[list[str], Meta(description="Queries with another question, which cannot be compared.")]
    gone: Annotated[list[str], Meta(description="Queries that only the baseline has.")]
    versions: dict[str, ChangedVersion]
    warnings: list[str]
    run_notes: list[str] = []


def diff_report(report: Report) -> DiffReport:
    """Return the differences in a report that has a baseline."""
    moved, baseline = rank_changes(report), report.inputs.baseline
    versions = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    return DiffReport(
        tool=report.tool,
        created_at=report.created_at,
        k=report.k,
        inputs=report.inputs,
        metrics=report.metrics,
        worse=list(_changed(moved.worse)),
        better=list(_changed(moved.better)),
        same=moved.even,
        new=baseline.new if baseline else [],
        changed=baseline.changed if baseline else [],
        gone=baseline.gone if baseline else [],
        versions={field: ChangedVersion(before=before, now=now) for field, (before, now) in versions.items()},
        warnings=report.warnings,
        run_notes=report.run_notes,
    )


def _changed(group: Iterable[RankChange]) -> Iterator[ChangedQuery]:
    for item in group:
        query = item.query
        yield ChangedQuery(
            id=query.id,
            location=query.location,
            query=query.query,
            change=item.change,
            steps=item.steps,
            metric=item.metric,
            retrieved=query.retrieved,
            baseline_retrieved=query.baseline_retrieved,
        )


def render(report: Report) -> str:
    """Encode the differences as JSON, one query per line."""
    made = diff_report(report)
    return b"".join(document(made, {"worse": made.worse, "better": made.better})).decode()
