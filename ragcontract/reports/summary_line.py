"""The result of a check as one line of plain text, for chat messages and other programs that show one line."""

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import clipped, shorten, visible
from ragcontract.reports.headline import VERDICTS, headline, subject
from ragcontract.reports.report import ErrorReport, Report


def summary_of(report: Report | ErrorReport) -> str:
    """Return the contract's name if it has one, the verdict, and the reason for it; control characters are visible."""
    if isinstance(report, Report):
        text = f"{VERDICTS[report.verdict]}: {headline(report, visible, visible)}"
    else:
        first = visible(report.problems[0]) if report.problems else "no problem is known"
        others = len(report.problems) - 1 + report.more_problems
        more = f" (and {count(others, 'more problem')})" if others > 0 else ""
        text = f"could not be judged: {first}{more}"
    name = report.source.contract if report.source else None
    named = f" {clipped(name, bounds.MARKDOWN_NAME)}" if name else ""
    return shorten(f"{subject(report)}{named} {text}", bounds.SUMMARY_LINE)
