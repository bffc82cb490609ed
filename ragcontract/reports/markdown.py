"""The report as Markdown, for a pull request: the verdict and why first, details folded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct

from ragcontract.judging.words import told
from ragcontract.model import BaselineInput, GoldenInput, QueryReport, Report, RunInput, SourceFile, TagReport
from ragcontract.numbers import count, fixed, percent, signed
from ragcontract.reports import repeats
from ragcontract.reports.drift import drift
from ragcontract.reports.findings import Finding, findings, tolerated_findings
from ragcontract.reports.gfm import code, fold, table, text
from ragcontract.reports.latency import table_rows
from ragcontract.reports.movement import (
    Moved,
    broken_queries,
    metric_step,
    movement,
    not_compared,
    rank,
    tolerated_queries,
    why_tolerated,
)
from ragcontract.reports.summary import Row, at_largest_k, headline, shared_note, tag_changes, tags_worst_first
from ragcontract.text import shorten, visible

MAX_ROWS = 100
MAX_NAME, MAX_QUESTION, MAX_LINE, MAX_DOCS = 100, 60, 500, 5
TAG_DIGITS = 3
ALPHA = 0.05  # of the stars in the table of tags
STATUS = {"pass": "✅ pass", "fail": "❌ fail", "waived": "☑️ waived", "none": "-"}
ICONS = {"pass": "✅", "fail": "❌"}
INPUTS = "Inputs"
VERDICTS = {"pass": "holds", "fail": "broken"}

Item = TypeVar("Item")


class Detail(Struct, frozen=True, kw_only=True):
    """How much of a report to render: rows a table, what is folded, and the inputs, which differ from run to run."""

    rows: int = MAX_ROWS
    folds: bool = True
    inputs: bool = True


FULL = Detail()


def render(report: Report, *, name: str = "", detail: Detail = FULL, mended: bool = False) -> str:
    """Render the report; ``name`` tells several contracts apart, ``mended`` that this one was broken before."""
    verdict = VERDICTS[report.verdict] + (" again" if mended else "")
    parts = [
        f"### {ICONS[report.verdict]} {_contract(name)} {verdict}: {headline(report, code)}",
        *_drift(report),
        *_metric_table(report, detail.rows),
        *_broken_queries(report, detail.rows),
    ]
    if detail.folds:
        parts += [
            *_tolerated(report, detail.rows),
            *_movement(report, detail.rows),
            *_tags(report, detail.rows),
            *_noise(report),
            *_warnings(report.warnings, detail.rows),
        ]
    if detail.folds and detail.inputs:
        parts.append(_inputs(report))
    return "\n\n".join(parts) + "\n"


def render_unusable(
    problems: Sequence[str],
    *,
    more: int = 0,
    warnings: Sequence[str] = (),
    advice: str = "Mend the input and run the check again.",
    name: str = "",
    max_rows: int = MAX_ROWS,
) -> str:
    """Render why there is no verdict; ``more`` counts problems that are not named, ``warnings`` may explain some."""
    parts = [
        f"### ⚠️ {_contract(name)} could not be judged: {count(len(problems) + more, 'problem')}",
        *_list(problems, max_rows, more),
        *_warnings(warnings, max_rows),
        f"No verdict was reached. {advice}",
    ]
    return "\n\n".join(parts) + "\n"


def _contract(name: str) -> str:
    return f"Retrieval contract {text(shorten(visible(name), MAX_NAME))}" if name else "Retrieval contract"


def _cut(items: Sequence[Item], max_rows: int, noun: str, render_items: Callable[[Sequence[Item]], str]) -> list[str]:
    """Render the first items, and count the rest."""
    parts = [render_items(items[:max_rows])] if items[:max_rows] else []
    rest = len(items) - max_rows
    return [*parts, f"… and {count(rest, f'more {noun}')}, in `report.json`."] if rest > 0 else parts


def _list(lines: Sequence[str], max_rows: int, more: int = 0) -> list[str]:
    shown = [f"- {text(shorten(visible(line), MAX_LINE))}" for line in lines[:max_rows]]
    if rest := max(0, len(lines) - max_rows) + more:
        shown.append(f"- … and {rest:,} more")
    return ["\n".join(shown)]


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
    return parts + [note for note in (shared_note(report), repeats.note(report)) if note]


def _metric_row(row: Row, *, compared: bool) -> list[str]:
    values = [row.baseline, row.current, row.change] if compared else [row.current]
    return [_label(row), *values, row.limits or "-", STATUS[row.status]]


def _label(row: Row) -> str:
    return row.label if row.tag is None else f"{row.label} of {code(row.tag)}"


def _broken_queries(report: Report, max_rows: int) -> list[str]:
    broken = broken_queries(report)
    if not broken:
        return []
    k = max(report.k)
    compared = report.inputs.baseline is not None

    def as_table(queries: Sequence[QueryReport]) -> str:
        body = [cells for query in queries for cells in _query_rows(query, k, compared=compared)]
        head = ["Query", "Expected", "Found", "Before", "Now"] if compared else ["Query", "Expected", "Found"]
        return table(head, "l" * len(head), body)

    title = f"**{count(len(broken), 'broken query')}**" + (", worst first" if len(broken) > 1 else "")
    return [title, *_cut(broken, max_rows, "broken query", as_table)]


def _tolerated(report: Report, max_rows: int) -> list[str]:
    k = max(report.k)
    gates = [
        [code(gate.id), text(told(gate, visible)), text(gate.waived or "")] for gate in report.gates if gate.waived
    ]
    queries = [
        [
            code(query.id),
            "; ".join(f"{finding.expected(code)}: {finding.found(code)}" for finding in tolerated_findings(query, k)),
            text(shorten(visible(why_tolerated(query)), MAX_LINE)),
        ]
        for query in tolerated_queries(report)
    ]
    if not (gates or queries):
        return []

    def as_table(body: Sequence[list[str]]) -> str:
        return table(["", "Broken", "Why it does not fail"], "lll", body)

    title = f"Broken and not failing: {len(gates) + len(queries):,}"
    return [fold(title, *_cut([*gates, *queries], max_rows, "row", as_table))]


def _query_rows(query: QueryReport, k: int, *, compared: bool) -> Iterable[list[str]]:
    name = f"{code(query.id)}<br>{text(shorten(visible(query.query), MAX_QUESTION))}"
    for finding in findings(query, k):
        cells = [name, finding.expected(code), finding.found(code, with_before=False)]
        if compared:
            cells += [_ranks(finding, finding.before), _ranks(finding, finding.ranks)]
        yield cells
        name = ""


def _ranks(finding: Finding, ranks: Mapping[str, int | None] | None) -> str:
    if ranks is None:
        return "n/a"
    shown = [str(ranks.get(doc_id) or "–") for doc_id in finding.doc_ids[:MAX_DOCS]]
    return ", ".join(shown) + (", …" if len(finding.doc_ids) > MAX_DOCS else "")


def _movement(report: Report, max_rows: int) -> list[str]:
    baseline = report.inputs.baseline
    if baseline is None:
        return []
    moved = movement(report)
    parts: list[str] = []
    for title, group in (("Worse", moved.worse), ("Better", moved.better)):
        if group:
            parts += [f"**{title}**", *_cut(group, max_rows, "query", partial(_moved_table, report))]
    apart = not_compared(baseline)
    for name, ids in apart.items():
        rest = [f"{len(ids) - max_rows:,} more"] if len(ids) > max_rows else []
        parts.append(f"**{name.capitalize()}**: {', '.join([code(query_id) for query_id in ids[:max_rows]] + rest)}")
    sizes = {"worse": len(moved.worse), "better": len(moved.better), "the same": moved.even}
    sizes |= {name: len(ids) for name, ids in apart.items()}
    summary = ", ".join(f"{size:,} {word}" for word, size in sizes.items() if size)
    return [fold(f"Rank movement: {summary}", *parts)] if parts else []


def _moved_table(report: Report, group: Sequence[Moved]) -> str:
    return table(["Query", "Documents, rank before → now"], "ll", [_moved(item, report) for item in group])


def _moved(item: Moved, report: Report) -> list[str]:
    steps = [
        f"{code(step.doc_id)}{' (forbidden)' if step.forbidden else ''} {rank(step.before)} → {rank(step.now)}"
        for step in item.steps
    ]
    more = [f"{len(steps) - MAX_DOCS} more"] if len(steps) > MAX_DOCS else []
    shown = ", ".join(steps[:MAX_DOCS] + more)
    if item.metric:
        shown = metric_step(item, report, "→") + (f"; the worst ranks of its rows: {shown}" if shown else "")
    return [code(item.query.id), shown]


def _tags(report: Report, max_rows: int) -> list[str]:
    if not report.tags:
        return []
    metrics = at_largest_k(report)

    def as_table(tags: Sequence[tuple[str, TagReport]]) -> str:
        labels = [metric.label for metric in metrics.values()]
        body = [[code(name), f"{tag.queries:,}", *_tag_cells(tag, metrics)] for name, tag in tags]
        return table(["Tag", "Queries", *labels], "lr" + "r" * len(labels), body)

    notes = []
    if any(map(tag_changes, report.tags.values())):
        notes.append("In brackets the change since the baseline, over the queries that both sides have.")
    if any(p <= ALPHA for tag in report.tags.values() for p in tag.p_values.values()):
        notes[0] += " With a star: a drop that chance does not explain, among all tags (Benjamini-Hochberg, 5 %)."
    return [fold(count(len(report.tags), "tag"), *_cut(tags_worst_first(report), max_rows, "tag", as_table), *notes)]


def _tag_cells(tag: TagReport, metrics: Iterable[str]) -> Iterable[str]:
    changes = tag_changes(tag)
    for key in metrics:
        change = changes.get(key, 0.0)
        star = "\\*" if tag.p_values.get(key, 1) <= ALPHA else ""
        moved = f" ({signed(change, TAG_DIGITS)}{star})" if round(change, TAG_DIGITS) else ""
        yield fixed(tag.metrics[key], TAG_DIGITS) + moved


def _noise(report: Report) -> list[str]:
    body = [
        [
            metric.label,
            signed(metric.delta, TAG_DIGITS),
            "-"
            if noise.interval is None
            else f"{signed(noise.interval[0], TAG_DIGITS)} to {signed(noise.interval[1], TAG_DIGITS)}",
            f"{noise.wins:,} / {noise.ties:,} / {noise.losses:,}",
            "too few changed" if noise.p_value is None else f"{noise.p_value:.2g}",
        ]
        for metric in at_largest_k(report).values()
        if (noise := metric.noise)
    ]
    if not body:
        return []
    head = ["Metric", "Change", "95 % interval", "Better / same / worse", "p of a drop"]
    return [fold("How sure the changes are", table(head, "lrrrr", body))]


def _warnings(warnings: Sequence[str], max_rows: int) -> list[str]:
    return [fold(count(len(warnings), "warning"), *_list(warnings, max_rows))] if warnings else []


def _inputs(report: Report) -> str:
    inputs = report.inputs
    golden, run, baseline = inputs.golden, inputs.run, inputs.baseline
    missing = f", {len(run.missing):,} missing" if run.missing else ""
    repeated = f", {percent(run.duplicate_rate)} of the results repeat a document" if run.duplicate_rate else ""
    body = [
        ["golden", _files(golden.files), f"{_queries(golden)}, {golden.answerable:,} with relevant documents"],
        ["run", _files(run.files), f"{_queries(run)}{missing}{repeated}"],
        ["baseline", "-", "none given: nothing was compared"],
        ["config", "-", "none given: rules on, no gates"],
    ]
    if baseline:
        made = f", made {code(baseline.created_at)}" if baseline.created_at else ""
        body[2] = ["baseline", _files(baseline.files), f"{_queries(baseline)}, {baseline.shared:,} shared{made}"]
    if inputs.config:
        body[3] = ["config", _files(inputs.config.files), count(len(report.gates), "gate")]
    k = ", ".join(map(str, report.k))
    foot = f"k = {k} · {report.tool.name} {report.tool.version} · {code(report.created_at)}"
    return fold(INPUTS, table(["", "File", ""], "lll", body), *_accepted(baseline), foot)


def _accepted(baseline: BaselineInput | None) -> Iterable[str]:
    """Say why a broken contract became the baseline; of several, the last."""
    if baseline and baseline.accepted:
        last = baseline.accepted[-1]
        before = len(baseline.accepted) - 1
        more = f" ({count(before, 'earlier acceptance')} in `report.json`)" if before else ""
        checks = count(last.failed, "failed check")
        reason = text(shorten(visible(last.reason), MAX_LINE))
        yield f"The baseline accepted regressions ({code(last.at)}, {checks}): {reason}{more}"


def _queries(source: GoldenInput | RunInput | BaselineInput) -> str:
    return count(source.queries, "query")


def _files(files: Sequence[SourceFile]) -> str:
    first = f"{code(files[0].path)} (sha256 `{files[0].sha256[:12]}`)"
    return first + (f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else "")
