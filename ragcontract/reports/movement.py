"""How ranks moved between the baseline and the run."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ragcontract.model import QueryReport
from ragcontract.numbers import SAME

Where = Mapping[str, int | None]


class Moved(Struct, frozen=True, kw_only=True):
    """A query whose relevant documents moved, and by how much in reciprocal ranks (negative is worse)."""

    query: QueryReport
    change: float


class Movement(Struct, frozen=True, kw_only=True):
    """All queries that both sides have, sorted by what happened to them.

    ``even`` counts those that are neither: nothing moved, or relevant documents changed places.
    """

    worse: list[Moved]
    better: list[Moved]
    even: int


def movement(queries: Iterable[QueryReport]) -> Movement:
    """Sort queries into worse (worst first), better (best first) and even."""
    worse: list[Moved] = []
    better: list[Moved] = []
    even = 0
    for query in queries:
        before = query.baseline_ranks
        if before is None:
            continue
        change = 0.0 if before == query.ranks else _reciprocals(query.ranks) - _reciprocals(before)
        if abs(change) <= SAME:
            even += 1
        else:
            (better if change > 0 else worse).append(Moved(query=query, change=change))
    worse.sort(key=lambda moved: moved.change)
    better.sort(key=lambda moved: -moved.change)
    return Movement(worse=worse, better=better, even=even)


def _reciprocals(ranks: Where) -> float:
    return sum(1 / rank for rank in ranks.values() if rank)


def loss(query: QueryReport) -> tuple[bool, float]:
    """Order broken queries worst first: forbidden documents, then by what was lost since the baseline or is lacking."""
    forbidden = any(violation.rule == "forbidden_docs" for violation in query.violations)
    before = len(query.ranks) if query.baseline_ranks is None else _reciprocals(query.baseline_ranks)
    return not forbidden, _reciprocals(query.ranks) - before


def changed_versions(run: Mapping[str, list[str]], baseline: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Return ``{field: (baseline's, run's)}`` of the version fields that both sides have and that differ."""
    return {
        field: (", ".join(before), ", ".join(now))
        for field, now in run.items()
        if (before := baseline.get(field)) and set(before) != set(now)
    }
