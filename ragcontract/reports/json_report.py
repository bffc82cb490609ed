"""The report as JSON, for machines: the record as it is; ``rag-contract schema report`` describes it."""

import msgspec

from ragcontract.model import Report


def render(report: Report) -> bytes:
    """Encode the report, indented by two spaces, UTF-8."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


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
