"""The data for the script of the HTML report: every query of the report, in a compact form, worst first.

Control characters in ids and questions are made visible here, as in every other report; the script shows them as text.
Keys are short because they are repeated for every query; ``assets/queries.js`` documents them.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.text import visible
from ragcontract.reports.broken import FindingsByQuery, why_and_since, worst_first_key
from ragcontract.reports.html.page_text import STATUS, lines, shown
from ragcontract.reports.metric_table import main_metric
from ragcontract.reports.rank_changes import rank_changes
from ragcontract.reports.repeats_note import row_shown
from ragcontract.reports.report import QueryReport, Report, RetrievedReport
from ragcontract.reports.said_rows import SaidRow, said_rows
from ragcontract.reports.side_by_side import about, top

DIGITS = 4
BROKEN_FIRST = {"fail": 0, "counted": 0, "warn": 1, "skipped": 1, "waived": 1, "known": 1}
Row = dict[str, Any]


def encode(report: Report) -> str:
    """Encode the data as JSON for a script element; numbers are rounded for display."""
    moved = rank_changes(report)
    changes = {item.query.id: item.change for item in (*moved.worse, *moved.better)}
    tags = list(report.tags)
    numbers = {tag: number for number, tag in enumerate(tags)}
    keys = list(report.metrics)
    findings = FindingsByQuery(report)
    data = {
        "compared": report.inputs.baseline is not None,
        "k": max(report.k),
        "top": top(report),
        "status": STATUS,
        "metric": keys.index(main_metric(report)),
        "metrics": [visible(metric.label) for metric in report.metrics.values()],
        "lower": [int(metric.better == "lower") for metric in report.metrics.values()],
        "tags": [shown(tag, bounds.HTML_NAME) for tag in tags],
        "queries": [
            _row(report, query, findings, keys, numbers, changes.get(query.id, 0.0))
            for query in worst_first(report, changes)
        ],
    }
    return for_script_element(msgspec.json.encode(data).decode())


def for_script_element(json: str) -> str:
    """Escape characters that could end the script element or a line, or change the text direction of the source."""
    return re.sub("[<>&\u200e\u200f\u2028-\u202e\u2066-\u2069]", lambda match: f"\\u{ord(match[0]):04x}", json)


def worst_first(report: Report, changes: dict[str, float]) -> list[QueryReport]:
    """Return the queries worst first: broken ones as in other reports, then tolerated ones, then others by change."""

    def key(query: QueryReport) -> tuple[int, bool, bool, bool, float]:
        if query.status == "pass":
            return len(BROKEN_FIRST), True, True, True, changes.get(query.id, 0.0)
        return (BROKEN_FIRST[query.status], *worst_first_key(query))

    return sorted(report.queries, key=key)


def _row(  # noqa: PLR0917 (called once, for each query)
    report: Report,
    query: QueryReport,
    findings: FindingsByQuery,
    keys: list[str],
    tags: dict[str, int],
    change: float,
) -> Row:
    """Return the data of one query; values that are the default are omitted."""
    row: Row = {"i": query.id, "p": visible(query.location), "q": visible(query.query)}
    if (name := visible(query.id)) != query.id:
        row["v"] = name
    if query.tags:
        row["t"] = [tags[tag] for tag in query.tags if tag in tags]
    row["m"] = _values(query.metrics, keys)
    if query.baseline_metrics is not None:
        row["b"] = _values(query.baseline_metrics, keys)
    row["d"] = [
        *_documents(query.ranks, query.baseline_ranks, forbidden=0),
        *_documents(query.forbidden_ranks, query.baseline_forbidden_ranks, forbidden=1),
    ]
    if query.status != "pass":
        row["s"] = query.status
        listed = findings.failing(query.id) or findings.of(query.id)
        row["f"] = [[_phrase(finding.expected), _phrase(finding.found)] for finding in listed]
        row["r"] = [violation.rule for violation in query.violations]
        if why := why_and_since(report, query, findings):
            row["y"] = shown(why, bounds.HTML_WHY)
    for key, results in (("n", query.retrieved), ("o", query.baseline_retrieved)):
        if results is not None:
            row[key] = [_result(one) for one in results[: bounds.RETRIEVED]]
    if said := said_rows(query):
        row["g"] = [_said(one, compared=query.baseline_said is not None) for one in said]
    if query.repeated and query.retrieved is not None:
        row["a"] = row_shown(report)
    if query.weight != 1:
        row["w"] = query.weight
    if change:
        row["c"] = round(change, DIGITS) or change
    return row


def _phrase(phrase: Phrase) -> list[str | list[str]]:
    """Return a phrase as a list in which text is a string and a name is a list of one string."""
    return [[shown(part.name, bounds.HTML_NAME)] if isinstance(part, Name) else visible(part) for part in phrase]


def _result(result: RetrievedReport) -> list[str]:
    """Return the document, what the contract wants of it, and its chunk and score."""
    details = " · ".join(shown(detail, bounds.HTML_ID) for detail in about(result))
    return [shown(result.doc_id, bounds.HTML_ID), result.contract or "", details]


def _said(row: SaidRow, *, compared: bool) -> list[Any]:
    """Return the title, the texts now and, if they are compared, before; each with the number of others."""
    now = [[lines(one) for one in row.now], row.more_now]
    before = [[lines(one) for one in row.before], row.more_before]
    return [row.title, now, before] if compared else [row.title, now]


def _values(metrics: dict[str, float | None], keys: list[str]) -> list[float | None]:
    return [None if (value := metrics.get(key)) is None else round(value, DIGITS) for key in keys]


def _documents(
    now: Mapping[str, int | None], before: Mapping[str, int | None] | None, *, forbidden: int
) -> list[list[Any]]:
    """Return ``[name, forbidden, rank now, rank before]`` per document; 0 if missing, the last only if compared."""
    documents = {**(before or {}), **now}
    return [
        [visible(name), forbidden, now.get(name) or 0, *([] if before is None else [before.get(name) or 0])]
        for name in documents
    ]
