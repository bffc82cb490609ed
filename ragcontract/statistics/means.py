"""Weighted means over queries.

Even with many queries, few are distinct: those with the same values are counted as a :class:`Group`, so a mean over a
million queries is one over a few thousand groups. The counts of disjoint subsets add up to those of the whole set.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum

from msgspec import Struct

from ragcontract.core.metric import Metric
from ragcontract.core.scores import Means, Values

Row = tuple[tuple[str, ...], float, Values, Values | None]  # tags, weight, current values, baseline values


class Group(Struct, frozen=True, gc=False):
    """The number (``count``) of queries with the same tags, weight and values of a family's metrics.

    ``now`` is empty if the metrics do not apply to the queries; ``before`` is None if there is no baseline value.
    """

    tags: tuple[str, ...]
    weight: float
    now: Values
    before: Values | None
    count: int


class Comparison(Struct, frozen=True, kw_only=True):
    """Means of a metric: over all queries that have it, and, for run and baseline, over their shared queries."""

    current: float | None
    current_shared: float | None = None
    baseline: float | None = None

    @property
    def delta(self) -> float | None:
        """Current mean minus baseline mean, over the shared queries."""
        if self.current_shared is None or self.baseline is None:
            return None
        return self.current_shared - self.baseline


def group(rows: Iterable[Row]) -> list[Group]:
    """Count queries with the same tags, weight and values."""
    return [Group(*row, count) for row, count in Counter(rows).items()]


def means(groups: Iterable[Group], metrics: Sequence[Metric], *, before: bool = False) -> Means:
    """Return the weighted mean of each metric over the queries that have it, now or ``before``; None if none has it.

    Sums are exact until the final rounding (``math.fsum``), so the result does not depend on the order of the queries.
    Nor does it depend on the grouping: counts are split into powers of two, by which multiplication is exact.
    """
    parts = [
        (values, one.weight, 2.0**bit)
        for one in groups
        if (values := one.before if before else one.now)
        for bit in range(one.count.bit_length())
        if one.count >> bit & 1
    ]
    if not parts:
        return {metric.key: None for metric in metrics}
    total = fsum([weight * times for _, weight, times in parts])
    return {
        metric.key: fsum([weight * values[column] * times for values, weight, times in parts]) / total
        for column, metric in enumerate(metrics)
    }


def compare(groups: Sequence[Group], metrics: Sequence[Metric]) -> dict[str, Comparison]:
    """Return the means of each metric: over all queries, and over those that have it in both run and baseline."""
    current = means(groups, metrics)
    having = [one for one in groups if one.now]
    shared = [one for one in having if one.before]
    current_shared = current if len(shared) == len(having) else means(shared, metrics)
    baseline = means(shared, metrics, before=True)
    return {
        key: Comparison(current=value, current_shared=current_shared[key], baseline=baseline[key])
        for key, value in current.items()
    }


def by_tag(groups: Iterable[Group]) -> dict[str, list[Group]]:
    """Return the groups by tag, sorted; a query counts for each of its tags."""
    tagged: dict[str, list[Group]] = {}
    for one in groups:
        for tag in one.tags:
            tagged.setdefault(tag, []).append(one)
    return dict(sorted(tagged.items()))
