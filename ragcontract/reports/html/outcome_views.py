"""The sections of the HTML report about answers as a whole: the matrix of modes as a heat table, and the tiers."""

from collections.abc import Sequence

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import percent
from ragcontract.reports.answer_report import TierReport
from ragcontract.reports.html.cards import Bar
from ragcontract.reports.html.page_text import Badge, badge, shown
from ragcontract.reports.html.scale import of_share
from ragcontract.reports.outcome_tables import Matrix, MatrixCell, MatrixLine, minimum, mode_matrix, rate, tiers_of
from ragcontract.reports.report import Report

HEATS = 5  # shades; page.css has a class for each


class HeatCell(Struct, frozen=True, kw_only=True):
    """A cell of the matrix: ``heat`` is the name of its shade, ``sign`` says without colour whether it is right."""

    number: str
    share: str
    before: str
    heat: str
    sign: str


class TierRow(Struct, frozen=True, kw_only=True):
    """One tier; ``bar`` is None without a pass rate."""

    name: str
    badge: Badge
    rate: str
    bar: Bar | None
    facts: Sequence[str]


def heat(report: Report) -> Matrix[HeatCell] | None:
    """Return the matrix of modes with its shades; None if no query expects one."""
    matrix = mode_matrix(report)
    if matrix is None:
        return None
    return Matrix(
        title=matrix.title,
        columns=[shown(name, bounds.HTML_NAME) for name in matrix.columns],
        lines=[
            MatrixLine(name=shown(one.name, bounds.HTML_NAME), cells=list(map(_cell, one.cells)), recall=one.recall)
            for one in matrix.lines
        ],
        precision=matrix.precision,
        compared=matrix.compared,
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
    now, limit = of_share(tier.rate), of_share(tier.minimum)
    return TierRow(
        name=shown(tier.name, bounds.HTML_ID),
        badge=badge(tier.status),
        rate=rate(tier),
        bar=None if now is None else Bar(now=now, limits=[] if limit is None else [limit]),
        facts=list(filter(None, facts)),
    )
