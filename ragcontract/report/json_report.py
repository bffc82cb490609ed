"""The report as JSON; ``rag-contract schema report`` prints its schema."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from ragcontract.files.writing import document
from ragcontract.report.formats import Reported
from ragcontract.report.record import Detail, ErrorReport, QueryReport, Report


def render(report: Report, queries: Iterable[QueryReport], detail: Detail) -> Iterator[bytes]:
    """Encode the report with these queries as UTF-8: indented by two spaces, long lists with one item per line."""
    lists = {"queries": queries, "failed_checks": report.failed_checks, "findings": report.findings}
    return document(replace(report, detail=detail, queries=[], failed_checks=[], findings=[]), lists)


def render_error(report: ErrorReport) -> bytes:
    """Encode the report on input that cannot be judged, as UTF-8."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def file_of(outcome: Reported) -> Iterator[bytes]:
    """Encode the report of a check, with the queries that it lists."""
    return render(outcome.report, outcome.queries(), outcome.detail)


file_of_error = render_error


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
