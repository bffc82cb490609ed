"""The folded section in Markdown with what was said and seen for broken queries, before and now."""

from collections.abc import Sequence

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.core.text import clipped_line
from ragcontract.reports.markdown.gfm import fold, inline, table
from ragcontract.reports.markdown.query_cell import query_heading
from ragcontract.reports.repeats_note import row_shown
from ragcontract.reports.report import QueryReport, Report
from ragcontract.reports.said_rows import CONTEXTS, CONVERSATION, queries_with_texts, said_rows


def answers_fold(report: Report, max_queries: int) -> list[str]:
    """Return the section with the texts of the first broken queries, in a list; empty if there are none."""
    listed = queries_with_texts(report)
    queries = listed[:max_queries]
    if not queries:
        return []
    compared = any(query.baseline_said is not None for query in queries)
    notes = [row_shown(report)] if any(query.repeated for query in queries) else []
    rest = len(listed) - len(queries)
    return [
        fold(
            f"What was answered{', before and now' if compared else ''}",
            *notes,
            *[part for query in queries for part in (query_heading(query), _table(query))],
            *([f"… and {count(rest, 'more query')}, in `report.json`."] if rest else []),
        )
    ]


def _table(query: QueryReport) -> str:
    compared = query.baseline_said is not None
    body = []
    for row in said_rows(query):
        length = bounds.MARKDOWN_CONTEXT if row.title in {CONTEXTS, CONVERSATION} else bounds.MARKDOWN_SAID
        sides = [(row.before, row.more_before), (row.now, row.more_now)]
        lines = bounds.MARKDOWN_MESSAGES if row.title == CONVERSATION else bounds.MARKDOWN_SAID_LINES
        cells = [_cell(texts[:lines], more + len(texts[lines:]), length) for texts, more in sides]
        if sides[0] == sides[1]:
            cells[1] = "the same"
        body.append([row.title, *(cells if compared else cells[1:])])
    return table(["", "Before", "Now"] if compared else ["", "Now"], "lll" if compared else "ll", body)


def _cell(texts: Sequence[str], more: int, length: int) -> str:
    """Return texts of one side, on a line each; ``more`` are not listed."""
    lines = [inline(clipped_line(one, length)) for one in texts]
    if more:
        lines.append(f"… {more:,} more")
    return "<br>".join(lines)
