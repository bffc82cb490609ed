"""What else the HTML page tells: what makes the numbers hard to compare, and, folded, warnings and inputs."""

from collections.abc import Iterable, Sequence

from ragcontract.core.numbers import count, percent
from ragcontract.core.run import SourceFile
from ragcontract.reports.drift import drift
from ragcontract.reports.html.text import MAX_ID, code, fold, sentence, text
from ragcontract.reports.rank_changes import not_compared
from ragcontract.reports.report import BaselineInput, Report
from ragcontract.runs.stored import Accepted


def drift_notes(report: Report) -> str:
    """Write what changed besides the numbers, which is often their cause."""
    notes = "".join(f"<li>{sentence(note)}</li>" for note in drift(report, code))
    return f'<ul class="drift">{notes}</ul>' if notes else ""


def extras(report: Report) -> str:
    """Write what else there is to know, folded: queries not compared, accepted regressions, warnings, inputs."""
    baseline = report.inputs.baseline
    parts = []
    if baseline:
        for name, ids in not_compared(baseline).items():
            parts.append(fold(f"{len(ids):,} {name}", [text(query_id, MAX_ID) for query_id in ids]))
        if baseline.accepted:
            times = len(baseline.accepted)
            title = "The baseline accepted regressions" + (f" {times} times" if times > 1 else "")
            parts.append(fold(title, [_accepted(one) for one in reversed(baseline.accepted)]))
    if report.warnings:
        parts.append(fold(count(len(report.warnings), "warning"), [text(line) for line in report.warnings]))
    parts.append(fold("Inputs", list(_inputs(report))))
    return "".join(parts)


def _accepted(one: Accepted) -> str:
    return f"{code(one.at)} {count(one.failed, 'failed check')}: {text(one.reason)}"


def _inputs(report: Report) -> Iterable[str]:
    inputs, run = report.inputs, report.inputs.run
    yield f"k = {', '.join(map(str, report.k))}"
    yield _source("golden", inputs.golden.files, count(inputs.golden.queries, "query"))
    repeated = [f"{percent(run.duplicate_rate)} of the results repeat a document"] if run.duplicate_rate else []
    missing = [f"{len(run.missing):,} missing"] if run.missing else []
    yield _source("run", run.files, count(run.queries, "query"), *missing, *repeated)
    if inputs.baseline:
        yield _source("baseline", inputs.baseline.files, *_about(inputs.baseline))
    if inputs.config:
        yield _source("config", inputs.config.files, count(len(report.gates), "gate"))


def _about(baseline: BaselineInput) -> Iterable[str]:
    yield count(baseline.queries, "query")
    yield f"{baseline.shared:,} shared"
    if baseline.created_at:
        yield f"made {text(baseline.created_at, MAX_ID)}"


def _source(name: str, files: Sequence[SourceFile], *facts: str) -> str:
    more = f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else ""
    about = f", {', '.join(facts)}"
    digest = f" <small>sha256 {files[0].sha256[:12]}</small>" if files[0].sha256 else ""
    return f"{name}: {text(files[0].path)}{digest}{more}{about}"
