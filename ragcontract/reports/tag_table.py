"""Sorts tags for the reports, worst first, and computes their changes."""

import math

from ragcontract.core.numbers import SAME
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import Report, TagReport


def tags_worst_first(report: Report) -> list[tuple[str, TagReport]]:
    """Return tags by their worst change of any metric at the largest cut-off, then by the mean of the first metric.

    Of tags with equal changes, those without a mean (none of their queries is answerable) come last.
    """
    keys = list(at_largest_k(report))
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
