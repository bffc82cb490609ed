"""Sorts tags for the reports, worst first, and computes their changes; selects the metrics of the table."""

import math

from ragcontract.core import bounds
from ragcontract.core.numbers import SAME, count
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import MetricReport, Report, TagReport


def tag_metrics(report: Report) -> dict[str, MetricReport]:
    """Return the metrics of the table of tags: at the largest cut-off, and those without one.

    They are those that any tag has a value of; of more than ``bounds.TAG_METRICS``, the first ones that have a limit,
    or the first ones if none has.
    """
    metrics = _measured(report)
    if len(metrics) <= bounds.TAG_METRICS:
        return metrics
    gated = {gate.metric for gate in report.gates}
    limited = [key for key in metrics if key in gated] or list(metrics)
    return {key: metrics[key] for key in limited[: bounds.TAG_METRICS]}


def tag_metrics_note(report: Report) -> str:
    """Return how many metrics the table of tags leaves out; empty if it has all."""
    left_out = len(_measured(report)) - len(tag_metrics(report))
    return f"{count(left_out, 'more metric')} by tag: in the JSON report." if left_out else ""


def _measured(report: Report) -> dict[str, MetricReport]:
    metrics = at_largest_k(report)
    tags = report.tags.values()
    sides = [side for tag in tags for side in (tag.metrics, tag.baseline_metrics or {})]
    measured = {key: one for key, one in metrics.items() if any(side.get(key) is not None for side in sides)}
    return measured or metrics


def tags_worst_first(report: Report) -> list[tuple[str, TagReport]]:
    """Return tags by their worst change of any metric of the table, then by the mean of the first metric.

    Of tags with equal changes, those without a mean (none of their queries is answerable) come last.
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
    """Return the change of each metric of a tag that both sides have."""
    now, before = tag.metrics_shared or {}, tag.baseline_metrics or {}
    return {
        key: value - old for key, value in now.items() if value is not None and (old := before.get(key)) is not None
    }


def tag_mean(tag: TagReport, key: str) -> float | None:
    """Return the mean of a metric over the queries that its change is over; without a change, over all with the tag."""
    return (tag.metrics_shared or {}).get(key) if key in tag_changes(tag) else tag.metrics[key]


def tag_size(tag: TagReport) -> str:
    """Return how many queries have the tag: ``4``, or ``3 of 4`` if the means are over those that both sides have."""
    if tag.shared is None or tag.shared in {0, tag.queries}:
        return f"{tag.queries:,}"
    return f"{tag.shared:,} of {tag.queries:,}"
