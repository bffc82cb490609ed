"""The note in reports for people on means over several exports, or several good runs."""

from ragcontract.core.numbers import fixed
from ragcontract.reports.metric_table import at_largest_k
from ragcontract.reports.report import Report

DIGITS = 4


def fewer_runs(before: int, now: int) -> str | None:
    """Say that a baseline is of fewer good runs than the one before; None if it is not.

    Limits from the variation between runs are made for as many runs as there were.
    """
    if now >= before:
        return None
    is_now = f"is the mean of {now}" if now > 1 else "is a single run"
    return f"the older one was the mean of {before} good runs, and this one {is_now}"


def worst_ranks(report: Report) -> str:
    """Return what the ranks of a query with several rows are, for the text before them."""
    if _against_good_runs(report):
        return "its rank in the worst of the good runs, and now"
    return "the worst ranks of its rows"


def row_shown(report: Report) -> str:
    """Return which of a query's rows is shown, where there are several."""
    if _against_good_runs(report):
        return "Before is the first of the good runs."
    return "Of several rows, the first that breaks a rule is shown, and the first of the baseline."


def _against_good_runs(report: Report) -> bool:
    """Return whether only the baseline has several rows of a query: those of its good runs."""
    return report.inputs.baseline is not None and report.inputs.baseline.runs > 1 and report.repeats is None


def repeats_note(report: Report) -> str | None:
    """Say of how many exports or good runs the numbers are means, and how far one export's means differ."""
    baseline = report.inputs.baseline
    runs = f"The baseline is the mean of {baseline.runs} good runs." if baseline and baseline.runs > 1 else None
    return " ".join(filter(None, [runs, _of_exports(report)])) or None


def _of_exports(report: Report) -> str | None:
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
