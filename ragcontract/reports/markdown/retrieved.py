"""The folded section of the Markdown report that lists what was retrieved for broken queries, before and now."""

from collections.abc import Sequence

from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible
from ragcontract.reports.markdown.gfm import breaking_code, code, fold, inline, table, text
from ragcontract.reports.report import QueryReport, Report, RetrievedReport
from ragcontract.reports.side_by_side import OF_SEVERAL_ROWS, about, listed_queries, not_listed, pairs, top

MARKS = {"relevant": "✅ ", "forbidden": "⛔ ", None: ""}
LEGEND = "✅ relevant, ⛔ forbidden."
WITH_DETAILS = " Below a document are its chunk and score."


def retrieved_fold(report: Report, max_queries: int) -> list[str]:
    """Return the section with the lists of the first queries, in a list; empty if there are none."""
    queries = listed_queries(report)[:max_queries]
    if not queries:
        return []
    compared = any(query.baseline_retrieved is not None for query in queries)
    notes = [LEGEND + (WITH_DETAILS if any(_has_details(query) for query in queries) else "")]
    notes += [OF_SEVERAL_ROWS] if any(query.repeated for query in queries) else []
    rest = not_listed(queries, report)
    return [
        fold(
            f"What was retrieved: {top(report)}{', before and now' if compared else ''}",
            " ".join(notes),
            *[part for query in queries for part in lists_of(query)],
            *([rest] if rest else []),
        )
    ]


def lists_of(query: QueryReport) -> list[str]:
    """Return a heading and the table of one query."""
    question = text(shorten(visible(query.query), bounds.MARKDOWN_QUESTION))
    return [f"**{code(query.id)}** {question}", results_table(query)]


def results_table(query: QueryReport) -> str:
    """Return the results of one query, with those before if the baseline has the query."""
    compared = query.baseline_retrieved is not None
    body = [
        [str(pair.rank), *([_result(pair.before)] if compared else []), _result(pair.now)] for pair in pairs(query)
    ] or [["", *(["nothing"] if compared else []), "nothing"]]
    head: Sequence[str] = ["", "Before", "Now"] if compared else ["", "Now"]
    return table(head, "r" + "l" * (len(head) - 1), body)


def _has_details(query: QueryReport) -> bool:
    return any(about(result) for result in (*(query.baseline_retrieved or ()), *(query.retrieved or ())))


def _result(result: RetrievedReport | None) -> str:
    if result is None:
        return ""
    details = [breaking_code(detail) if detail == result.chunk_id else inline(detail) for detail in about(result)]
    below = f"<br>{' · '.join(details)}" if details else ""
    return f"{MARKS[result.contract]}{breaking_code(result.doc_id)}{below}"
