"""The folded section in Markdown that lists what was retrieved for broken queries, before and now."""

from collections.abc import Sequence

from ragcontract.core import bounds
from ragcontract.core.numbers import count
from ragcontract.reports.markdown.gfm import breaking_code, fold, inline, table
from ragcontract.reports.markdown.query_cell import query_heading
from ragcontract.reports.repeats_note import row_shown
from ragcontract.reports.report import QueryReport, Report, RetrievedReport
from ragcontract.reports.side_by_side import about, listed_queries, pairs, top

MARKS = {"relevant": "✅ ", "forbidden": "⛔ ", None: ""}
LEGEND = "✅ relevant, ⛔ forbidden."
WITH_DETAILS = " Below a document are its chunk and score."


def retrieved_fold(report: Report, max_queries: int) -> list[str]:
    """Return the section with the lists of the first broken queries, in a list; empty if there are none."""
    listed = listed_queries(report)
    full = len(listed) >= bounds.RETRIEVED_QUERIES  # then others were not listed; else those name no documents
    of = sum(bool(query.violations) for query in report.queries) if full else len(listed)
    return fold_of(report, listed[:max_queries], of)


def fold_of(report: Report, queries: Sequence[QueryReport], of: int) -> list[str]:
    """Return the section with the lists of these queries, in a list; empty if there are none.

    ``of`` is the number of all broken queries with such lists; those that are not among the ``queries`` are counted.
    """
    if not queries:
        return []
    compared = any(query.baseline_retrieved is not None for query in queries)
    notes = [LEGEND + (WITH_DETAILS if any(map(_has_details, queries)) else "")]
    notes += [row_shown(report)] if any(query.repeated for query in queries) else []
    rest = [f"… and {count(of - len(queries), 'more broken query')}."] if of > len(queries) else []
    return [
        fold(
            f"What was retrieved: {top(report)}{', before and now' if compared else ''}",
            " ".join(notes),
            *[part for query in queries for part in (query_heading(query), _table(query))],
            *rest,
        )
    ]


def _table(query: QueryReport) -> str:
    """Return the results of a query, rank by rank, with those before if the baseline has the query."""
    compared = query.baseline_retrieved is not None
    body = [
        [str(pair.rank), *([_result(pair.before)] if compared else []), _result(pair.now)] for pair in pairs(query)
    ] or [["", *(["nothing"] if compared else []), "nothing"]]
    head = ["", "Before", "Now"] if compared else ["", "Now"]
    return table(head, "r" + "l" * (len(head) - 1), body)


def _has_details(query: QueryReport) -> bool:
    return any(about(result) for result in (*(query.baseline_retrieved or ()), *(query.retrieved or ())))


def _result(result: RetrievedReport | None) -> str:
    if result is None:
        return ""
    details = [breaking_code(detail) if detail == result.chunk_id else inline(detail) for detail in about(result)]
    below = f"<br>{' · '.join(details)}" if details else ""
    return f"{MARKS[result.contract]}{breaking_code(result.doc_id)}{below}"
