"""The cards of the HTML page: one a row of the metric table."""

from collections.abc import Iterable, Sequence

from ragcontract.core.numbers import count, signed
from ragcontract.judging.gates import COMPARING, GateReport
from ragcontract.reports.html.text import MAX_ID, badge, text
from ragcontract.reports.metric_table import Row, table_rows
from ragcontract.reports.report import MetricReport, Report

OPEN_TAGS = 12  # cards of tags that are not folded
INTERVAL_DIGITS = 3


def cards(report: Report) -> str:
    """Write a card a row of the metric table; those of tags beyond the first are folded."""
    rows = table_rows(report)
    tagged = [row for row in rows if row.tag is not None]
    folded = tagged[OPEN_TAGS:]
    shown = _list(rows[: len(rows) - len(folded)])
    if not folded:
        return shown
    broken = sum(row.status == "fail" for row in folded)
    words = count(len(folded), "more limited mean") + " of tags" + (f", {broken:,} broken" if broken else "")
    return f'{shown}<details class="more"><summary>{words}</summary>{_list(folded)}</details>'


def _list(rows: Iterable[Row]) -> str:
    return f'<ul class="cards">{"".join(map(_card, rows))}</ul>'


def _card(row: Row) -> str:
    before = f'<span class="before"><span class="sr">before </span>{row.baseline} <i>→</i> </span>'
    tag = "" if row.tag is None else f' <span class="of">of <bdi>{text(row.tag, MAX_ID)}</bdi></span>'
    listed = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in _facts(row))
    return (
        f'<li class="card {row.status}"><h3><span>{text(row.label)}{tag}</span>{badge(row.status)}</h3>'
        f'<p class="value">{before if row.compared else ""}<span class="sr">now </span><b>{row.current}</b></p>'
        f"{_whiskers(row.metric, row.gates)}<dl>{listed}</dl></li>"
    )


def _facts(row: Row) -> Iterable[tuple[str, str]]:
    """Name value, change and how sure it is, queries that got better and worse, limit, and why a broken one holds."""
    if row.compared:
        yield "Change", row.change
    noise = row.metric.noise if row.metric else None
    if noise and noise.interval:
        low, high = (signed(end, INTERVAL_DIGITS) for end in noise.interval)
        yield "Interval", f'{low} to {high} <span class="muted">(95 %)</span>'
    if row.p_value is not None:
        among = "" if row.tag is None else ", among all tags"
        yield "Chance", f"p = {row.p_value:.2g} of a drop{among}"
    elif noise:
        yield "Chance", "too few queries changed to say"
    if noise:
        yield "Queries", f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse"
    yield "Limit", text(row.limits or "none")
    for reason in dict.fromkeys(gate.waived for gate in row.gates if gate.waived is not None):
        yield "Waived", text(reason, 300)


def _whiskers(metric: MetricReport | None, gates: Sequence[GateReport]) -> str:
    """Draw the change and its interval on a line, with nothing in the middle and the allowed drop where it is."""
    if metric is None or metric.delta is None:
        return ""
    low, high = (metric.noise and metric.noise.interval) or (metric.delta, metric.delta)
    limits = [
        -gate.limit * ((metric.baseline or 0.0) if gate.kind == "relative_drop" else 1.0)
        for gate in gates
        if gate.kind in COMPARING
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
