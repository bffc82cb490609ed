"""The parts of the HTML page that are there without JavaScript: metric cards, tags, the first broken queries."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ragcontract.model import GateReport, MetricReport, Noise, QueryReport, Report, SourceFile, TagReport
from ragcontract.numbers import count, fixed, signed
from ragcontract.reports.findings import findings
from ragcontract.reports.movement import broken_queries, changed_versions, not_compared
from ragcontract.reports.summary import Row, at_largest_k, rows, tag_changes, tags_worst_first
from ragcontract.text import shorten, visible

LISTED, OPEN_TAGS, MAX_TAGS, MAX_DOCS, MAX_WARNINGS = 100, 10, 200, 5, 100
MAX_ID, MAX_NAME, MAX_QUESTION = 120, 80, 200
TAG_DIGITS = 3
STATUS = {"pass": "✓ pass", "fail": "✕ fail", "none": "no limit"}
COLUMNS = ("Query", "Status", "Tags", "Metric", "Change", "Ranks before", "Ranks now", "Broken rules")


def text(value: str, length: int = 1_000) -> str:
    """Write text from a file for HTML: visible, of bounded length, escaped."""
    return escape(shorten(visible(value), length))


def paragraph(words: str | None) -> str:
    """Write a note, if there is one."""
    return f'<p class="note">{text(words, 5_000)}</p>' if words else ""


def cards(report: Report) -> str:
    """Write a card a metric: value, change and how sure it is, limit, queries that got better and worse."""
    metrics = report.metrics.items()
    gates = {key: [gate for gate in report.gates if gate.metric == key] for key in report.metrics}
    return "".join(_card(row, metric, gates[key]) for row, (key, metric) in zip(rows(report), metrics, strict=True))


def _card(row: Row, metric: MetricReport, gates: Sequence[GateReport]) -> str:
    compared = metric.baseline is not None
    before = f'<span class="before"><span class="sr">before </span>{row.baseline} <i>→</i> </span>' if compared else ""
    facts = [("Change", row.change)] if compared else []
    if metric.noise:
        noise = metric.noise
        facts += _interval(noise)
        facts.append(("Queries", f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse"))
    facts.append(("Limit", text(row.limits or "none")))
    listed = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts)
    return (
        f'<li class="card {row.status}"><h3>{text(row.label)}'
        f'<span class="status {row.status}">{STATUS[row.status]}</span></h3>'
        f'<p class="value">{before}<span class="sr">now </span><b>{row.current}</b></p>'
        f"{_whiskers(metric, gates)}<dl>{listed}</dl></li>"
    )


def _interval(noise: Noise) -> Iterable[tuple[str, str]]:
    if noise.interval:
        low, high = noise.interval
        yield "Interval", f'{signed(low, TAG_DIGITS)} to {signed(high, TAG_DIGITS)} <span class="muted">(95 %)</span>'
    if noise.p_value is not None:
        yield "Chance", f"p = {noise.p_value:.2g} for a drop like this"


def _whiskers(metric: MetricReport, gates: Sequence[GateReport]) -> str:
    """Draw the change and its interval on a line, with nothing in the middle and the allowed drop where it is."""
    if metric.delta is None:
        return ""
    low, high = (metric.noise and metric.noise.interval) or (metric.delta, metric.delta)
    limits = [
        -gate.limit * ((metric.baseline or 0.0) if gate.kind == "relative_drop" else 1.0)
        for gate in gates
        if gate.kind != "minimum"
    ]
    reach = max(abs(value) for value in (low, high, metric.delta, *limits, 0.01)) * 1.1

    def x(value: float) -> str:
        return f"{50 + 50 * value / reach:.2f}%"

    marks = "".join(f'<line class="limit" x1="{x(limit)}" x2="{x(limit)}" y1="3" y2="21"/>' for limit in limits)
    return (
        '<svg class="whiskers" aria-hidden="true" width="100%" height="24">'
        '<line class="axis" x1="0" x2="100%" y1="12" y2="12"/><line class="axis" x1="50%" x2="50%" y1="6" y2="18"/>'
        f'<line class="interval" x1="{x(low)}" x2="{x(high)}" y1="12" y2="12"/>{marks}'
        f'<circle class="dot" cx="{x(metric.delta)}" cy="12" r="5"/></svg>'
    )


def tags(report: Report) -> str:
    """Write a table of tags, worst first, with a bar a metric; the first are open, the rest folded."""
    if not report.tags:
        return ""
    numbers = {name: number for number, name in enumerate(report.tags)}
    worst = [(numbers[name], name, tag) for name, tag in tags_worst_first(report)]
    metrics = at_largest_k(report)
    parts = [_tag_table(worst[:OPEN_TAGS], metrics)]
    if more := worst[OPEN_TAGS:MAX_TAGS]:
        words = count(len(worst) - OPEN_TAGS, "more tag")
        parts.append(f"<details><summary>{words}</summary>{_tag_table(more, metrics)}")
        parts.append(paragraph(f"… and {count(len(worst) - MAX_TAGS, 'more tag')}." if worst[MAX_TAGS:] else None))
        parts.append("</details>")
    return (
        '<section aria-labelledby="tags-title"><h2 id="tags-title">Tags</h2>'
        '<p class="muted">Worst first. A bar is the mean now; the line across it is the baseline.</p>'
        f"{''.join(parts)}</section>"
    )


def _tag_table(items: Iterable[tuple[int, str, TagReport]], metrics: Mapping[str, MetricReport]) -> str:
    head = "".join(f'<th scope="col">{text(metric.label)}</th>' for metric in metrics.values())
    body = "".join(
        f'<tr><th scope="row"><bdi data-tag="{number}">{text(name, MAX_ID)}</bdi></th>'
        f'<td class="number">{tag.queries:,}</td>{"".join(_tag_cells(tag, metrics))}</tr>'
        for number, name, tag in items
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Metrics by tag"><table class="tags"><thead><tr>'
        f'<th scope="col">Tag</th><th scope="col" class="number">Queries</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _tag_cells(tag: TagReport, metrics: Iterable[str]) -> Iterable[str]:
    changes, before = tag_changes(tag), tag.baseline_metrics or {}
    for key in metrics:
        value = tag.metrics[key]
        change = round(changes.get(key, 0.0), TAG_DIGITS)
        kind = "worse" if change < 0 else "better"
        moved = f' <span class="{kind}">{signed(change, TAG_DIGITS)}</span>' if change else ""
        old = before.get(key)
        tick = "" if old is None else f'<rect class="tick" x="{old * 100:.2f}%" y="0" width="2" height="10"/>'
        bar = "" if value is None else f'<rect class="bar" y="2" width="{value * 100:.2f}%" height="6"/>'
        picture = '<svg aria-hidden="true" width="100%" height="10"><rect class="track" y="2" width="100%" height="6"/>'
        yield f"<td>{fixed(value, TAG_DIGITS)}{moved}{picture}{bar}{tick}</svg></td>"


def broken(report: Report) -> str:
    """Write the first broken queries as rows of the table, for readers without JavaScript."""
    k = max(report.k)
    return "".join(_broken(query, k) for query in broken_queries(report)[:LISTED])


def not_listed(report: Report) -> str | None:
    """Say how many queries only the script can show."""
    shown = min(LISTED, sum(query.status == "fail" for query in report.queries))
    rest = len(report.queries) - shown
    return f"{count(rest, 'more query')} can be looked at with JavaScript on, or in report.json." if rest else None


def _broken(query: QueryReport, k: int) -> str:
    first = next(iter(query.metrics), "")
    value, before = query.metrics.get(first), (query.baseline_metrics or {}).get(first)
    change = None if value is None or before is None else value - before
    found = "".join(
        f"<li>{text(finding.expected(_name))}: {text(finding.found(_name))}</li>" for finding in findings(query, k)
    )
    question = f'<p class="question" dir="auto">{text(query.query, MAX_QUESTION)}</p>'
    chips = "".join(f'<bdi class="tag">{text(tag, MAX_ID)}</bdi>' for tag in query.tags)
    cells = [
        f'<bdi class="id">{text(query.id, MAX_ID)}</bdi>{question}',
        f'<span class="status fail">{STATUS["fail"]}</span>',
        f"<span>{chips}</span>",
        fixed(value, TAG_DIGITS),
        signed(change, TAG_DIGITS),
        _ranks(query.baseline_ranks),
        _ranks(query.ranks),
        f"<ul>{found}</ul>",
    ]
    return f'<tr role="row">{"".join(map(_cell, COLUMNS, cells))}</tr>'


def _name(doc_id: str) -> str:
    return shorten(visible(doc_id), MAX_NAME)


def _cell(name: str, content: str) -> str:
    return f'<td role="cell" data-label="{name}">{content}</td>'


def _ranks(ranks: Mapping[str, int | None] | None) -> str:
    if ranks is None:
        return "n/a"
    shown = [str(rank or "–") for rank in list(ranks.values())[:MAX_DOCS]]
    return ", ".join(shown) + (", …" if len(ranks) > MAX_DOCS else "")


def extras(report: Report) -> str:
    """Write what else there is to know, folded: queries that were not compared, versions, warnings, inputs."""
    baseline = report.inputs.baseline
    parts = []
    if baseline:
        for name, ids in not_compared(baseline).items():
            parts.append(_fold(f"{len(ids):,} {name}", [text(query_id, MAX_ID) for query_id in ids]))
        if changed := changed_versions(report.inputs.run.versions, baseline.versions):
            lines = [f"{field.replace('_', ' ')}: {text(old)} → {text(new)}" for field, (old, new) in changed.items()]
            parts.append(_fold("Versions changed", lines))
    if report.warnings:
        parts.append(_fold(count(len(report.warnings), "warning"), [text(line) for line in report.warnings]))
    inputs = report.inputs
    sources = {"golden": inputs.golden.files, "run": inputs.run.files}
    sources |= {"baseline": baseline.files} if baseline else {}
    sources |= {"config": inputs.config.files} if inputs.config else {}
    cut_offs = f"k = {', '.join(map(str, report.k))}"
    parts.append(_fold("Inputs", [cut_offs, *(_source(name, listed) for name, listed in sources.items())]))
    return "".join(parts)


def _source(name: str, listed: Sequence[SourceFile]) -> str:
    more = f" and {count(len(listed) - 1, 'more file')}" if len(listed) > 1 else ""
    return f"{name}: {text(listed[0].path)} <small>sha256 {listed[0].sha256[:12]}</small>{more}"


def _fold(title: str, lines: Sequence[str]) -> str:
    more = [f"… and {len(lines) - MAX_WARNINGS:,} more"] if len(lines) > MAX_WARNINGS else []
    listed = "".join(f"<li>{line}</li>" for line in [*lines[:MAX_WARNINGS], *more])
    return f"<details><summary>{title}</summary><ul>{listed}</ul></details>"
