"""The records of ``rag-contract compare --format json``; ``rag-contract schema comparison`` prints their schema.

All other formats of the comparison are rendered from them.
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from ragcontract.core.metric import Direction, Scale
from ragcontract.core.run import SourceFile
from ragcontract.files.json_document import document
from ragcontract.runs.stored import Tool

Interval = tuple[float, float]


class ComparedMetric(Struct, frozen=True, kw_only=True):
    """A metric; ``k`` is its cut-off, null if it has none."""

    label: str
    k: int | None
    better: Direction
    scale: Scale


class AgainstFirst(Struct, frozen=True, kw_only=True):
    """The change of a mean since the first run: paired, query by query.

    ``interval`` is the 95 % interval of the change, null if nothing changed. ``wins`` and ``losses`` count the queries
    that are better and worse than in the first run.
    """

    delta: float
    interval: Interval | None
    wins: int
    ties: int
    losses: int


class RunMean(Struct, frozen=True, kw_only=True):
    """The mean of a metric in one run, with its 95 % interval; null without a query that has the metric.

    ``against_first`` is null for the first run.
    """

    mean: float | None
    interval: Interval | None
    against_first: AgainstFirst | None


class ComparedRun(Struct, frozen=True, kw_only=True):
    """One of the runs; its ``label`` is unique. ``missing`` are golden queries without a row, which score 0.

    ``notes`` are sentences that explain its metrics: ids written in another form, fewer results than k, distances.
    """

    label: str
    files: list[SourceFile]
    queries: int
    missing: list[str]
    versions: dict[str, list[str]]
    metrics: dict[str, RunMean]
    notes: list[str] = []


class Disagreement(Struct, frozen=True, kw_only=True):
    """A query that the runs disagree about; the lists have one item for each run.

    ``ranks`` has the rank of every relevant document, with null for one that was not retrieved.
    """

    id: str
    location: str
    query: str
    metrics: dict[str, list[float | None]]
    ranks: list[dict[str, int | None]]


class RunComparison(Struct, frozen=True, kw_only=True):
    """Several runs over one golden set, version 1, to which keys are only added.

    ``tag`` is the tag of the compared queries, null for all of them; ``queries`` is their number. ``disagreements`` are
    those with the largest spread of the first metric at the largest cut-off, then of the next one; of more than 50,
    ``more_disagreements`` counts the others.
    """

    schema_version: Literal[1] = 1
    tool: Tool
    created_at: str
    k: list[int]
    golden: list[SourceFile]
    config: list[SourceFile]
    tag: str | None
    queries: int
    metrics: dict[str, ComparedMetric]
    runs: list[ComparedRun]
    disagreements: list[Disagreement]
    more_disagreements: int
    warnings: list[str]


def at_largest_k(made: RunComparison) -> dict[str, ComparedMetric]:
    """Return the metrics at the largest cut-off, and those without one."""
    k = max(made.k)
    return {key: metric for key, metric in made.metrics.items() if metric.k in {None, k}}


def render(made: RunComparison) -> Iterator[bytes]:
    """Encode the comparison as JSON, one query per line."""
    return document(made, {"disagreements": made.disagreements})
