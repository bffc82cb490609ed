"""Exact percentiles (nearest rank) of latencies counted on a cluster, without collecting them."""

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from ragcontract.cluster.counts import Counts
from ragcontract.cluster.workers import from_bits
from ragcontract.core.run import Latency
from ragcontract.statistics.latency import rank_of

STEPS = (40, 20, 0)  # number of low bits ignored; each step yields at most about a million groups


class Group(NamedTuple):
    """Numbers with the same high bits: their count, the lowest and the highest."""

    prefix: int
    rows: int
    lowest: int
    highest: int


def latency_of(counts: Counts, rows: int) -> Latency | None:
    """Return the latency summary of ``rows`` latencies, or None if there are none."""
    if not rows:
        return None
    here = counts.here("latency")
    groups = None if here is None else [Group(one.number, one.rows, one.number, one.number) for one in here]

    def percentile(percent: int) -> float:
        rank = rank_of(rows, percent)
        number = at_rank(counts.there("latency"), rank) if groups is None else _holding(groups, rank)[0].lowest
        return from_bits(number)

    return Latency(
        rows=rows,
        p50_ms=percentile(50),
        p95_ms=percentile(95),
        max_ms=from_bits(counts.size("latency").highest),
    )


def at_rank(counts: DataFrame, rank: int) -> int:
    """Return the ``number`` at a 1-based rank, where each number occurs ``rows`` times.

    The numbers are grouped by their high bits, then by more bits within the group that contains the rank.
    """
    lowest = 0
    for shift in STEPS:
        prefix = sql.shiftright("number", shift)
        grouped = counts.groupBy(prefix.alias("prefix"))
        found = grouped.agg(sql.sum("rows"), sql.min("number"), sql.max("number")).collect()
        group, rank = _holding(sorted(Group(*row) for row in found), rank)
        lowest = group.lowest
        if lowest == group.highest:
            break
        counts = counts.filter(prefix == group.prefix)
    return lowest


def _holding(groups: Iterable[Group], rank: int) -> tuple[Group, int]:
    """Return the group that contains a rank, and the rank within that group."""
    for group in groups:
        if rank <= group.rows:
            return group, rank
        rank -= group.rows
    raise ValueError("there are fewer numbers than that")
