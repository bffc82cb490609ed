"""The table of tags in the HTML report: worst first, with a bar for each metric."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, signed
from ragcontract.reports.html.page_text import shown
from ragcontract.reports.html.scale import of_scale
from ragcontract.reports.report import MetricReport, Report, TagReport
from ragcontract.reports.tag_table import (
    tag_changes,
    tag_mean,
    tag_metrics,
    tag_metrics_note,
    tag_size,
    tags_worst_first,
)

DIGITS = 3


class TagMetric(Struct, frozen=True, kw_only=True):
    """One metric of one tag. ``bar`` and ``before`` are percentages of the metric's scale, None without a value.

    ``direction`` is ``better`` or ``worse``; ``change`` is empty if nothing changed.
    """

    now: str
    change: str
    direction: str
    bar: str | None
    before: str | None


class TagRow(Struct, frozen=True, kw_only=True):
    """One tag; ``number`` identifies it in the script."""

    number: int
    name: str
    queries: str
    metrics: Sequence[TagMetric]


class Tags(Struct, frozen=True, kw_only=True):
    """The table: metric labels, the first tags, further tags folded.

    ``rest`` and ``note`` count the omitted tags and metrics.
    """

    labels: Sequence[str]
    open: Sequence[TagRow]
    title: str
    folded: Sequence[TagRow]
    rest: str
    note: str


def tags(report: Report) -> Tags | None:
    """Return the table, or None if no query has a tag."""
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
