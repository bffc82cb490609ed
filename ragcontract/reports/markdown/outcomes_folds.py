"""The folded sections in Markdown about answers as a whole: the matrix of modes, and the tiers."""

from ragcontract.core import bounds
from ragcontract.core.text import clipped
from ragcontract.reports.answer_report import TierReport
from ragcontract.reports.markdown.gfm import code, fold, line, table, text
from ragcontract.reports.markdown.metrics import STATUS
from ragcontract.reports.outcome_tables import CORNER, MatrixCell, minimum, mode_matrix, rate, tiers_of, tiers_title
from ragcontract.reports.report import Report

COMPARED = "In brackets the change since the baseline."


def outcomes_folds(report: Report) -> list[str]:
    """Return the sections that the report has, tiers first."""
    return [*_tiers(report), *_modes(report)]


def _modes(report: Report) -> list[str]:
    matrix = mode_matrix(report)
    if matrix is None:
        return []
    body = [[_name(one.name), *map(_cell, one.cells), one.recall] for one in matrix.lines]
    body.append(["Precision", *matrix.precision, ""])
    head = [CORNER, *map(_name, matrix.columns), "Recall"]
    notes = [COMPARED] if matrix.compared else []
    return [fold(matrix.title, table(head, "l" + "r" * (len(head) - 1), body), *notes)]


def _cell(cell: MatrixCell) -> str:
    """Return a number, in bold where the mode is the expected one."""
    number = f"<b>{cell.number:,}</b>" if cell.verdict == "right" else f"{cell.number:,}"
    change = 0 if cell.before is None else cell.number - cell.before
    return f"{number} ({change:+,})" if change else number


def _name(mode: str) -> str:
    return text(clipped(mode, bounds.MARKDOWN_ID))


def _tiers(report: Report) -> list[str]:
    tiers = tiers_of(report)
    if not tiers:
        return []
    body = [[code(tier.name), STATUS[tier.status], rate(tier), minimum(tier), _gated(tier)] for tier in tiers]
    return [fold(tiers_title(report), table(["Tier", "Status", "Pass rate", "Minimum", ""], "llrrl", body))]


def _gated(tier: TierReport) -> str:
    """Return why a tier is skipped, and which tiers it gates."""
    more = len(tier.gates) - bounds.NAMES
    gates = [*map(code, tier.gates[: bounds.NAMES]), *([f"{more:,} more"] if more > 0 else [])]
    gated = [f"gates {', '.join(gates)}"] if gates else []
    return "; ".join([*([line(tier.skipped)] if tier.skipped else []), *gated])
