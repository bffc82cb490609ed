"""Comparisons as Markdown: of several runs (``compare --format md``), with the baseline (``diff --format md``)."""

from collections.abc import Iterable, Iterator

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.phrase import render
from ragcontract.core.safe_text import clipped
from ragcontract.report import comparison
from ragcontract.report.comparison import RunComparison
from ragcontract.report.headline import changed_versions, not_compared, shared_note
from ragcontract.report.markdown.folds import moved_table
from ragcontract.report.markdown.gfm import breaking_code, code, cut, first_of, inline, line, table, text
from ragcontract.report.markdown.query_tables import fold_of
from ragcontract.report.metric_table import table_rows
from ragcontract.report.notes import repeats_note
from ragcontract.report.rank_changes import rank_changes
from ragcontract.report.record import Report
from ragcontract.report.terminal import sizes

BELOW = "<br>"


def render_comparison(made: RunComparison) -> str:
    """Render the means of all runs, and where the runs disagree."""
    tag = "" if made.tag is None else f", tag {code(made.tag)}"
    rest = comparison.rest(made)
    parts = [
        f"### {comparison.title(made)}{tag}",
        f"Changes are since {code(comparison.labels(made)[0])}.",
        "Below a mean or a change is its interval, then how many queries are better / the same / worse.",
        *_means(made),
        *_notes(made),
        comparison.METHOD,
        f"**{comparison.disagreements_title(made)}**",
    ]
    if made.disagreements:
        parts += ["The ranks of their relevant documents:", _disagreements(made)]
    return "\n\n".join([*parts, *([rest] if rest else [])]) + "\n"


def _notes(made: RunComparison) -> list[str]:
    items = [f"- {code(name)}: {inline(note)}" for name, note in comparison.notes(made)]
    return ["\n".join(items)] if items else []


def _means(made: RunComparison) -> Iterator[str]:
    """Yield a table for each metric, because one for all of them would be too wide for a phone."""
    for means in comparison.mean_tables(made):
        body = [
            [
                breaking_code(label),
                BELOW.join(filter(None, [row.mean, row.interval])),
                BELOW.join(filter(None, [row.change, row.change_interval, row.counts])),
            ]
            for label, row in zip(comparison.labels(made), means.rows, strict=True)
        ]
        yield table([text(clipped(means.metric.label, bounds.MARKDOWN_NAME)), "Mean", "Change"], "lrr", body)


def _disagreements(made: RunComparison) -> str:
    head = ["Query", *map(breaking_code, comparison.labels(made))]
    body = []
    for item in made.disagreements:
        question = text(comparison.question(item, bounds.MARKDOWN_QUESTION))
        body.append([f"{breaking_code(item.id)}{BELOW}{question}", *map(comparison.ranks, item.ranks)])
    return table(head, "l" * len(head), body)


def render_diff(report: Report) -> str:
    """Render the differences in a report that has a baseline: worse, better, not compared, versions, metrics."""
    moved = rank_changes(report)
    parts = [f"### Since the baseline: {sizes(moved)}"]
    if mistakes := [f"- {render(phrase, code, line)}" for phrase in report.likely_mistakes]:
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
        yield f"**{name.capitalize()}: {count(len(ids), 'query')}**: {first_of(ids, bounds.ROWS, code)}"


def _versions(report: Report) -> Iterable[str]:
    baseline = report.inputs.baseline
    versions = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    if versions:
        body = [[field.replace("_", " "), code(before), code(now)] for field, (before, now) in versions.items()]
        yield table(["Version", "Before", "Now"], "lll", body)
