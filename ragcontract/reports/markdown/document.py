"""The report as Markdown for a pull request: verdict and reason first, details folded."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.finding import Finding
from ragcontract.core.numbers import count
from ragcontract.core.phrase import render as say
from ragcontract.core.text import shorten, visible
from ragcontract.reports.broken import FindingsByQuery, broken_queries
from ragcontract.reports.drift import drift
from ragcontract.reports.headline import headline, shared_note
from ragcontract.reports.markdown.folds import folds, inputs_fold, warnings_fold
from ragcontract.reports.markdown.gfm import bullets, code, cut, inline, table, text
from ragcontract.reports.markdown.retrieved import retrieved_fold
from ragcontract.reports.metric_table import Row, table_rows
from ragcontract.reports.repeats_note import repeats_note
from ragcontract.reports.report import ErrorReport, QueryReport, Report

STATUS = {"pass": "✅ pass", "fail": "❌ fail", "waived": "☑️ waived", "none": "-"}
ICONS = {"pass": "✅", "fail": "❌"}
VERDICTS = {"pass": "holds", "fail": "broken"}


class Layout(Struct, frozen=True, kw_only=True):
    """How much of a report to render: rows per table, folded sections, and the inputs, which differ for each run.

    ``retrieved`` is the number of broken queries whose results are listed, in a folded section.
    """

    rows: int = bounds.ROWS
    retrieved: int = bounds.ROWS
    folds: bool = True
    inputs: bool = True


FULL = Layout()


def render(report: Report, *, name: str = "", layout: Layout = FULL, recovered: bool = False) -> str:
    """Render the report; ``name`` is the contract's name, ``recovered`` says that the contract was broken before."""
    verdict = VERDICTS[report.verdict] + (" again" if recovered else "")
    parts = [
        f"### {ICONS[report.verdict]} {_contract(name)} {verdict}: {headline(report, code, inline)}",
        *_drift(report),
        *_metric_table(report, layout.rows),
        *_broken_queries(report, layout.rows),
    ]
    if layout.folds:
        parts += retrieved_fold(report, layout.retrieved)
        parts += folds(report, layout.rows)
    if layout.folds and layout.inputs:
        parts.append(inputs_fold(report))
    return "\n\n".join(parts) + "\n"


def render_error(
    report: ErrorReport,
    *,
    name: str = "",
    advice: str = "Fix the input and run the check again.",
    max_rows: int = bounds.ROWS,
) -> str:
    """Render the report on input that cannot be judged."""
    problems = count(len(report.problems) + report.more_problems, "problem")
    parts = [
        f"### ⚠️ {_contract(name)} could not be judged: {problems}",
        bullets(report.problems, max_rows, report.more_problems),
        *warnings_fold(report.warnings, max_rows),
        f"No verdict was reached. {advice}",
    ]
    return "\n\n".join(parts) + "\n"


def _contract(name: str) -> str:
    return f"Retrieval contract {text(shorten(visible(name), bounds.MARKDOWN_NAME))}" if name else "Retrieval contract"


def _drift(report: Report) -> list[str]:
    notes = list(drift(report, code))
    return ["\n".join(f"- {note}" for note in notes)] if notes else []


def _metric_table(report: Report, max_rows: int) -> list[str]:
    """Show the means over all queries, and of the limited ones of tags the worst."""
    compared = report.inputs.baseline is not None
    shown = table_rows(report)
    tags = sum(row.tag is not None for row in shown)
    body = [_metric_row(row, compared=compared) for row in shown[: len(shown) - max(0, tags - max_rows)]]
    if compared:
        parts = [table(["Metric", "Baseline", "Current", "Change", "Limit", "Status"], "lrrrll", body)]
    else:
        parts = [table(["Metric", "Current", "Limit", "Status"], "lrll", body)]
    if tags > max_rows:
        parts.append(f"… and {count(tags - max_rows, 'more limited mean')} of tags, in `report.json`.")
    return parts + [text(note) for note in (shared_note(report), repeats_note(report)) if note]


def _metric_row(row: Row, *, compared: bool) -> list[str]:
    values = [row.baseline, row.current, row.change] if compared else [row.current]
    return [_label(row), *values, row.limits or "-", STATUS[row.status]]


def _label(row: Row) -> str:
    label = text(shorten(visible(row.label), bounds.MARKDOWN_NAME))
    return label if row.tag is None else f"{label} of {code(row.tag)}"


def _broken_queries(report: Report, max_rows: int) -> list[str]:
    broken = broken_queries(report)
    if not broken:
        return []
    findings = FindingsByQuery(report)
    compared = report.inputs.baseline is not None

    def as_table(queries: Sequence[QueryReport]) -> str:
        body = [cells for query in queries for cells in _query_rows(query, findings, compared=compared)]
        head = ["Query", "Expected", "Found", "Before", "Now"] if compared else ["Query", "Expected", "Found"]
        return table(head, "l" * len(head), body)

    title = f"**{count(len(broken), 'broken query')}**" + (", worst first" if len(broken) > 1 else "")
    return [title, *cut(broken, max_rows, "broken query", as_table)]


def _query_rows(query: QueryReport, findings: FindingsByQuery, *, compared: bool) -> Iterable[list[str]]:
    name = f"{code(query.id)}<br>{text(shorten(visible(query.query), bounds.MARKDOWN_QUESTION))}"
    for finding in findings.failing(query.id):
        cells = [name, say(finding.expected, code, inline), say(finding.found_now or finding.found, code, inline)]
        if compared:
            cells += [_ranks(finding, finding.ranks_before), _ranks(finding, finding.ranks)]
        yield cells
        name = ""


def _ranks(finding: Finding, ranks: Sequence[int | None] | None) -> str:
    if ranks is None:
        return "n/a" if finding.ranks else ""
    return ", ".join(str(rank or "–") for rank in ranks) + (", …" if finding.more_ranks else "")
