"""The report as JSON, for machines: the record as it is; ``rag-contract schema report`` describes it."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from ragcontract.files.json_document import document
from ragcontract.model import Report
from ragcontract.reports.build import Checked


def render(checked: Checked) -> Iterator[bytes]:
    """Encode the report, indented by two spaces, a query and a failed check a line, UTF-8."""
    report = checked.report
    rows = {"queries": checked.queries(), "failed_checks": report.failed_checks}
    return document(replace(report, detail=checked.detail, queries=[], failed_checks=[]), rows)


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
