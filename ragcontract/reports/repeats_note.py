"""The note on repeated exports in reports for people."""

from ragcontract.core.numbers import fixed
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import Report

DIGITS = 4


def repeats_note(report: Report) -> str | None:
    """Say of how many exports the numbers are means, and how far one export's means differ."""
    repeats = report.repeats
    if repeats is None:
        return None
    exports = str(repeats.most) if repeats.fewest == repeats.most else f"{repeats.fewest} to {repeats.most}"
    start = f"Means over {exports} exports of each query"
    if not repeats.metrics:
        why = "as a query has one row only" if repeats.fewest == 1 else "as their rows have no order"
        return f"{start}; their spread is not known, {why}."
    largest = at_largest_k(report)
    deviations = ", ".join(
        f"{largest[key].label} {fixed(spread.deviation, DIGITS)}"
        for key, spread in repeats.metrics.items()
        if key in largest
    )
    return f"{start}; standard deviation of one export's means: {deviations}."
