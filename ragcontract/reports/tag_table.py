"""Tags as people read them: worst first, with what changed."""

import math

from ragcontract.core.numbers import SAME
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import Report, TagReport


def tags_worst_first(report: Report) -> list[tuple[str, TagReport]]:
    """Order tags by the worst change of any metric at the largest cut-off; equal changes by the first metric's mean.

    A tag that has no mean, as none of its queries is answerable, comes last of those.
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
    """Return by how much each metric of a tag changed, where both sides have it."""
    now, before = tag.metrics_shared or {}, tag.baseline_metrics or {}
    return {
        key: value - old for key, value in now.items() if value is not None and (old := before.get(key)) is not None
    }
