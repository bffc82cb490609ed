"""The report as Markdown, for a pull request: the verdict and why first, details folded.

Everything that comes from a file is escaped here: ids become code, questions become plain text. Neither can mention a
user, refer to an issue, link, show an image, open an HTML tag, or end a table, a fence or a fold.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from ragcontract.model import QueryReport, Report, SourceFile
from ragcontract.numbers import count, digits_for, fixed, signed
from ragcontract.reports.findings import Finding, findings
from ragcontract.reports.movement import Moved, changed_versions, loss, movement
from ragcontract.reports.summary import headline, rows, shared_note
from ragcontract.text import shorten, visible

MAX_ROWS = 100
MAX_ID, MAX_QUESTION, MAX_DOCS = 80, 80, 5
STATUS = {"pass": "✅ pass", "fail": "❌ fail", "none": "-"}
ICONS = {"pass": "✅", "fail": "❌"}
VERDICTS = {"pass": "holds", "fail": "broken"}


def render(report: Report, *, name: str = "", max_rows: int = MAX_ROWS) -> str:
    """Render the report; ``name`` tells several contracts apart, no table gets more than ``max_rows`` rows."""
    title = f" {text(name)}" if name else ""
    parts = [
        f"### {ICONS[report.verdict]} Retrieval contract{title} {VERDICTS[report.verdict]}: {headline(report)}",
        *_metric_table(report),
        *_broken_queries(report, max_rows),
        *_movement(report, max_rows),
        *_tags(report, max_rows),
        *_versions(report),
        *_warnings(report, max_rows),
        _inputs(report),
    ]
    return "\n\n".join(parts) + "\n"


def render_unusable(lines: Sequence[str], *, name: str = "", max_rows: int = MAX_ROWS) -> str:
    """Render the problems of an input that could not be judged."""
    title = f" {text(name)}" if name else ""
    shown = [f"- {text(shorten(line, 500))}" for line in lines[:max_rows]]
    if len(lines) > max_rows:
        shown.append(f"- … and {len(lines) - max_rows} more")
    return (
        "\n\n".join(
            [
                f"### ⚠️ Retrieval contract{title} could not be judged: {count(len(lines), 'problem')} with the input",
                "\n".join(shown),
                "No verdict was reached. Mend the input and run the check again.",
            ]
        )
        + "\n"
    )


def text(value: str) -> str:
    """Escape plain text for Markdown as GitHub reads it."""
    escaped = re.sub(r"[\\`*_{}\[\]()#+\-.!~:=^$/]", r"\\\g<0>", visible(value))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    # GitHub links mentions, issues, addresses and commits after Markdown is done: a zero-width space stops it.
    escaped = re.sub(
        r"@|(?<=\\#)|(?<=\\:)(?=\\/)|(?i:(?<=www)(?=\\\.))|(?i:(?<=gh)(?=\\-\d))", r"\g<0>&#8203;", escaped
    )
    return re.sub(r"\b[0-9a-f]{7}(?=[0-9a-f]{0,33}\b)", r"\g<0>&#8203;", escaped)


def code(value: str) -> str:
    """Show an id as code: nothing in it is read as Markdown, a mention or a link."""
    shown = shorten(visible(value), MAX_ID)
    if not re.search(r"[`|\\]", shown) and shown.strip() == shown:
        return f"`{shown}`"
    # Backquotes and pipes would end the code or the table cell, so everything but letters and digits is an entity.
    # The empty comment keeps what stands around an @ from being taken for an e-mail address.
    entities = re.sub(r"[^\w ]", lambda match: f"&#{ord(match[0])};", shown, flags=re.ASCII)
    return f"<code>{entities.replace('&#64;', '&#64;<!-- -->')}</code>"


def _table(head: Sequence[str], align: str, body: Iterable[Sequence[str]]) -> str:
    """Lay out a table; ``align`` has a letter a column, ``l`` or ``r``."""
    ruler = ["---:" if side == "r" else "---" for side in align]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ruler, *body))


def _fold(summary: str, *parts: str) -> str:
    return "\n\n".join([f"<details><summary>{summary}</summary>", *parts, "</details>"])


def _cut(body: Sequence[Sequence[str]], max_rows: int, noun: str) -> tuple[Sequence[Sequence[str]], list[str]]:
    if len(body) <= max_rows:
        return body, []
    return body[:max_rows], [f"… and {count(len(body) - max_rows, noun)} more, in `report.json`."]


def _metric_table(report: Report) -> list[str]:
    body = [
        [row.label, row.baseline, row.current, row.change, row.limits or "-", STATUS[row.status]]
        for row in rows(report)
    ]
    note = shared_note(report)
    table = _table(["Metric", "Baseline", "Current", "Change", "Limit", "Status"], "lrrrll", body)
    return [table, note] if note else [table]


def _broken_queries(report: Report, max_rows: int) -> list[str]:
    broken = sorted((query for query in report.queries if query.status == "fail"), key=loss)
    if not broken:
        return []
    k = max(report.k)
    body = [cells for query in broken[:max_rows] for cells in _query_rows(query, k)]
    rest = len(broken) - max_rows
    more = [f"… and {count(rest, 'broken query')} more, in `report.json`."] if rest > 0 else []
    return [
        f"**{count(len(broken), 'broken query')}**, worst first",
        _table(["Query", "Expected", "Found", "Before", "Now"], "lllll", body),
        *more,
    ]


def _query_rows(query: QueryReport, k: int) -> Iterable[list[str]]:
    name = f"{code(query.id)}<br>{text(shorten(query.query, MAX_QUESTION))}"
    for finding in findings(query, k):
        found = finding.found(code, with_before=False)
        yield [name, finding.expected(code), found, _ranks(finding, finding.before), _ranks(finding, finding.ranks)]
        name = ""


def _ranks(finding: Finding, ranks: Mapping[str, int | None] | None) -> str:
    if ranks is None:
        return "-"
    shown = [str(ranks.get(doc_id) or "–") for doc_id in finding.doc_ids[:MAX_DOCS]]
    return ", ".join(shown) + (", …" if len(finding.doc_ids) > MAX_DOCS else "")


def _rank(rank: int | None) -> str:
    return "missing" if rank is None else str(rank)


def _movement(report: Report, max_rows: int) -> list[str]:
    baseline = report.inputs.baseline
    if baseline is None:
        return []
    moved = movement(report.queries)
    sizes: list[tuple[str, Sequence[object]]] = [
        ("worse", moved.worse),
        ("better", moved.better),
        ("new", baseline.new),
        ("changed", baseline.changed),
        ("gone", baseline.gone),
    ]
    summary = ", ".join(f"{len(items)} {word}" for word, items in sizes if items or word != "changed")
    parts: list[str] = []
    for title, group in (("Worse", moved.worse), ("Better", moved.better)):
        if group:
            body, more = _cut([_moved(item) for item in group], max_rows, "query")
            parts += [f"**{title}**", _table(["Query", "Documents, rank before → now"], "ll", body), *more]
    for title, ids in (
        ("New, with nothing to compare", baseline.new),
        ("Asked with other words than in the baseline, so not compared", baseline.changed),
        ("Gone, in the baseline only", baseline.gone),
    ):
        if ids:
            rest = f" and {len(ids) - max_rows} more" if len(ids) > max_rows else ""
            parts.append(f"**{title}**: {', '.join(code(query_id) for query_id in ids[:max_rows])}{rest}")
    return [_fold(f"Rank movement: {summary}", *parts)] if parts else []


def _moved(item: Moved) -> list[str]:
    before = item.query.baseline_ranks or {}
    steps = [
        f"{code(doc_id)} {_rank(before.get(doc_id))} → {_rank(rank)}"
        for doc_id, rank in item.query.ranks.items()
        if before.get(doc_id) != rank
    ]
    more = [f"{len(steps) - MAX_DOCS} more"] if len(steps) > MAX_DOCS else []
    return [code(item.query.id), ", ".join(steps[:MAX_DOCS] + more)]


def _tags(report: Report, max_rows: int) -> list[str]:
    if not report.tags:
        return []
    compared = report.inputs.baseline is not None
    deltas = [
        (now - before, 0.0)
        for tag in report.tags.values()
        for now, before in zip((tag.metrics_shared or {}).values(), (tag.baseline_metrics or {}).values(), strict=True)
        if now is not None and before is not None
    ]
    digits = digits_for(deltas)
    body = []
    for name, tag in report.tags.items():
        cells = []
        for key, value in tag.metrics.items():
            cell = fixed(value, digits)
            now, before = (tag.metrics_shared or {}).get(key), (tag.baseline_metrics or {}).get(key)
            if now is not None and before is not None:
                cell += f" ({signed(now - before, digits)})"
            cells.append(cell)
        body.append([code(name), str(tag.queries), *cells])
    shown, more = _cut(body, max_rows, "tag")
    labels = [metric.label for metric in report.metrics.values()]
    note = ["In brackets the change since the baseline, over the queries that both sides have."] if compared else []
    return [
        _fold(
            count(len(body), "tag"), _table(["Tag", "Queries", *labels], "lr" + "r" * len(labels), shown), *more, *note
        )
    ]


def _versions(report: Report) -> list[str]:
    baseline = report.inputs.baseline
    changed = changed_versions(report.inputs.run.versions, baseline.versions) if baseline else {}
    if not changed:
        return []
    body = [[f"`{field}`", code(old), code(new)] for field, (old, new) in changed.items()]
    names = ", ".join(field.replace("_", " ") for field in changed)
    return [_fold(f"Versions changed: {names}", _table(["", "Baseline", "Run"], "lll", body))]


def _warnings(report: Report, max_rows: int) -> list[str]:
    if not report.warnings:
        return []
    body = [f"- {text(warning)}" for warning in report.warnings[:max_rows]]
    if len(report.warnings) > max_rows:
        body.append(f"- … and {len(report.warnings) - max_rows} more")
    return [_fold(count(len(report.warnings), "warning"), "\n".join(body))]


def _inputs(report: Report) -> str:
    inputs = report.inputs
    golden, run, baseline = inputs.golden, inputs.run, inputs.baseline
    body = [
        [
            "golden",
            _files(golden.files),
            f"{count(golden.queries, 'query')}, {golden.answerable:,} with relevant documents",
        ]
    ]
    missing = f", {len(run.missing):,} missing" if run.missing else ""
    body.append(["run", _files(run.files), f"{count(run.queries, 'query')}{missing}"])
    if baseline:
        made = f", made {text(baseline.created_at)}" if baseline.created_at else ""
        body.append(
            [
                "baseline",
                _files(baseline.files),
                f"{count(baseline.queries, 'query')}, {baseline.shared:,} shared{made}",
            ]
        )
    else:
        body.append(["baseline", "-", "none given: nothing was compared"])
    if inputs.config:
        body.append(["config", _files(inputs.config.files), count(len(report.gates), "gate")])
    else:
        body.append(["config", "-", "none given: rules on, no gates"])
    k = ", ".join(map(str, report.k))
    foot = f"k = {k} · {report.tool.name} {report.tool.version} · {report.created_at}"
    return _fold("Inputs", _table(["", "File", ""], "lll", body), foot)


def _files(files: Sequence[SourceFile]) -> str:
    first = f"{code(files[0].path)} (sha256 `{files[0].sha256[:12]}`)"
    return first + (f" and {count(len(files) - 1, 'more file')}" if len(files) > 1 else "")
