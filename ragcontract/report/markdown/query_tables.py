"""Tables of the Markdown report: the metrics, and the results and texts of broken queries, before and now.

A table names a golden query by its question, and also by its id if that says more.
"""

from collections.abc import Iterator, Sequence

from ragcontract.core import bounds
from ragcontract.core.numbers import count, more
from ragcontract.core.safe_text import clipped, clipped_line
from ragcontract.report.headline import shared_note
from ragcontract.report.markdown.gfm import breaking_code, code, fold, inline, line, table, text
from ragcontract.report.metric_table import Row, table_rows
from ragcontract.report.notes import repeats_note, row_shown
from ragcontract.report.queries import CONTEXTS, CONVERSATION, queries_with_texts, said_rows
from ragcontract.report.rank_changes import about, listed_queries, pairs, top
from ragcontract.report.record import QueryReport, Report, RetrievedReport

SHORTEST = 12  # letters and digits; a shorter id may begin like the question by chance


def query_cell(query: QueryReport, mark: str = "") -> str:
    """Return the question, below it the id unless it repeats the beginning of the question, and the mark, if any."""
    lines = [text(clipped(query.query, bounds.MARKDOWN_QUESTION))]
    if not repeats(query.id, query.query):
        lines.append(code(query.id))
    if mark:
        lines.append(f"({mark})")
    return "<br>".join(lines)


def query_heading(query: QueryReport) -> str:
    """Return id and question as the heading of a query's own table."""
    return f"**{code(query.id)}** {text(clipped(query.query, bounds.MARKDOWN_QUESTION))}"


def repeats(query_id: str, question: str) -> bool:
    """Return whether an id is the question or its beginning in another spelling, as ``how-do-i-get-a-refund``."""
    words, asked = _letters(query_id[: bounds.QUESTION]), _letters(question[: bounds.QUESTION])
    if not words:
        return query_id == question
    return words == asked or (len(words) >= SHORTEST and asked.startswith(words))


def _letters(value: str) -> str:
    return "".join(filter(str.isalnum, value.casefold()))


STATUS = {
    "pass": "✅ pass",
    "fail": "❌ fail",
    "unproven": "⚠️ over, not proven",
    "too_few": "⚠️ over, too few changed",
    "waived": "☑️ waived",
    "skipped": "⏭️ skipped",
    "none": "no limit",
}


def metric_tables(report: Report, max_rows: int, *, folds: bool = True) -> list[str]:
    """Return the table of metrics with limits, of tags the worst, and a folded table of the others.

    The tables are narrow, because a phone cuts off the last columns: values and limits share one. If nothing is
    limited, no metrics are folded. Without ``folds``, metrics without a limit are left out.
    """
    rows = table_rows(report)
    limited = [row for row in rows if row.gates]
    others = [row for row in rows if not row.gates]
    tags = sum(row.tag is not None for row in limited)
    shown = limited[: len(limited) - max(0, tags - max_rows)]
    values = "Baseline → current" if report.inputs.baseline else "Current"
    parts = []
    if shown:
        body = [[_label(row), STATUS[row.status], f"{row.values()}<br>{row.limits}"] for row in shown]
        parts.append(table(["Metric", "Status", f"{values}, and limit"], "lll", body))
    parts += filter(None, [more(tags, max_rows, "limited mean", "… and {} of tags, in `report.json`.")])
    if others and not limited:
        parts.append(_plain(others, values))
    parts += [text(note) for note in (shared_note(report), repeats_note(report)) if note]
    parts += map(line, report.run_notes)
    if limited and others and folds:
        parts.append(fold(f"{count(len(others), 'metric')} without a limit", _plain(others, values)))
    return parts


def _plain(rows: Sequence[Row], values: str) -> str:
    return table(["Metric", values], "ll", [[_label(row), row.values()] for row in rows])


def _label(row: Row) -> str:
    label = text(clipped(row.label, bounds.MARKDOWN_NAME))
    over = "".join(f", {more}" for more in (row.over, row.direction) if more)
    return (label if row.tag is None else f"{label} of {code(row.tag)}") + over


MARKS = {"relevant": "✅ ", "forbidden": "⛔ ", None: ""}
LEGEND = "✅ relevant, ⛔ forbidden."
WITH_DETAILS = " Below a document are its chunk and score."


def retrieved_fold(report: Report, max_queries: int) -> Iterator[str]:
    """Return the section with the results of the first broken queries, if there are any."""
    listed = listed_queries(report)
    full = len(listed) >= bounds.RETRIEVED_QUERIES  # else the queries that are not listed name no documents
    of = sum(bool(query.violations) for query in report.queries) if full else len(listed)
    return fold_of(report, listed[:max_queries], of)


def fold_of(report: Report, queries: Sequence[QueryReport], of: int) -> Iterator[str]:
    """Yield the section with the results of these queries, if there are any.

    ``of`` is the number of all broken queries with results; the section counts those that are not among ``queries``.
    """
    if not queries:
        return
    compared = any(query.baseline_retrieved is not None for query in queries)
    notes = [LEGEND + (WITH_DETAILS if any(map(_has_details, queries)) else "")]
    notes += [row_shown(report)] if any(query.repeated for query in queries) else []
    yield fold(
        f"What was retrieved: {top(report)}{', before and now' if compared else ''}",
        " ".join(notes),
        *[part for query in queries for part in (query_heading(query), _table(query))],
        *filter(None, [more(of, len(queries), "broken query", "… and {}.")]),
    )


def _table(query: QueryReport) -> str:
    """Return the results of a query, rank by rank, beside those of the baseline if it has the query."""
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


def answers_fold(report: Report, max_queries: int) -> Iterator[str]:
    """Yield the section with the texts of the first broken queries, if there are any."""
    listed = queries_with_texts(report)
    queries = listed[:max_queries]
    if not queries:
        return
    compared = any(query.baseline_said is not None for query in queries)
    notes = [row_shown(report)] if any(query.repeated for query in queries) else []
    yield fold(
        f"What was answered{', before and now' if compared else ''}",
        *notes,
        *[part for query in queries for part in (query_heading(query), _answers_table(query))],
        *filter(None, [more(len(listed), len(queries), "query", "… and {}, in `report.json`.")]),
    )


def _answers_table(query: QueryReport) -> str:
    compared = query.baseline_said is not None
    body = []
    for row in said_rows(query):
        length = bounds.MARKDOWN_CONTEXT if row.title in {CONTEXTS, CONVERSATION} else bounds.MARKDOWN_SAID
        sides = [(row.before, row.more_before), (row.now, row.more_now)]
        lines = bounds.MARKDOWN_MESSAGES if row.title == CONVERSATION else bounds.MARKDOWN_SAID_LINES
        cells = [_cell(texts[:lines], rest + len(texts[lines:]), length) for texts, rest in sides]
        if sides[0] == sides[1]:
            cells[1] = "the same"
        body.append([row.title, *(cells if compared else cells[1:])])
    return table(["", "Before", "Now"] if compared else ["", "Now"], "lll" if compared else "ll", body)


def _cell(texts: Sequence[str], rest: int, length: int) -> str:
    """Return the texts of one side, each on a line; ``rest`` counts those that are not listed."""
    lines = [inline(clipped_line(item, length)) for item in texts]
    return "<br>".join(filter(None, [*lines, more(rest, 0, form="… {}")]))
