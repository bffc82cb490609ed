"""``rag-contract diff --format md``: how ranks changed since the baseline."""

from collections.abc import Iterable

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.reports.drift import changed_versions, likely_mistakes, not_compared
from ragcontract.reports.headline import shared_note
from ragcontract.reports.markdown.folds import moved_table
from ragcontract.reports.markdown.gfm import code, cut, line, table, text
from ragcontract.reports.markdown.retrieved import fold_of
from ragcontract.reports.metric_table import table_rows
from ragcontract.reports.rank_changes import rank_changes
from ragcontract.reports.repeats_note import repeats_note
from ragcontract.reports.report import Report
from ragcontract.reports.terminal import sizes


def render(report: Report) -> str:
    """Render the differences in a report that has a baseline: worse, better, not compared, versions, metrics."""
    moved = rank_changes(report)
    parts = [f"### Since the baseline: {sizes(moved)}"]
    if mistakes := [f"- {mistake}" for mistake in likely_mistakes(report, code, line)]:
        parts.append("\n".join(mistakes))
    for title, group in (("Worse", moved.worse), ("Better", moved.better)):
        if group:
            parts.append(f"**{title}: {count(len(group), 'query')}**")
            parts += cut(group, bounds.ROWS, "query", lambda items: moved_table(report, items), where="")
    broken = [item.query for item in (*moved.worse, *moved.better) if item.query.violations]
    listed = [query for query in broken if query.retrieved is not None]
    parts += fold_of(report, listed[: bounds.ROWS], len(broken))
    parts += [*_not_compared(report), *_versions(report)]
    body = [[text(row.label), row.baseline, row.current, row.change] for row in table_rows(report)]
    parts += [table(["Metric", "Baseline", "Current", "Change"], "lrrr", body)] if body else []
    parts += [text(note) for note in (shared_note(report), repeats_note(report)) if note]
    parts += map(line, report.run_notes)
    return "\n\n".join(parts) + "\n"


def _not_compared(report: Report) -> Iterable[str]:
    baseline = report.inputs.baseline
    for name, ids in (not_compared(baseline) if baseline else {}).items():
        more = [f"{len(ids) - bounds.ROWS:,} more"] if len(ids) > bounds.ROWS else []
        shown = ", ".join([*map(code, ids[: bounds.ROWS]), *more])
        yield f"**{name.capitalize()}: {count(len(ids), 'query')}**: {shown}"


def _versions(report: Report) -> Iterable[str]:
    baseline = report.inputs.baseline
    versions = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    if versions:
        body = [[field.replace("_", " "), code(before), code(now)] for field, (before, now) in versions.items()]
        yield table(["Version", "Before", "Now"], "lll", body)
