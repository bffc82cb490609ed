"""The sections of the HTML report about answers as a whole: the matrix of modes as a heat table, and the tiers."""

from collections.abc import Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import percent
from ragcontract.reports.answer_report import TierReport
from ragcontract.reports.html.page_text import Badge, badge, shown
from ragcontract.reports.html.scale import of_share
from ragcontract.reports.outcome_tables import MatrixCell, minimum, mode_matrix, rate, tiers_of
from ragcontract.reports.report import Report

HEATS = 5  # shades; page.css has a class for each


class HeatCell(Struct, frozen=True, kw_only=True):
    """A cell of the matrix: ``heat`` is the name of its shade, ``sign`` says without colour whether it is right."""

    number: str
    share: str
    before: str
    heat: str
    sign: str


class HeatLine(Struct, frozen=True, kw_only=True):
    """An expected mode with its cells and its recall."""

    name: str
    cells: Sequence[HeatCell]
    recall: str


class Heat(Struct, frozen=True, kw_only=True):
    """The matrix of modes."""

    title: str
    columns: Sequence[str]
    lines: Sequence[HeatLine]
    precision: Sequence[str]


class TierRow(Struct, frozen=True, kw_only=True):
    """One tier; ``bar`` and ``limit`` are percentages, None without a value."""

    name: str
    badge: Badge
    rate: str
    bar: str | None
    limit: str | None
    facts: Sequence[str]


def heat(report: Report) -> Heat | None:
    """Return the matrix of modes; None if no query expects one."""
    matrix = mode_matrix(report)
    if matrix is None:
        return None
    return Heat(
        title=matrix.title,
        columns=[shown(name, bounds.HTML_NAME) for name in matrix.columns],
        lines=[
            HeatLine(name=shown(one.name, bounds.HTML_NAME), cells=list(map(_cell, one.cells)), recall=one.recall)
            for one in matrix.lines
        ],
        precision=matrix.precision,
    )


def _cell(cell: MatrixCell) -> HeatCell:
    changed = cell.before is not None and cell.before != cell.number
    return HeatCell(
        number=f"{cell.number:,}",
        share=percent(cell.share, 0) if cell.number else "",
        before=f"was {cell.before:,}" if changed else "",
        heat=f"{cell.verdict} heat{min(HEATS, int(cell.share * HEATS) + 1)}" if cell.verdict else "",
        sign={"right": "✓", "wrong": "✕", "": ""}[cell.verdict],
    )


def tier_rows(report: Report) -> list[TierRow]:
    """Return the tiers; empty if the contract has none."""
    return [_tier(tier) for tier in tiers_of(report)]


def _tier(tier: TierReport) -> TierRow:
    gates = ", ".join(shown(name, bounds.HTML_NAME) for name in tier.gates[: bounds.NAMES])
    more = f" and {len(tier.gates) - bounds.NAMES:,} more" if len(tier.gates) > bounds.NAMES else ""
    facts = [
        f"minimum {minimum(tier)}" if tier.minimum is not None else "",
        f"gates {gates}{more}" if gates else "",
        shown(tier.skipped, bounds.HTML_REASON) if tier.skipped else "",
    ]
    return TierRow(
        name=shown(tier.name, bounds.HTML_ID),
        badge=badge(tier.status),
        rate=rate(tier),
        bar=of_share(tier.rate),
        limit=of_share(tier.minimum),
        facts=list(filter(None, facts)),
    )
