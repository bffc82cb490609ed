"""The metrics in the Markdown report: those with a limit in the open, the others folded."""

from collections.abc import Sequence

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import clipped
from ragcontract.reports.headline import shared_note
from ragcontract.reports.markdown.gfm import code, fold, line, table, text
from ragcontract.reports.metric_table import Row, table_rows
from ragcontract.reports.repeats_note import repeats_note
from ragcontract.reports.report import Report

STATUS = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "unproven": "⚠️ over, not proven",
    "too_few": "⚠️ over, too few changed",
    "waived": "☑️ waived",
    "skipped": "⏭️ skipped",
    "none": "no limit",
}


def metric_tables(report: Report, max_rows: int, *, folds: bool = True) -> list[str]:
    """Return the table of what is limited, of tags the worst, and the other metrics folded.

    The tables are narrow, because a phone cuts off the last columns: values and limits share one. If nothing is
    limited, all metrics are in the open. Without ``folds``, metrics without a limit are left out.
    """
    rows = table_rows(report)
    limited = [row for row in rows if row.gates]
    others = [row for row in rows if not row.gates]
    tags = sum(row.tag is not None for row in limited)
    shown = limited[: len(limited) - max(0, tags - max_rows)]
    values = "Baseline → current" if report.inputs.baseline else "Current"
    parts = []
    if shown:
        body = [[_label(row), STATUS[row.status], f"{row.values()}<br>{row.limits}"] for row in shown]
        parts.append(table(["Metric", "Status", f"{values}, and limit"], "lll", body))
    if tags > max_rows:
        parts.append(f"… and {count(tags - max_rows, 'more limited mean')} of tags, in `report.json`.")
    if others and not limited:
        parts.append(_plain(others, values))
    parts += [text(note) for note in (shared_note(report), repeats_note(report)) if note]
    parts += map(line, report.run_notes)
    if limited and others and folds:
        parts.append(fold(f"{count(len(others), 'metric')} without a limit", _plain(others, values)))
    return parts


def _plain(rows: Sequence[Row], values: str) -> str:
    return table(["Metric", values], "ll", [[_label(row), row.values()] for row in rows])


def _label(row: Row) -> str:
    label = text(clipped(row.label, bounds.MARKDOWN_NAME))
    over = "".join(f", {more}" for more in (row.over, row.direction) if more)
    return (label if row.tag is None else f"{label} of {code(row.tag)}") + over
