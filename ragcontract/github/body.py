"""The text of a comment or a job summary: shortened to the size limit, with a footer."""

from collections.abc import Callable
from datetime import datetime

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import clipped
from ragcontract.github.context import Context
from ragcontract.reports.markdown.document import Layout
from ragcontract.reports.markdown.gfm import text
from ragcontract.reports.report import Report

# What reviewers need least is left out first: most of the lists of results, which are the largest part, then all
# folded sections, then the less severe broken queries, then all of them.
# Whole parts are left out; text is never truncated.
LEVELS = (
    *(Layout(retrieved=queries) for queries in (bounds.ROWS, 20, 5, 0)),
    *(Layout(rows=rows, folds=False) for rows in (bounds.ROWS, 50, 20, 10, 5, 2, 0)),
)

Render = Callable[[Layout], str]


def fitting(render: Render, max_bytes: int) -> str:
    """Render in the largest layout that fits into ``max_bytes``, or in the smallest if none does.

    A layout is smaller than those before it, so most of them need not be rendered.
    """
    body = render(LEVELS[0])
    if len(body.encode()) <= max_bytes:
        return body
    fits, rest = "", LEVELS[1:]
    while rest:
        middle = len(rest) // 2
        body = render(rest[middle])
        if len(body.encode()) <= max_bytes:
            fits, rest = body, rest[:middle]
        else:
            rest = rest[middle + 1 :]
    return fits or body


def foot(context: Context, said: str) -> str:
    """Return the footer: the text ``said`` about the time, then links to the run and the commit."""
    parts = [said]
    if context.run_url:
        attempt = f", attempt {context.run[1]}" if context.run[1] > 1 else ""
        parts.append(f"[run {context.run_number or context.run[0]}{attempt}]({context.run_url})")
    if context.commit:
        parts.append(f"commit {context.commit}")
    return f"\n<sub>{' · '.join(parts)}</sub>\n"


def when_checked(report: Report | None, now: datetime) -> str:
    """Return the time of the check and the age of the baseline, for the footer."""
    return " · ".join(filter(None, (f"Checked {minute(now)}", _baseline_age(report))))


def minute(now: datetime) -> str:
    """Format a time to the minute: ``2026-01-02 03:04 UTC``."""
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _baseline_age(report: Report | None) -> str:
    baseline = report.inputs.baseline if report else None
    if baseline is None or baseline.created_at is None:
        return ""
    if baseline.age_days is None:  # a hand-made baseline
        return f"baseline made {text(clipped(baseline.created_at, bounds.BASELINE_TIME))}"
    return f"baseline made {count(baseline.age_days, 'day')} ago" if baseline.age_days > 0 else "baseline made today"
