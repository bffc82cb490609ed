"""The folded section on overlap in the Markdown report."""

from ragcontract.core.numbers import fixed
from ragcontract.reports.markdown.gfm import code, fold, line, table
from ragcontract.reports.overlap_section import DIGITS, overlap_section
from ragcontract.reports.report import Report


def overlap_fold(report: Report, max_rows: int) -> list[str]:
    """Return the section, if there is one; its queries are those with the least overlap."""
    found = overlap_section(report)
    if found is None:
        return []
    rows = [[code(one.id), fixed(one.overlap, DIGITS), fixed(one.rbo, DIGITS)] for one in found.least[:max_rows]]
    parts = [*map(line, found.facts), *([table(["Least overlap", "Overlap", "RBO"], "lrr", rows)] if rows else [])]
    return [fold(found.title, *parts)]
