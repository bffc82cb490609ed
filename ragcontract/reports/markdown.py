"""The report as Markdown, for a pull request: the verdict and why first, details folded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from ragcontract.model import BaselineInput, GoldenInput, QueryReport, Report, RunInput, SourceFile, TagReport
from ragcontract.numbers import count, fixed, signed
from ragcontract.reports.findings import Finding, findings
from ragcontract.reports.gfm import code, fold, table, text
from ragcontract.reports.movement import Moved, broken_queries, changed_versions, movement, not_compared, rank
from ragcontract.reports.summary import headline, rows, shared_note
from ragcontract.text import shorten, visible

MAX_ROWS = 100
MAX_NAME, MAX_QUESTION, MAX_LINE, MAX_DOCS = 100, 60, 500, 5
TAG_DIGITS = 3
STATUS = {"pass": "✅ pass", "fail": "❌ fail", "none": "-"}
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
        f"### {ICONS[report.verdict]} {_contract(name)} {verdict}: {headline(report)}",
        *_metric_table(report),
        *_broken_queries(report, detail.rows),
    ]
    if detail.folds:
        parts += [
            *_movement(report, detail.rows),
            *_tags(report, detail.rows),
            *_versions(report),
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


def _metric_table(report: Report) -> list[str]:
    if report.inputs.baseline is None:
        body = [[row.label, row.current, row.limits or "-", STATUS[row.status]] for row in rows(report)]
        return [table(["Metric", "Current", "Limit", "Status"], "lrll", body)]
    body = [
        [row.label, row.baseline, row.current, row.change, row.limits or "-", STATUS[row.status]]
        for row in rows(report)
    ]
    note = shared_note(report)
    metrics = table(["Metric", "Baseline", "Current", "Change", "Limit", "Status"], "lrrrll", body)
    return [metrics, note] if note else [metrics]


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
    moved = movement(report.queries)
    parts: list[str] = []
    for title, group in (("Worse", moved.worse), ("Better", moved.better)):
        if group:
            parts += [f"**{title}**", *_cut(group, max_rows, "query", _moved_table)]
    apart = not_compared(baseline)
    for name, ids in apart.items():
        rest = [f"{len(ids) - max_rows:,} more"] if len(ids) > max_rows else []
        parts.append(f"**{name.capitalize()}**: {', '.join([code(query_id) for query_id in ids[:max_rows]] + rest)}")
    sizes = {"worse": len(moved.worse), "better": len(moved.better), "the same": moved.even}
    sizes |= {name: len(ids) for name, ids in apart.items()}
    summary = ", ".join(f"{size:,} {word}" for word, size in sizes.items() if size)
    return [fold(f"Rank movement: {summary}", *parts)] if parts else []


def _moved_table(group: Sequence[Moved]) -> str:
    return table(["Query", "Documents, rank before → now"], "ll", map(_moved, group))


def _moved(item: Moved) -> list[str]:
    steps = [
        f"{code(step.doc_id)}{' (forbidden)' if step.forbidden else ''} {rank(step.before)} → {rank(step.now)}"
        for step in item.steps
    ]
    more = [f"{len(steps) - MAX_DOCS} more"] if len(steps) > MAX_DOCS else []
    return [code(item.query.id), ", ".join(steps[:MAX_DOCS] + more)]


def _tags(report: Report, max_rows: int) -> list[str]:
    if not report.tags:
        return []
    compared = any(map(_changes, report.tags.values()))

    def as_table(tags: Sequence[tuple[str, TagReport]]) -> str:
        labels = [metric.label for metric in report.metrics.values()]
        body = [[code(name), f"{tag.queries:,}", *_tag_cells(tag)] for name, tag in tags]
        return table(["Tag", "Queries", *labels], "lr" + "r" * len(labels), body)

    note = ["In brackets the change since the baseline, over the queries that both sides have."] if compared else []
    return [fold(count(len(report.tags), "tag"), *_cut(list(report.tags.items()), max_rows, "tag", as_table), *note)]


def _changes(tag: TagReport) -> dict[str, float]:
    """Return by how much each metric of a tag changed, where both sides have it."""
    now, before = tag.metrics_shared or {}, tag.baseline_metrics or {}
    return {
        key: value - old for key, value in now.items() if value is not None and (old := before.get(key)) is not None
    }


def _tag_cells(tag: TagReport) -> Iterable[str]:
    changes = _changes(tag)
    for key, value in tag.metrics.items():
        change = changes.get(key, 0.0)
        moved = f" ({signed(change, TAG_DIGITS)})" if round(change, TAG_DIGITS) else ""
        yield fixed(value, TAG_DIGITS) + moved


def _versions(report: Report) -> list[str]:
    baseline = report.inputs.baseline
    changed = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    if not changed:
        return []
    body = [[f"`{field}`", code(old), code(new)] for field, (old, new) in changed.items()]
    names = ", ".join(field.replace("_", " ") for field in changed)
    return [fold(f"Versions changed: {names}", table(["", "Baseline", "Run"], "lll", body))]


def _warnings(warnings: Sequence[str], max_rows: int) -> list[str]:
    return [fold(count(len(warnings), "warning"), *_list(warnings, max_rows))] if warnings else []


def _inputs(report: Report) -> str:
    inputs = report.inputs
    golden, run, baseline = inputs.golden, inputs.run, inputs.baseline
    missing = f", {len(run.missing):,} missing" if run.missing else ""
    body = [
        ["golden", _files(golden.files), f"{_queries(golden)}, {golden.answerable:,} with relevant documents"],
        ["run", _files(run.files), f"{_queries(run)}{missing}"],
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
    return fold(INPUTS, table(["", "File", ""], "lll", body), foot)


def _queries(source: GoldenInput | RunInput | BaselineInput) -> str:
    return count(source.queries, "query")


def _files(files: Sequence[SourceFile]) -> str:
    first = f"{code(files[0].path)} (sha256 `{files[0].sha256[:12]}`)"
    return first + (f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else "")
