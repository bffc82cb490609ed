"""The metrics in the HTML report: a card for each row of the metric table, and the table of tags, worst first."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Scale
from ragcontract.core.numbers import count, fixed, signed
from ragcontract.decision.gate_report import GateReport
from ragcontract.report.html.page_text import Badge, badge, of_scale, shown
from ragcontract.report.limit_text import ends_of, outcomes_of, p_of, tested_together, whole_of
from ragcontract.report.metric_table import (
    Row,
    table_rows,
    tag_changes,
    tag_mean,
    tag_metrics,
    tag_metrics_note,
    tag_size,
    tags_worst_first,
)
from ragcontract.report.record import MetricReport, Report, TagReport

DIGITS = 3


class Fact(Struct, frozen=True):
    """A line of a card."""

    name: str
    value: str
    aside: str = ""  # shown muted


class Bar(Struct, frozen=True, kw_only=True):
    """The bar of a metric. Positions are percentages of its whole scale, so that bars can be compared."""

    now: str
    before: str | None = None  # the baseline value
    limits: Sequence[str] = ()  # the worst values that are allowed
    # Where the value is likely to be: the baseline plus the bounds of the change.
    interval: tuple[str, str] | None = None


class Card(Struct, frozen=True, kw_only=True):
    """One card."""

    label: str
    tag: str | None  # None for all queries
    over: str  # the queries, if they are not those of the comparison
    badge: Badge
    before: str | None  # None without a baseline value
    now: str
    change: str
    bar: Bar | None
    facts: Sequence[Fact]


class Group(Struct, frozen=True, kw_only=True):
    """Cards that are folded under a title."""

    title: str
    cards: Sequence[Card]


class Cards(Struct, frozen=True, kw_only=True):
    """All cards: the first in the open, the others folded."""

    open: Sequence[Card]
    folded: Sequence[Group]


def cards(report: Report) -> Cards:
    """Return a card for each row of the metric table; cards without a limit and of further tags are folded."""
    rows = table_rows(report)
    limited = [row for row in rows if row.gates]
    others = [row for row in rows if not row.gates]
    tags = [row for row in limited if row.tag is not None][bounds.HTML_CARDS :]
    broken = sum(row.status == "fail" for row in tags)
    title = count(len(tags), "more limited mean") + " of tags" + (f", {broken:,} broken" if broken else "")
    folds = [(f"{count(len(others), 'metric')} without a limit", others if limited else []), (title, tags)]
    tests = tested_together(report)
    among = f"(adjusted over {tests:,} limits)" if tests > 1 else ""
    return Cards(
        open=[_card(row, among) for row in (limited[: len(limited) - len(tags)] if limited else others)],
        folded=[Group(title=title, cards=[_card(row, among) for row in rows]) for title, rows in folds if rows],
    )


def _card(row: Row, among: str) -> Card:
    return Card(
        label=shown(row.label),
        tag=None if row.tag is None else shown(row.tag, bounds.HTML_ID),
        over=row.over,
        badge=badge(row.status),
        before=row.baseline if row.compared else None,
        now=row.current,
        change=row.change if row.compared else "",
        bar=_bar(row),
        facts=list(_facts(row, among if any(gate.alpha for gate in row.gates) else "")),
    )


def _facts(row: Row, among: str) -> Iterable[Fact]:
    """Yield the limits and waivers, the bounds and p-value of the change, the queries that got better and worse."""
    if row.limits:
        yield Fact("Limit", shown(row.limits))
    for reason in dict.fromkeys(gate.waived for gate in row.gates if gate.waived is not None):
        yield Fact("Waived", shown(reason, bounds.HTML_REASON))
    noise = row.metric.noise if row.metric else None
    if row.metric and (ends := ends_of(row.gates, row.metric)):
        worst, best = (signed(end, row.digits) for end in ends)
        outcome = outcomes_of(row.gates)
        yield Fact("Change", f"at worst {worst}, at best {best}", outcome and f"(limit: {outcome})")
    if row.p_value is not None:
        worse = "an increase" if row.metric and row.metric.better == "lower" else "a drop"
        yield Fact("Chance", f"{p_of(row.gates, row.p_value)} for {worse}", among)
    if noise:
        yield Fact("Queries", f"{noise.wins:,} better, {noise.ties:,} the same, {noise.losses:,} worse")
    if row.direction:
        yield Fact("Direction", row.direction)
    if row.metric and row.metric.scale != Scale():
        yield Fact("Scale", f"{row.metric.scale.low:g} to {row.metric.scale.high:g}")


def _bar(row: Row) -> Bar | None:
    """Return the bar of a metric; None without a value, and on an unbounded scale."""
    metric = row.metric
    if metric is None:
        return None
    now = of_scale(metric.current if metric.delta is None else metric.current_shared, metric.scale)
    if now is None:
        return None
    before, bounds = metric.baseline, ends_of(row.gates, metric)
    ends = [of_scale(before + end, metric.scale) for end in sorted(bounds)] if bounds and before is not None else []
    return Bar(
        now=now,
        before=of_scale(before, metric.scale),
        limits=list(_marks(row.gates, metric)),
        interval=(ends[0] or "", ends[1] or "") if ends else None,
    )


def _marks(gates: Sequence[GateReport], metric: MetricReport) -> Iterable[str]:
    """Yield the positions of the limits that are on the scale."""
    for gate in gates:
        worst = _worst_allowed(gate, metric)
        if worst is not None and metric.scale.low <= worst <= metric.scale.high:
            yield of_scale(worst, metric.scale) or ""


def _worst_allowed(gate: GateReport, metric: MetricReport) -> float | None:
    """Return the worst value that a limit allows; None if that depends on a baseline value and there is none."""
    if not gate.compares:
        return gate.limit
    before, whole = metric.baseline, whole_of(metric)
    if before is None or whole is None:
        return None
    allowed = gate.limit * whole if gate.relative else gate.limit
    return before - allowed if gate.kind == "drop" else before + allowed


class TagMetric(Struct, frozen=True, kw_only=True):
    """One metric of one tag."""

    now: str
    change: str  # empty if nothing changed
    direction: str  # better or worse
    bar: str | None  # a percentage of the metric's scale; None without a value
    before: str | None  # the same for the baseline


class TagRow(Struct, frozen=True, kw_only=True):
    """One tag."""

    number: int  # identifies it in the script
    name: str
    queries: str
    metrics: Sequence[TagMetric]


class Tags(Struct, frozen=True, kw_only=True):
    """The table of tags."""

    labels: Sequence[str]  # of the metrics
    open: Sequence[TagRow]  # the first tags
    title: str  # of the folded ones
    folded: Sequence[TagRow]
    rest: str  # counts the tags that are left out
    note: str  # counts the metrics that are left out


def tags(report: Report) -> Tags | None:
    """Return the table of tags, or None if no query has a tag."""
    if not report.tags:
        return None
    numbers = {name: number for number, name in enumerate(report.tags)}
    metrics = tag_metrics(report)
    worst = tags_worst_first(report)
    rows = [
        TagRow(
            number=numbers[name],
            name=shown(name, bounds.HTML_ID),
            queries=tag_size(tag),
            metrics=list(_metrics(tag, metrics)),
        )
        for name, tag in worst[: bounds.HTML_TAGS]
    ]
    return Tags(
        labels=[shown(metric.label) for metric in metrics.values()],
        open=rows[: bounds.HTML_OPEN_TAGS],
        title=count(len(worst) - bounds.HTML_OPEN_TAGS, "more tag"),
        folded=rows[bounds.HTML_OPEN_TAGS :],
        rest=f"… and {count(len(worst) - bounds.HTML_TAGS, 'more tag')}." if worst[bounds.HTML_TAGS :] else "",
        note=tag_metrics_note(report),
    )


def _metrics(tag: TagReport, metrics: Mapping[str, MetricReport]) -> Iterable[TagMetric]:
    changes, before = tag_changes(tag), tag.baseline_metrics or {}
    for key, metric in metrics.items():
        mean, change = tag_mean(tag, key), round(changes.get(key, 0.0), DIGITS)
        rose_is = "better" if metric.better == "higher" else "worse"
        fell_is = "worse" if metric.better == "higher" else "better"
        yield TagMetric(
            now="no value" if mean is None else fixed(mean, DIGITS),
            change=signed(change, DIGITS) if change else "",
            direction=rose_is if change > 0 else fell_is,
            bar=of_scale(mean, metric.scale),
            before=of_scale(before.get(key), metric.scale),
        )
