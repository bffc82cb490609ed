"""The query rows that the HTML report shows without JavaScript: the first broken and tolerated queries."""

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.numbers import count, fixed, signed
from ragcontract.reports.broken import FindingsByQuery, broken_queries, not_failing_queries, why_and_since
from ragcontract.reports.html.page_text import Badge, Part, badge, lines, sentence, shown
from ragcontract.reports.metric_table import main_metric
from ragcontract.reports.rank_changes import rank
from ragcontract.reports.report import QueryReport, Report
from ragcontract.reports.said_rows import SaidRow, said_rows

DIGITS = 3
NO_VALUE = "n/a"


class BrokenRule(Struct, frozen=True, kw_only=True):
    """What a rule expected of a query and what was found."""

    expected: Sequence[Part]
    found: Sequence[Part]


class DocumentRank(Struct, frozen=True, kw_only=True):
    """A document of a query and its rank, as text: ``8 → missing``."""

    name: str
    rank: str


class SaidSides(Struct, frozen=True, kw_only=True):
    """One kind of text that was said or seen, on both sides; ``before`` is None if there is nothing to compare with."""

    title: str
    before: Sequence[str] | None
    now: Sequence[str]


class QueryRow(Struct, frozen=True, kw_only=True):
    """One query; ``why`` says why it does not fail. ``more`` counts the documents that are not listed."""

    id: str
    question: str
    badge: Badge
    tags: Sequence[str]
    metric: str
    change: str
    documents: Sequence[DocumentRank]
    more: str
    broken: Sequence[BrokenRule]
    why: str
    said: Sequence[SaidSides]


class Queries(Struct, frozen=True, kw_only=True):
    """The rows, the label of their metric, and notes on the queries that are not among them.

    ``hidden`` is about queries that only the script shows, ``left_out`` about queries that are not in the page at all.
    """

    metric: str
    rows: Sequence[QueryRow]
    hidden: str
    left_out: str


def queries(report: Report) -> Queries:
    """Return the rows of the first broken queries, and of tolerated ones."""
    findings = FindingsByQuery(report)
    key = main_metric(report)
    listed = [*broken_queries(report), *not_failing_queries(report)][: bounds.HTML_QUERIES]
    hidden, left_out = len(report.queries) - len(listed), report.inputs.golden.queries - len(report.queries)
    neither = "that neither broke a rule nor changed are not listed."
    return Queries(
        metric=shown(report.metrics[key].label),
        rows=[_row(report, query, findings, key) for query in listed],
        hidden=f"{count(hidden, 'more query')} can be seen with JavaScript enabled." if hidden else "",
        left_out=f"{count(left_out, 'query')} {neither}" if left_out else "",
    )


def _row(report: Report, query: QueryReport, findings: FindingsByQuery, key: str) -> QueryRow:
    value, before = query.metrics.get(key), (query.baseline_metrics or {}).get(key)
    listed = findings.failing(query.id) or findings.of(query.id)
    documents = sum(1 for _ in _documents(query))
    return QueryRow(
        id=shown(query.id, bounds.HTML_ID),
        question=shown(query.query, bounds.HTML_QUESTION),
        badge=badge(query.status),
        tags=[shown(tag, bounds.HTML_ID) for tag in query.tags],
        metric=NO_VALUE if value is None else fixed(value, DIGITS),
        change=NO_VALUE if value is None or before is None else signed(value - before, DIGITS),
        documents=list(islice(_documents(query), bounds.HTML_RANKS)),
        more=f"{more:,} more" if (more := documents - bounds.HTML_RANKS) > 0 else "",
        broken=[BrokenRule(expected=sentence(one.expected), found=sentence(one.found)) for one in listed],
        why=shown(why_and_since(report, query, findings), bounds.HTML_WHY),
        said=[_sides(row, compared=query.baseline_said is not None) for row in said_rows(query)],
    )


def _sides(row: SaidRow, *, compared: bool) -> SaidSides:
    before = _listed(row.before, row.more_before) if compared else None
    return SaidSides(title=row.title, before=before, now=_listed(row.now, row.more_now))


def _listed(texts: Sequence[str], more: int) -> list[str]:
    return [*map(lines, texts), *([f"… {more:,} more"] if more else [])]


def _documents(query: QueryReport) -> Iterable[DocumentRank]:
    """Yield the relevant documents, and the forbidden ones that were or are there."""
    compared = query.baseline_ranks is not None
    sides = (
        (query.baseline_ranks or {}, query.ranks, ""),
        (query.baseline_forbidden_ranks or {}, query.forbidden_ranks, " (forbidden)"),
    )
    for before, now, what in sides:
        for name in {**before, **now}:
            was, is_now = rank(before.get(name)), rank(now.get(name))
            changed = compared and was != is_now
            yield DocumentRank(name=shown(name, bounds.HTML_ID) + what, rank=f"{was} → {is_now}" if changed else is_now)
