"""The folded section on overlap: what else is retrieved than for the baseline, and what labels could still change."""

from collections.abc import Iterator

from msgspec import UNSET, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.numbers import fixed
from ragcontract.core.text import clipped
from ragcontract.reports.overlap_report import LeastOverlap
from ragcontract.reports.report import MetricReport, Report

DIGITS = 2


class OverlapSection(Struct, frozen=True, kw_only=True):
    """The title, sentences without names from files, and the queries with the least overlap."""

    title: str
    facts: list[str]
    least: list[LeastOverlap]


def overlap_section(report: Report) -> OverlapSection | None:
    """Return the section; None without a baseline, and if the run returned the same in the same order."""
    if not report.least_overlap:
        return None
    return OverlapSection(
        title="Overlap with the baseline, and what nobody has judged",
        facts=[f"{', '.join(_diagnostics(report))}.", *_best(report)],
        least=report.least_overlap,
    )


def _diagnostics(report: Report) -> Iterator[str]:
    for metric in report.metrics.values():
        if metric.diagnostic is not UNSET and metric.k == max(report.k) and metric.current is not None:
            yield f"{_label(metric.label)} {fixed(metric.current, DIGITS)}"


def _best(report: Report) -> Iterator[str]:
    """Yield what the metrics at the largest cut-off could be at most."""
    found = [
        f"{_label(metric.label)} {fixed(metric.current, DIGITS)}, at most {fixed(_number(metric.if_relevant), DIGITS)}"
        for metric in report.metrics.values()
        if metric.k == max(report.k) and _could_rise(metric)
    ]
    if found:
        yield f"If the documents that nobody has judged were relevant: {'; '.join(found)}."


def _could_rise(metric: MetricReport) -> bool:
    """Return whether the best case is another number as it is shown."""
    best = _number(metric.if_relevant)
    return best is not None and fixed(best, DIGITS) != fixed(metric.current, DIGITS)


def _number(value: float | UnsetType) -> float | None:
    return None if isinstance(value, UnsetType) else value


def _label(label: str) -> str:
    return clipped(label, bounds.NAME)
