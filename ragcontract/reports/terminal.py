"""Text for a terminal. Colours are ANSI codes, which the writer takes out where the output is no terminal."""

from collections.abc import Iterable, Sequence

import click

from ragcontract.model import QueryReport, Report
from ragcontract.numbers import count, fixed
from ragcontract.reports.findings import findings
from ragcontract.reports.movement import Moved, broken_queries, changed_versions, movement, not_compared, rank
from ragcontract.reports.summary import headline, rows, shared_note
from ragcontract.text import shorten, visible

WORDS = {"pass": "PASS", "fail": "FAIL", "none": "-"}
COLOURS = {"PASS": "green", "FAIL": "red"}


def check_text(report: Report) -> str:
    """Render a check: every broken query, the metric table, the verdict."""
    k = max(report.k)
    parts = [_broken(query, k) for query in broken_queries(report)]
    parts.append("\n".join(_metric_table(report)))
    verdict = WORDS[report.verdict]
    parts.append(f"{_coloured(verdict)}  {headline(report)}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _broken(query: QueryReport, k: int) -> str:
    lines = [f"{_coloured('FAIL')} {click.style(visible(query.id), bold=True)}"]
    for finding in findings(query, k):
        lines += [f"  Expected {finding.expected(visible)}", f"  Found: {finding.found(visible)}"]
    return "\n".join(lines)


def _metric_table(report: Report, *, judged: bool = True) -> Iterable[str]:
    has_baseline = report.inputs.baseline is not None
    cells = []
    for row in rows(report):
        verdict = [WORDS[row.status], row.limits] if judged else []
        values = [f"{row.baseline} -> {row.current}", row.change] if has_baseline else [row.current]
        cells.append([row.label, *values, *verdict])
    yield from aligned(cells)
    if note := shared_note(report):
        yield note


def aligned(cells: Sequence[Sequence[str]]) -> Iterable[str]:
    """Lay out rows of text in columns, two spaces between them."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = "  ".join(_coloured(cell) + " " * (width - len(cell)) for cell, width in zip(row, widths, strict=True))
        yield line.rstrip()


def _coloured(word: str) -> str:
    colour = COLOURS.get(word)
    return click.style(word, fg=colour, bold=True) if colour else word


def diff_text(report: Report) -> str:
    """Render how ranks moved, worst first."""
    baseline = report.inputs.baseline
    if baseline is None:
        return ""
    moved = movement(report.queries)
    parts = []
    for title, group in (("Worse", moved.worse), ("Better", moved.better)):
        if group:
            parts.append("\n".join([f"{title} ({len(group)})", *(_moved(item) for item in group)]))
    for name, ids in not_compared(baseline).items():
        parts.append("\n".join([f"{name.capitalize()} ({len(ids)})", *(f"  {visible(query_id)}" for query_id in ids)]))
    versions = changed_versions(report.inputs.run.versions, baseline.versions)
    if versions:
        lines = [f"  {field}: {visible(old)} -> {visible(new)}" for field, (old, new) in versions.items()]
        parts.append("\n".join(["Versions that changed", *lines]))
    parts.append("\n".join(_metric_table(report, judged=False)))
    parts.append(f"{len(moved.worse)} worse, {len(moved.better)} better, {moved.even} the same")
    return "\n\n".join(parts) + "\n"


def _moved(item: Moved) -> str:
    steps = [
        f"    {visible(step.doc_id)}{' (forbidden)' if step.forbidden else ''}: {rank(step.before)} -> {rank(step.now)}"
        for step in item.steps
    ]
    title = f"  {click.style(visible(item.query.id), bold=True)}  {shorten(visible(item.query.query), 80)}"
    return "\n".join([title, *steps])


def score_text(report: Report) -> str:
    """Render the metrics of one run, overall and by tag."""
    labels = [metric.label for metric in report.metrics.values()]
    cells = [["", "queries", *labels]]
    overall = [fixed(metric.current, 4) for metric in report.metrics.values()]
    cells.append(["all", str(len(report.queries)), *overall])
    for tag, numbers in report.tags.items():
        cells.append([visible(tag), str(numbers.queries), *(fixed(value, 4) for value in numbers.metrics.values())])
    golden = report.inputs.golden
    text = "\n".join(aligned(cells)) + "\n"
    unanswerable = golden.queries - golden.answerable
    if unanswerable:
        verb = "is" if unanswerable == 1 else "are"
        text += f"\n{count(unanswerable, 'query')} without relevant documents {verb} left out of the means.\n"
    return text
