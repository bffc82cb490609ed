"""The report as JSON, for machines: the record as it is; ``rag-contract schema report`` describes it."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from ragcontract.model import Detail, QueryReport, Report
from ragcontract.reports.json_lines import document


def render(
    report: Report, queries: Iterable[QueryReport] | None = None, detail: Detail | None = None
) -> Iterator[bytes]:
    """Encode the report, indented by two spaces, a query and a failed check a line, UTF-8.

    It lists the ``queries`` of this ``detail``, or its own.
    """
    rows = {"queries": report.queries if queries is None else queries, "failed_checks": report.failed_checks}
    return document(replace(report, detail=detail or report.detail, queries=[], failed_checks=[]), rows)


def render_score(report: Report) -> str:
    """Encode the metrics of one run, overall and by tag."""
    golden = report.inputs.golden
    score = {
        "k": report.k,
        "queries": golden.queries,
        "answerable": golden.answerable,
        "metrics": {key: metric.current for key, metric in report.metrics.items()},
        "tags": {name: {"queries": tag.queries, "metrics": tag.metrics} for name, tag in report.tags.items()},
        "latency": report.latency.current if report.latency else None,
        "repeats": report.repeats,
        "warnings": report.warnings,
    }
    return msgspec.json.format(msgspec.json.encode(score), indent=2).decode() + "\n"
