"""The metric cards of the HTML report: one for each row of the metric table."""

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, signed
from ragcontract.judging.gates import COMPARING, GateReport
from ragcontract.reports.html.page_text import Badge, badge, shown
from ragcontract.reports.metric_table import Row, table_rows
from ragcontract.reports.report import MetricReport, Report

INTERVAL_DIGITS = 3
NARROWEST = 0.01  # the axis covers at least this share of the scale, so that small changes look small


class Fact(Struct, frozen=True):
    """A line of a card: name and value; ``aside`` is shown muted."""

    name: str
    value: str
    aside: str = ""


class Whiskers(Struct, frozen=True, kw_only=True):
    """The chart of a change and its interval; positions are percentages of its width, with no change in the middle."""

    low: str
    high: str
    change: str
    limits: Sequence[str]


class Card(Struct, frozen=True, kw_only=True):
    """One card. ``before`` is None without a baseline value; ``tag`` is None for all queries."""

    label: str
    tag: str | None
    badge: Badge
    before: str | None
    now: str
    whiskers: Whiskers | None
    facts: Sequence[Fact]


class Cards(Struct, frozen=True, kw_only=True):
    """All cards; those of further tags are folded under a ``title``."""

    open: Sequence[Card]
    title: str
    folded: Sequence[Card]


def cards(report: Report) -> Cards:
    """Return a card for each row of the metric table."""
    rows = table_rows(report)
    folded = [row for row in rows if row.tag is not None][bounds.HTML_CARDS :]
    broken = sum(row.status == "fail" for row in folded)
    return Cards(
        open=[_card(row) for row in rows[: len(rows) - len(folded)]],
        title=count(len(folded), "more limited mean") + " of tags" + (f", {broken:,} broken" if broken else ""),
        folded=[_card(row) for row in folded],
    )


def _card(row: Row) -> Card:
    return Card(
        label=shown(row.label),
        tag=None if row.tag is None else shown(row.tag, bounds.HTML_ID),
        badge=badge(row.status),
        before=row.baseline if row.compared else None,
        now=row.current,
        whiskers=_whiskers(row.metric, row.gates),
        facts=list(_facts(row)),
    )


def _facts(row: Row) -> Iterable[Fact]:
    """Yield the change, its interval and p-value, the queries that got better and worse, the limit and waivers."""
    if row.compared:
        yield Fact("Change", row.change)
    noise = row.metric.noise if row.metric else None
    if noise and noise.interval:
        low, high = (signed(end, INTERVAL_DIGITS) for end in noise.interval)
        yield Fact("Interval", f"{low} to {high}", "(95 %)")
    if row.p_value is not None:
        worse = "an increase" if row.metric and row.metric.better == "lower" else "a drop"
        among = "" if row.tag is None else ", among all tags"
        yield Fact("Chance", f"p = {row.p_value:.2g} of {worse}{among}")
    elif noise:
        yield Fact("Chance", "too few queries changed to say")
    if noise:
        yield Fact("Queries", f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse")
    yield Fact("Limit", shown(row.limits or "none"))
    for reason in dict.fromkeys(gate.waived for gate in row.gates if gate.waived is not None):
        yield Fact("Waived", shown(reason, bounds.HTML_REASON))


def _whiskers(metric: MetricReport | None, gates: Sequence[GateReport]) -> Whiskers | None:
    """Return the positions of the change, its interval and its limits; the axis reaches as far as the largest value."""
    if metric is None or metric.delta is None:
        return None
    low, high = (metric.noise and metric.noise.interval) or (metric.delta, metric.delta)
    limits = [_limit(gate, metric.baseline or 0.0) for gate in gates if gate.kind in COMPARING]
    width = metric.scale.high - metric.scale.low
    least = NARROWEST * width if 0 < width < math.inf else NARROWEST
    reach = max(abs(value) for value in (low, high, metric.delta, *limits, least)) * 1.1

    def x(value: float) -> str:
        return f"{50 + 50 * value / reach:.2f}%"

    return Whiskers(low=x(low), high=x(high), change=x(metric.delta), limits=[x(limit) for limit in limits])


def _limit(gate: GateReport, baseline: float) -> float:
    """Return the change that a limit allows; negative for a drop."""
    allowed = gate.limit * baseline if gate.kind.startswith("relative") else gate.limit
    return -allowed if gate.kind.endswith("drop") else allowed
