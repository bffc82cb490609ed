"""The records of ``rag-contract diff --format json``: how ranks changed since the baseline.

``rag-contract schema diff`` prints their schema.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from ragcontract.files.json_document import document
from ragcontract.reports.drift import changed_versions
from ragcontract.reports.rank_changes import RankChange, Step, rank_changes
from ragcontract.reports.report import MetricReport, Report, RetrievedReport
from ragcontract.reports.report_inputs import Inputs
from ragcontract.runs.stored import Tool


class ChangedQuery(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A query that got better or worse.

    ``change`` is the sum of the differences in reciprocal rank, negative if it is worse; for a query with several rows,
    the change of ``metric``. ``steps`` are the documents whose rank changed, with null for one that was not retrieved.
    ``retrieved`` and ``baseline_retrieved`` are the top k of a broken query, as in ``report.json``.
    """

    id: str
    location: str
    query: str
    change: float
    steps: list[Step]
    metric: str | None = None
    retrieved: list[RetrievedReport] | None = None
    baseline_retrieved: list[RetrievedReport] | None = None


class ChangedVersion(Struct, frozen=True, kw_only=True):
    """The values of a version field in the baseline and in the run."""

    before: str
    now: str


class DiffReport(Struct, frozen=True, kw_only=True):
    """How ranks changed since the baseline: version 1, to which keys are only added.

    ``worse`` has the worst first, ``better`` the best. ``same`` counts the other queries that both sides have; it is
    null if they were not counted. ``new`` and ``changed`` queries cannot be compared, and ``gone`` ones are only in the
    baseline. ``metrics``, ``inputs`` and ``run_notes`` are as in ``report.json``.
    """

    schema_version: Literal[1] = 1
    tool: Tool
    created_at: str
    k: list[int]
    inputs: Inputs
    metrics: dict[str, MetricReport]
    worse: list[ChangedQuery]
    better: list[ChangedQuery]
    same: int | None
    new: list[str]
    changed: list[str]
    gone: list[str]
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
