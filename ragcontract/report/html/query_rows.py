"""The queries in the HTML report: rows that need no JavaScript, and the data of all queries for the script.

The rows are the first broken and tolerated queries. The data is compact, worst first: its keys are short because they
are repeated for every query, and ``assets/queries.js`` documents them. Control characters in ids and questions are
made visible here, as in every other report; the script shows them as text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.finding import Finding
from ragcontract.core.numbers import fixed, more, signed
from ragcontract.core.phrase import Name
from ragcontract.core.safe_text import visible
from ragcontract.report.blocks import Parts, Sentence
from ragcontract.report.html.elements import STATUS, lines, shown
from ragcontract.report.limit_text import digits_of
from ragcontract.report.metric_table import at_largest_k, main_metric
from ragcontract.report.notes import row_shown
from ragcontract.report.queries import (
    FindingsByQuery,
    SaidRow,
    broken_queries,
    not_failing_queries,
    said_rows,
    why_and_since,
    worst_first_key,
)
from ragcontract.report.rank_changes import about, rank, rank_changes, top
from ragcontract.report.record import QueryReport, Report, RetrievedReport
from ragcontract.report.sections.broken import line_of

DATA_DIGITS = 4
NO_VALUE = "n/a"
BROKEN_FIRST = {"fail": 0, "counted": 0, "warn": 1, "skipped": 1, "waived": 1, "known": 1}
Row = dict[str, Any]
Passages = Mapping[str, Mapping[str, str]]  # the texts of documents, by query and document


def listed_queries(report: Report) -> Sequence[QueryReport]:
    """Return the first broken queries, and tolerated ones."""
    return [*broken_queries(report), *not_failing_queries(report)][: bounds.HTML_QUERIES]


class Columns(Struct, frozen=True, kw_only=True):
    """The columns of the table that not every contract has, because they would be empty."""

    metrics: Sequence[int]  # the numbers of the contract's metrics that have values, which the table can show
    compared: bool
    tags: bool

    @classmethod
    def of(cls, report: Report) -> "Columns":
        shown_keys = {*at_largest_k(report), *(gate.metric for gate in report.gates)}
        measured = [
            number
            for number, (key, metric) in enumerate(report.metrics.items())
            if key in shown_keys and (metric.current is not None or metric.baseline is not None)
        ]
        compared = report.inputs.baseline is not None
        return cls(metrics=measured, compared=compared and bool(measured), tags=bool(report.tags))


def metric_of(query: QueryReport, key: str, digits: int) -> tuple[str, str]:
    """Return the value of a metric, and its change."""
    value, before = query.metrics.get(key), (query.baseline_metrics or {}).get(key)
    change = NO_VALUE if value is None or before is None else signed(value - before, digits)
    return NO_VALUE if value is None else fixed(value, digits), change


def texts_of(query: QueryReport) -> Iterable[tuple[str, Sequence[str] | None, Sequence[str]]]:
    """Yield each kind of texts: its title, the texts before (None if they are not compared), and those now."""
    for row in said_rows(query):
        before = None if query.baseline_said is None else _listed(row.before, row.more_before)
        yield row.title, before, _listed(row.now, row.more_now)


def _listed(texts: Sequence[str], rest: int) -> list[str]:
    return [*map(lines, texts), *filter(None, [more(rest, 0, form="… {}")])]


def documents_of(query: QueryReport, findings: Sequence[Finding]) -> Iterable[tuple[str, str]]:
    """Yield the relevant documents, and the forbidden ones that a side retrieved, with ranks as ``8 → missing``.

    Documents that ``findings`` name with their ranks are left out.
    """
    compared = query.baseline_ranks is not None
    named = _named(findings)
    sides = (
        (query.baseline_ranks or {}, query.ranks, ""),
        (query.baseline_forbidden_ranks or {}, query.forbidden_ranks, " (forbidden)"),
    )
    for before, now, what in sides:
        for name in {**before, **now}:
            if name in named:
                continue
            was, is_now = rank(before.get(name)), rank(now.get(name))
            changed = compared and was != is_now
            yield shown(name, bounds.HTML_ID) + what, f"{was} → {is_now}" if changed else is_now


def _named(findings: Sequence[Finding]) -> set[str]:
    """Return the documents that findings name with their ranks."""
    return {part.name for finding in findings if finding.ranks for part in finding.expected if isinstance(part, Name)}


def encode(report: Report, passages: Passages) -> str:
    """Encode the data as JSON for a script element; numbers are rounded for display."""
    columns = Columns.of(report)
    moved = rank_changes(report)
    changes = {item.query.id: item.change for item in (*moved.worse, *moved.better)}
    tags = list(report.tags)
    numbers = {tag: number for number, tag in enumerate(tags)}
    keys = list(report.metrics)
    findings = FindingsByQuery(report)
    data = {
        "compared": report.inputs.baseline is not None,
        "digits": digits_of(report),
        "offered": columns.metrics,
        "k": max(report.k),
        "top": top(report),
        "status": STATUS,
        "metric": keys.index(main_metric(report)),
        "metrics": [visible(metric.label) for metric in report.metrics.values()],
        "lower": [int(metric.better == "lower") for metric in report.metrics.values()],
        "tags": [shown(tag, bounds.HTML_NAME) for tag in tags],
        "queries": [
            _data_row(report, query, findings, keys, numbers, changes.get(query.id, 0.0), passages.get(query.id, {}))
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


def _data_row(  # noqa: PLR0917 (called once, for each query)
    report: Report,
    query: QueryReport,
    findings: FindingsByQuery,
    keys: list[str],
    tags: dict[str, int],
    change: float,
    texts: Mapping[str, str],
) -> Row:
    """Return the data of one query, without values that are the default."""
    row: Row = {"i": query.id, "p": visible(query.location), "q": visible(query.query)}
    if (name := visible(query.id)) != query.id:
        row["v"] = name
    if query.tags:
        row["t"] = [tags[tag] for tag in query.tags if tag in tags]
    row["m"] = _values(query.metrics, keys)
    if query.baseline_metrics is not None:
        row["b"] = _values(query.baseline_metrics, keys)
    row["d"] = [
        *_data_documents(query.ranks, query.baseline_ranks, forbidden=0),
        *_data_documents(query.forbidden_ranks, query.baseline_forbidden_ranks, forbidden=1),
    ]
    if query.status != "pass":
        row |= _broken(report, query, findings, row["d"])
    for key, results in (("n", query.retrieved), ("o", query.baseline_retrieved)):
        if results is not None:
            row[key] = [_result(result, texts) for result in results[: bounds.RETRIEVED]]
    if text_rows := said_rows(query):
        row["g"] = [_said(text_row, compared=query.baseline_said is not None) for text_row in text_rows]
    if query.repeated and query.retrieved is not None:
        row["a"] = row_shown(report)
    if query.weight != 1:
        row["w"] = query.weight
    if change:
        row["c"] = round(change, DATA_DIGITS) or change
    return row


def _broken(report: Report, query: QueryReport, findings: FindingsByQuery, documents: Sequence[Sequence[Any]]) -> Row:
    """Return what is broken of a query, and which of its ``documents`` that names."""
    listed = findings.failing(query.id) or findings.of(query.id)
    named = set(map(visible, _named(listed)))
    row: Row = {
        "s": query.status,
        "f": [list(_flat(line_of(finding, max(report.k)))) for finding in listed],
        "r": [violation.rule for violation in query.violations],
    }
    if named:
        row["u"] = [number for number, document in enumerate(documents) if document[0] in named]
    if why := why_and_since(report, query, findings):
        row["y"] = shown(why, bounds.HTML_WHY)
    return row


def _flat(parts: Parts) -> Iterator[str | list[str]]:
    """Yield the parts of a phrase: text is a string, a name is a list of one string."""
    match parts:
        case tuple():
            for part in parts:
                yield from _flat(part)
        case Sentence():
            yield from _flat(parts.phrase)
        case Name():
            yield [shown(parts.name, bounds.HTML_NAME)]
        case str() if parts:
            yield visible(parts)


def _result(result: RetrievedReport, texts: Mapping[str, str]) -> list[str]:
    """Return the document, what the contract wants of it, its chunk and score, and its text if that is known."""
    details = " · ".join(shown(detail, bounds.HTML_ID) for detail in about(result))
    text = [lines(texts[result.doc_id])] if result.doc_id in texts else []
    return [shown(result.doc_id, bounds.HTML_ID), result.contract or "", details, *text]


def _said(row: SaidRow, *, compared: bool) -> list[Any]:
    """Return the title, the texts now and, if they are compared, before, each with the number that is not listed."""
    now = [[lines(text) for text in row.now], row.more_now]
    before = [[lines(text) for text in row.before], row.more_before]
    return [row.title, now, before] if compared else [row.title, now]


def _values(metrics: dict[str, float | None], keys: list[str]) -> list[float | None]:
    return [None if (value := metrics.get(key)) is None else round(value, DATA_DIGITS) for key in keys]


def _data_documents(
    now: Mapping[str, int | None], before: Mapping[str, int | None] | None, *, forbidden: int
) -> list[list[Any]]:
    """Return ``[name, forbidden, rank now, rank before]`` per document; 0 if missing, the last only if compared."""
    documents = {**(before or {}), **now}
    return [
        [visible(name), forbidden, now.get(name) or 0, *([] if before is None else [before.get(name) or 0])]
        for name in documents
    ]
