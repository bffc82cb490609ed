"""The metric table and the table of tags of the reports for people, as rows that each format renders."""

import math
from collections.abc import Iterator, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.numbers import (
    SAME,
    fixed,
    milliseconds,
    more,
    ms_digits,
    signed,
)
from ragcontract.decision.gate_report import GateReport, Status, worst
from ragcontract.report.limit_text import chance_of, digits_of, limits_text
from ragcontract.report.record import MetricReport, Report, TagReport

NO_VALUE = "no value"


class Row(Struct, frozen=True, kw_only=True):
    """One row with formatted values, all of them over the same queries.

    With a baseline value, these are the queries that both sides have. A limit on the value itself counts all queries.
    If their mean differs, the limit has a row of its own without a baseline.
    """

    label: str
    tag: str | None = None  # None for queries with any tag
    over: str = ""  # the queries of a row of its own: all 25 queries
    metric: MetricReport | None = None  # the numbers; None for a quantity that is not a metric
    gates: Sequence[GateReport] = ()  # its limits
    p_value: float | None = None  # of a change for the worse; for tags, adjusted over all tags
    baseline: str
    current: str
    change: str
    limits: str
    status: Status
    digits: int = 0  # decimals, which all metrics of the table share

    @property
    def compared(self) -> bool:
        """Whether there is a baseline value."""
        return self.baseline != NO_VALUE

    @property
    def direction(self) -> str:
        """``lower is better`` for such a metric, unless its limits (a maximum, an allowed rise) say so already."""
        return "lower is better" if self.metric and self.metric.better == "lower" and not self.gates else ""

    def values(self, arrow: str = "→") -> str:
        """Return the values as text: ``0.82 → 0.68 (-0.14)``, or the current value alone."""
        return f"{self.baseline} {arrow} {self.current} ({self.change})" if self.compared else self.current


class Mean(Struct, frozen=True, kw_only=True):
    """The mean of a metric over some queries with its limits, before it is formatted as a row."""

    metric: MetricReport
    gates: Sequence[GateReport]
    tag: str | None = None
    over: str = ""
    p_value: float | None = None


def table_rows(report: Report) -> list[Row]:
    """Return the means over all queries, other quantities with a limit, and the limited means of tags, worst first."""
    overall, tagged = list(_means(report)), list(_means_of_tags(report))
    digits = digits_of(report)
    rows = [[_row(mean, digits) for mean in means] for means in (overall, tagged)]
    return [*rows[0], *_quantity_rows(report), *rows[1]]


def at_largest_k(report: Report) -> dict[str, MetricReport]:
    """Return the metrics at the largest cut-off, and those without one; no diagnostic ones."""
    k = max(report.k)
    return {
        key: metric for key, metric in report.metrics.items() if metric.k in {None, k} and metric.diagnostic is UNSET
    }


def main_metric(report: Report) -> str:
    """Return the key of the first metric of the table that has a value, or of the first one if none has."""
    metrics = at_largest_k(report)
    return next((key for key, metric in metrics.items() if metric.current is not None), next(iter(metrics)))


def differs(metric: MetricReport) -> bool:
    """Return whether the mean over all queries differs from the mean that is compared with the baseline."""
    if metric.current is None or metric.current_shared is None or metric.baseline is None:
        return False
    return abs(metric.current - metric.current_shared) > SAME


def _means(report: Report) -> Iterator[Mean]:
    """Yield the means over all queries: at the largest cut-off, and others that have a limit."""
    largest = at_largest_k(report)
    by_key: dict[str, list[GateReport]] = {}
    for gate in report.gates:
        if gate.tag is None:
            by_key.setdefault(gate.metric, []).append(gate)
    over = f"all {report.inputs.golden.queries:,} queries"
    about_answers = report.broken.answers is not UNSET
    with_value = about_answers or any(metric.current is not None for metric in report.metrics.values())
    for key, metric in report.metrics.items():
        gates = by_key.get(key, [])
        if with_value and not gates and metric.current is None and metric.baseline is None:
            continue  # no query names documents, or has what this metric measures
        if gates or key in largest:  # report.json has the other cut-offs
            p_value = metric.noise.p_value if metric.noise else None
            yield from _over_the_same(Mean(metric=metric, gates=gates, p_value=p_value), over)


def _means_of_tags(report: Report) -> Iterator[Mean]:
    tagged: dict[tuple[str, str], list[GateReport]] = {}
    for gate in sorted(report.gates, key=lambda gate: (gate.status != "fail", _room(gate))):
        if gate.tag is not None and gate.metric in report.metrics:
            tagged.setdefault((gate.tag, gate.metric), []).append(gate)
    for (tag, key), gates in tagged.items():
        of_tag, metric = report.tags[tag], _metric_of(tag, key, report)
        mean = Mean(metric=metric, gates=gates, tag=tag, p_value=of_tag.p_values.get(key))
        yield from _over_the_same(mean, f"all {of_tag.queries:,} queries")


def _over_the_same(mean: Mean, over: str) -> Iterator[Mean]:
    """Yield a mean, or two where limits on the value itself count more queries than the comparison does."""
    if not differs(mean.metric):
        yield mean
        return
    changes = [gate for gate in mean.gates if gate.compares]
    values = [gate for gate in mean.gates if not gate.compares]
    if changes or mean.tag is None:
        yield replace(mean, gates=changes)
    if values:
        alone = replace(mean.metric, current_shared=None, baseline=None, delta=None, noise=None)
        yield replace(mean, metric=alone, gates=values, over=over, p_value=None)


def _metric_of(tag: str, key: str, report: Report) -> MetricReport:
    of_tag = report.tags[tag]
    shared, before = (of_tag.metrics_shared or {}).get(key), (of_tag.baseline_metrics or {}).get(key)
    return replace(
        report.metrics[key],
        current=of_tag.metrics[key],
        current_shared=shared,
        baseline=before,
        delta=None if shared is None or before is None else shared - before,
        noise=None,
    )


def _room(gate: GateReport) -> float:
    """Return the distance of a gate from its limit; negative if it is beyond."""
    return gate.observed - gate.limit if gate.kind == "minimum" else gate.limit - gate.observed


def _row(mean: Mean, digits: int) -> Row:
    metric = mean.metric
    current = metric.current if metric.delta is None else metric.current_shared
    return Row(
        label=metric.label,
        tag=mean.tag,
        over=mean.over,
        metric=metric,
        gates=mean.gates,
        p_value=mean.p_value,
        baseline=NO_VALUE if metric.delta is None else fixed(metric.baseline, digits),
        current=NO_VALUE if current is None else fixed(current, digits),
        change=NO_VALUE if metric.delta is None else signed(metric.delta, digits),
        limits="; ".join(
            filter(None, [limits_text(mean.gates, digits, metric), chance_of(mean.gates, metric, digits)])
        ),
        status=worst(mean.gates),
        digits=digits,
    )


def _quantity_rows(report: Report) -> Iterator[Row]:
    """Yield a row for each limited quantity that is not a metric."""
    by_key: dict[tuple[str, str | None], list[GateReport]] = {}
    for gate in report.gates:
        if gate.metric not in report.metrics:
            by_key.setdefault((gate.metric, gate.of), []).append(gate)
    for (_, of), gates in by_key.items():
        if gates[0].unit == "ms":
            yield _latency_row(gates)
            continue
        parts = [gates] if len({gate.now for gate in gates}) == 1 else [[gate] for gate in gates]
        yield from [_share_row(part, of, digits_of(report)) for part in parts]


def _share_row(gates: Sequence[GateReport], of: str | None, digits: int) -> Row:
    """Return the row of a share, such as a pass rate, over all queries or those with a tag or a tier."""
    now = gates[0].now or 0.0
    before = next((gate.before for gate in gates if gate.compares), None)
    return Row(
        label=gates[0].label,
        tag=of,
        gates=gates,
        baseline=NO_VALUE if before is None else fixed(before, digits),
        current=fixed(now, digits),
        change=NO_VALUE if before is None else signed(now - before, digits),
        limits=limits_text(gates, digits),
        status=worst(gates),
    )


def _latency_row(gates: Sequence[GateReport]) -> Row:
    now, before = gates[0].now or 0.0, gates[0].before
    digits = ms_digits(now, *(gate.limit for gate in gates if not gate.compares))
    if before is not None:
        digits = max(digits, ms_digits(now, before))
    return Row(
        label=gates[0].label,
        gates=gates,
        baseline=NO_VALUE if before is None else milliseconds(before, digits),
        current=milliseconds(now, digits),
        change=NO_VALUE if before is None else milliseconds(now - before, digits, sign=True),
        limits=limits_text(gates, digits),
        status=worst(gates),
    )


def tag_metrics(report: Report) -> dict[str, MetricReport]:
    """Return the metrics of the table of tags: those at the largest cut-off or without one that any tag has a value of.

    Of more than ``bounds.TAG_METRICS``, they are the first ones with a limit, or the first ones if none has a limit.
    """
    metrics = _measured(report)
    if len(metrics) <= bounds.TAG_METRICS:
        return metrics
    gated = {gate.metric for gate in report.gates}
    limited = [key for key in metrics if key in gated] or list(metrics)
    return {key: metrics[key] for key in limited[: bounds.TAG_METRICS]}


def tag_metrics_note(report: Report) -> str:
    """Return a sentence that counts the metrics that the table of tags leaves out; empty if it has all."""
    return more(len(_measured(report)), len(tag_metrics(report)), "metric", "{} by tag: in the JSON report.")


def _measured(report: Report) -> dict[str, MetricReport]:
    metrics = at_largest_k(report)
    tags = report.tags.values()
    sides = [side for tag in tags for side in (tag.metrics, tag.baseline_metrics or {})]
    measured = {key: metric for key, metric in metrics.items() if any(side.get(key) is not None for side in sides)}
    return measured or metrics


def tags_worst_first(report: Report) -> list[tuple[str, TagReport]]:
    """Return the tags, sorted by their worst change of any metric of the table, then by the mean of the first metric.

    Among tags with equal changes, those without a mean, whose queries have no relevant documents, come last.
    """
    keys = list(tag_metrics(report))
    signs = {key: 1.0 if report.metrics[key].better == "higher" else -1.0 for key in keys}

    def order(item: tuple[str, TagReport]) -> tuple[float, float]:
        changes = tag_changes(item[1])
        worst_change = min((signs[key] * change for key, change in changes.items() if key in signs), default=0.0)
        now = item[1].metrics.get(keys[0])
        return 0.0 if abs(worst_change) <= SAME else worst_change, math.inf if now is None else now

    return sorted(report.tags.items(), key=order)


def tag_changes(tag: TagReport) -> dict[str, float]:
    """Return the change of each metric that both sides have for a tag."""
    now, before = tag.metrics_shared or {}, tag.baseline_metrics or {}
    return {
        key: value - old for key, value in now.items() if value is not None and (old := before.get(key)) is not None
    }


def tag_mean(tag: TagReport, key: str) -> float | None:
    """Return the mean of a metric over the queries of its change or, without a change, over all with the tag."""
    return (tag.metrics_shared or {}).get(key) if key in tag_changes(tag) else tag.metrics[key]


def tag_size(tag: TagReport) -> str:
    """Return how many queries have the tag: ``4``, or ``3 of 4`` if the means are over those that both sides have."""
    if tag.shared is None or tag.shared in {0, tag.queries}:
        return f"{tag.queries:,}"
    return f"{tag.shared:,} of {tag.queries:,}"
