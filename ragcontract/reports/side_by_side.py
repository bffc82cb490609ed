"""The results of broken queries before and now, side by side: what was retrieved instead."""

from itertools import zip_longest

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.reports.broken import broken_queries, not_failing_queries
from ragcontract.reports.report import QueryReport, Report, RetrievedReport


class Pair(Struct, frozen=True):
    """The results of both sides at one ``rank``; None where a side has none."""

    rank: int
    before: RetrievedReport | None
    now: RetrievedReport | None


def listed_queries(report: Report) -> list[QueryReport]:
    """Return the queries whose results are listed: broken ones, worst first, then those that do not fail."""
    return [query for query in (*broken_queries(report), *not_failing_queries(report)) if query.retrieved is not None]


def pairs(query: QueryReport) -> list[Pair]:
    """Return the listed results of both sides, rank by rank."""
    before, now = query.baseline_retrieved or [], query.retrieved or []
    both = list(zip_longest(before, now))[: bounds.RETRIEVED]
    return [Pair(rank, *sides) for rank, sides in enumerate(both, 1)]


def top(report: Report) -> str:
    """Return how far the lists go: ``top 5``, or ``first 20 of the top 50``."""
    k = max(report.k)
    return f"top {k}" if k <= bounds.RETRIEVED else f"first {bounds.RETRIEVED} of the top {k}"


def about(result: RetrievedReport) -> list[str]:
    """Return the chunk and the score of a result, as far as they are known, without control characters escaped."""
    chunk = [] if result.chunk_id is None or result.chunk_id == result.doc_id else [result.chunk_id]
    return [*chunk, *([] if result.score is None else [f"{result.score:.4g}"])]
