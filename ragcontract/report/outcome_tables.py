"""The tables of the reports for people about answers: how often each mode was found, and the tiers.

The folded section on overlap: what else is retrieved than for the baseline, and what labels could still change.
"""

from collections.abc import Iterator, Sequence
from typing import Generic, Literal, TypeVar

from msgspec import UNSET, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.numbers import as_written, count, digits_beside, fixed
from ragcontract.core.safe_text import clipped
from ragcontract.report.answer_report import ModesReport, TierReport
from ragcontract.report.record import LeastOverlap, MetricReport, Report

DIGITS = 3
CORNER = "Expected ↓ found →"
NO_VALUE = "-"
Cell = TypeVar("Cell")


class MatrixCell(Struct, frozen=True, kw_only=True):
    """How many rows with the expected mode of the line have the mode of the column.

    ``share`` is that of all rows of the line, ``before`` the number in a baseline that is a run. ``verdict`` is empty
    for a cell without rows.
    """

    number: int
    share: float
    before: int | None
    verdict: Literal["right", "wrong", ""]


class MatrixLine(Struct, Generic[Cell], frozen=True, kw_only=True):
    """An expected mode with its cells and its recall, as text."""

    name: str
    cells: Sequence[Cell]
    recall: str


class Matrix(Struct, Generic[Cell], frozen=True, kw_only=True):
    """The confusion matrix of modes, with cells as a report shows them.

    ``precision`` has one text for each of the ``columns``.
    """

    title: str
    columns: Sequence[str]
    lines: Sequence[MatrixLine[Cell]]
    precision: Sequence[str]
    compared: bool


def mode_matrix(report: Report) -> Matrix[MatrixCell] | None:
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
                recall=fixed(one.recall, DIGITS) if (one := measured[name]) else NO_VALUE,
            )
            for name in names
        ],
        precision=[fixed(one.precision, DIGITS) if (one := measured[name]) else "" for name in columns],
        compared=modes.baseline_matrix is not None,
    )


def _cell(modes: ModesReport, expected: str, found: str) -> MatrixCell:
    line = modes.matrix[expected]
    number, total = line.get(found, 0), sum(line.values())
    before = None if modes.baseline_matrix is None else modes.baseline_matrix.get(expected, {}).get(found, 0)
    return MatrixCell(
        number=number,
        share=number / total if total else 0.0,
        before=before,
        verdict="" if not number else "right" if expected == found else "wrong",
    )


def tiers_of(report: Report) -> Sequence[TierReport]:
    """Return the tiers, at most ``bounds.ROWS``; empty if the contract has none."""
    return (report.tiers or [])[: bounds.ROWS]


def tiers_title(report: Report) -> str:
    """Return how the tiers fared: ``3 tiers: 1 broken, 1 skipped``; without their names, which are not ours."""
    statuses = [tier.status for tier in report.tiers or []]
    sizes = {"broken": statuses.count("fail"), "waived": statuses.count("waived"), "skipped": statuses.count("skipped")}
    parts = ", ".join(f"{size:,} {word}" for word, size in sizes.items() if size)
    return count(len(statuses), "tier") + (f": {parts}" if parts else "")


def passed(tier: TierReport) -> str:
    """Return how many queries of a tier passed: ``57 of 60``."""
    return f"{tier.passed:,} of {tier.queries:,}"


def rate(tier: TierReport) -> str:
    """Return the pass rate of a tier and how it comes about: ``0.950 (57 of 60)``."""
    digits = DIGITS
    if tier.rate is not None and tier.minimum is not None:
        digits = max(DIGITS, digits_beside(tier.rate, tier.minimum))
    return f"{fixed(tier.rate, digits)} ({passed(tier)})"


def minimum(tier: TierReport) -> str:
    """Return the least pass rate that is allowed; empty if the tier has none."""
    return "" if tier.minimum is None else as_written(tier.minimum)


PLACES = 2


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
            yield f"{_label(metric.label)} {fixed(metric.current, PLACES)}"


def _best(report: Report) -> Iterator[str]:
    """Yield what the metrics at the largest cut-off could be at most."""
    found = [
        f"{_label(metric.label)} {fixed(metric.current, PLACES)}, at most {fixed(_number(metric.if_relevant), PLACES)}"
        for metric in report.metrics.values()
        if metric.k == max(report.k) and _could_rise(metric)
    ]
    if found:
        yield f"If the documents that nobody has judged were relevant: {'; '.join(found)}."


def _could_rise(metric: MetricReport) -> bool:
    """Return whether the best case is another number as it is shown."""
    best = _number(metric.if_relevant)
    return best is not None and fixed(best, PLACES) != fixed(metric.current, PLACES)


def _number(value: float | UnsetType) -> float | None:
    return None if isinstance(value, UnsetType) else value


def _label(label: str) -> str:
    return clipped(label, bounds.NAME)
