"""Parts of the reports for people: the matrix of modes, the tiers, and the section on overlap with the baseline.

That section shows what the run retrieved that the baseline did not, and how much labels could still change.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.numbers import as_written, count, digits_beside, fixed
from ragcontract.core.safe_text import clipped
from ragcontract.report.parts import ModesReport, TierReport
from ragcontract.report.record import LeastOverlap, MetricReport, Report

DIGITS, PLACES = 3, 2
CORNER = "Expected ↓ found →"
NO_VALUE = "-"


class MatrixCell(Struct, frozen=True, kw_only=True):
    """How many rows with the expected mode of the line have the mode of the column."""

    number: int
    share: float  # of all rows of the line
    before: int | None  # the number in a baseline that is a run
    verdict: Literal["right", "wrong", ""]  # empty for a cell without rows


class MatrixLine(Struct, frozen=True, kw_only=True):
    """An expected mode with its cells and its recall, as text."""

    name: str
    cells: Sequence[MatrixCell]
    recall: str


class Matrix(Struct, frozen=True, kw_only=True):
    """The confusion matrix of modes, with cells as a report shows them."""

    title: str
    columns: Sequence[str]
    lines: Sequence[MatrixLine]
    precision: Sequence[str]  # a text for each column
    compared: bool


def mode_matrix(report: Report) -> Matrix | None:
    """Return the matrix of the modes; None if no query expects one."""
    modes = report.modes
    if not modes or not modes.matrix:
        return None
    names = list(modes.matrix)[: bounds.MATRIX]
    columns = list(dict.fromkeys(name for line in names for name in modes.matrix[line]))[: bounds.MATRIX]
    right = sum(modes.matrix[name].get(name, 0) for name in names)
    total = sum(number for line in modes.matrix.values() for number in line.values())
    measured = {name: modes.per_mode.get(name) for name in (*names, *columns)}
    return Matrix(
        title=f"Modes: {right:,} of {count(total, 'row')} as expected",
        columns=columns,
        lines=[
            MatrixLine(
                name=name,
                cells=[_cell(modes, name, column) for column in columns],
                recall=fixed(of_mode.recall, DIGITS) if (of_mode := measured[name]) else NO_VALUE,
            )
            for name in names
        ],
        precision=[fixed(of_mode.precision, DIGITS) if (of_mode := measured[name]) else "" for name in columns],
        compared=modes.baseline_matrix is not None,
    )


def _cell(modes: ModesReport, expected: str, actual: str) -> MatrixCell:
    line = modes.matrix[expected]
    number, total = line.get(actual, 0), sum(line.values())
    before = None if modes.baseline_matrix is None else modes.baseline_matrix.get(expected, {}).get(actual, 0)
    return MatrixCell(
        number=number,
        share=number / total if total else 0.0,
        before=before,
        verdict="" if not number else "right" if expected == actual else "wrong",
    )


def tier_rows(report: Report) -> Sequence[TierReport]:
    """Return the tiers, at most ``bounds.ROWS``; empty if the contract has none."""
    return (report.tiers or [])[: bounds.ROWS]


def tiers_title(report: Report) -> str:
    """Return how many tiers are broken or skipped: ``3 tiers: 1 broken, 1 skipped``; names would need escaping."""
    statuses = [tier.status for tier in report.tiers or []]
    sizes = {"broken": statuses.count("fail"), "waived": statuses.count("waived"), "skipped": statuses.count("skipped")}
    parts = ", ".join(f"{size:,} {word}" for word, size in sizes.items() if size)
    return count(len(statuses), "tier") + (f": {parts}" if parts else "")


def passed(tier: TierReport) -> str:
    """Return how many queries of a tier passed: ``57 of 60``."""
    return f"{tier.passed:,} of {tier.queries:,}"


def rate(tier: TierReport) -> str:
    """Return the pass rate of a tier and its counts: ``0.950 (57 of 60)``."""
    digits = DIGITS
    if tier.rate is not None and tier.minimum is not None:
        digits = max(DIGITS, digits_beside(tier.rate, tier.minimum))
    return f"{fixed(tier.rate, digits)} ({passed(tier)})"


def minimum(tier: TierReport) -> str:
    """Return the lowest pass rate that is allowed, as text; empty if the tier has none."""
    return "" if tier.minimum is None else as_written(tier.minimum)


class OverlapSection(Struct, frozen=True, kw_only=True):
    """The section on overlap with the baseline."""

    title: str
    facts: list[str]  # sentences without names from files
    least: list[LeastOverlap]  # the queries with the least overlap


def overlap_section(report: Report) -> OverlapSection | None:
    """Return the section on overlap; None without a baseline, and if the run returned the same in the same order."""
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
            yield f"{_label(metric.label)} {fixed(metric.current, PLACES)}"


def _best(report: Report) -> Iterator[str]:
    """Yield a sentence on the highest values that the metrics at the largest cut-off could have."""
    values = [
        f"{_label(metric.label)} {fixed(metric.current, PLACES)}, at most {fixed(_number(metric.if_relevant), PLACES)}"
        for metric in report.metrics.values()
        if metric.k == max(report.k) and _could_rise(metric)
    ]
    if values:
        yield f"If the documents that nobody has judged were relevant: {'; '.join(values)}."


def _could_rise(metric: MetricReport) -> bool:
    """Return whether the best case differs from the current value in the digits that are shown."""
    best = _number(metric.if_relevant)
    return best is not None and fixed(best, PLACES) != fixed(metric.current, PLACES)


def _number(value: float | UnsetType) -> float | None:
    return None if isinstance(value, UnsetType) else value


def _label(label: str) -> str:
    return clipped(label, bounds.NAME)
