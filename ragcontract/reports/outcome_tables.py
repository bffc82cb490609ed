"""The tables of the reports for people about answers: how often each mode was found, and the tiers."""

from collections.abc import Sequence
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import as_written, count, digits_beside, fixed
from ragcontract.reports.answer_report import ModesReport, TierReport
from ragcontract.reports.report import Report

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
