"""The tables of the HTML page that are there without JavaScript: tags, and the first broken queries."""

from collections.abc import Iterable, Mapping

from ragcontract.core.numbers import count, fixed, signed
from ragcontract.core.phrase import Phrase, render
from ragcontract.core.text import shorten, visible
from ragcontract.reports.findings import FindingsByQuery
from ragcontract.reports.html.text import MAX_ID, badge, paragraph, text
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.rank_changes import broken_queries, tolerated_queries
from ragcontract.reports.report import MetricReport, QueryReport, Report, TagReport
from ragcontract.reports.tag_table import tag_changes, tags_worst_first

LISTED, OPEN_TAGS, MAX_TAGS, MAX_DOCS = 100, 10, 200, 5
MAX_NAME, MAX_QUESTION, MAX_WHY = 80, 200, 500
TAG_DIGITS = 3
COLUMNS = ("Query", "Status", "Tags", "Metric", "Change", "Ranks before", "Ranks now", "Broken rules")


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


def first_queries(report: Report) -> str:
    """Write the first broken queries, and tolerated ones, as rows of the table, for readers without JavaScript."""
    findings, key = FindingsByQuery(report), next(iter(at_largest_k(report)))
    return "".join(_query(query, findings, key) for query in _listed(report))


def not_listed(report: Report) -> str | None:
    """Say how many queries only the script can show."""
    rest = len(report.queries) - len(_listed(report))
    return f"{count(rest, 'more query')} can be looked at with JavaScript on." if rest else None


def left_out(report: Report) -> str | None:
    """Say of how many queries the page knows nothing."""
    rest = report.inputs.golden.queries - len(report.queries)
    return (
        f"{count(rest, 'query')} that neither broke a rule nor changed, of so many, are not listed." if rest else None
    )


def _listed(report: Report) -> list[QueryReport]:
    return [*broken_queries(report), *tolerated_queries(report)][:LISTED]


def _query(query: QueryReport, findings: FindingsByQuery, key: str) -> str:
    value, before = query.metrics.get(key), (query.baseline_metrics or {}).get(key)
    change = None if value is None or before is None else value - before
    shown = findings.failing(query.id) or findings.of(query.id)
    found = "".join(f"<li>{text(_say(one.expected))}: {text(_say(one.found))}</li>" for one in shown)
    why = "" if query.status == "fail" else f'<p class="why">{text(findings.why_tolerated(query.id), MAX_WHY)}</p>'
    question = f'<p class="question" dir="auto">{text(query.query, MAX_QUESTION)}</p>'
    chips = "".join(f'<bdi class="tag">{text(tag, MAX_ID)}</bdi>' for tag in query.tags)
    cells = [
        f'<bdi class="id">{text(query.id, MAX_ID)}</bdi>{question}',
        badge(query.status),
        f"<span>{chips}</span>",
        fixed(value, TAG_DIGITS),
        signed(change, TAG_DIGITS),
        _ranks(query.baseline_ranks),
        _ranks(query.ranks),
        f"<div><ul>{found}</ul>{why}</div>",
    ]
    return f'<tr role="row">{"".join(map(_cell, COLUMNS, cells))}</tr>'


def _say(phrase: Phrase) -> str:
    return render(phrase, _name)


def _name(doc_id: str) -> str:
    return shorten(visible(doc_id), MAX_NAME)


def _cell(name: str, content: str) -> str:
    return f'<td role="cell" data-label="{name}">{content}</td>'


def _ranks(ranks: Mapping[str, int | None] | None) -> str:
    if ranks is None:
        return "n/a"
    shown = [str(rank or "–") for rank in list(ranks.values())[:MAX_DOCS]]
    return ", ".join(shown) + (", …" if len(ranks) > MAX_DOCS else "")
