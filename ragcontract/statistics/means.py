"""Weighted means over queries.

Where there are many queries, few differ: those with the same values are counted as a :class:`Group`, and a mean over a
million queries is one over a few thousand groups. Counts of parts of a set add up to those of the whole.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import repeat
from math import fsum

from msgspec import Struct

from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.scores import Means, Values
from ragcontract.statistics.significance import Noise, Weights, noise

Row = tuple[tuple[str, ...], float, Values, Values | None]  # tags, weight, values now and before


class Group(Struct, frozen=True, gc=False):
    """How many queries (``count``) have the same tags, the same weight and the same values of a family's metrics.

    The values ``now`` are empty for queries that have no part in them; those ``before`` are None where there is nothing
    to compare with.
    """

    tags: tuple[str, ...]
    weight: float
    now: Values
    before: Values | None
    count: int


class Comparison(Struct, frozen=True, kw_only=True):
    """A metric's means: over all queries that have it, and over those shared with the baseline on either side."""

    current: float | None
    current_shared: float | None = None
    baseline: float | None = None

    @property
    def delta(self) -> float | None:
        """Current minus baseline, over the shared queries."""
        if self.current_shared is None or self.baseline is None:
            return None
        return self.current_shared - self.baseline


def group(rows: Iterable[Row]) -> list[Group]:
    """Count queries with the same tags, weight and values."""
    return [Group(*row, count) for row, count in Counter(rows).items()]


def means(groups: Iterable[Group], metrics: Sequence[Metric], *, before: bool = False) -> Means:
    """Average each metric over the queries that have it, now or ``before``, by weight; None where there are none.

    The sums are exact before they are rounded (``math.fsum``), so the order of the queries does not matter; nor does
    it matter that they are counted, since a count is split into powers of two, by which products are exact.
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
    """Average each metric, and on either side over the queries that have it on both, with the same question."""
    current = means(groups, metrics)
    having = [one for one in groups if one.now]
    shared = [one for one in having if one.before]
    current_shared = current if len(shared) == len(having) else means(shared, metrics)
    baseline = means(shared, metrics, before=True)
    return {
        key: Comparison(current=value, current_shared=current_shared[key], baseline=baseline[key])
        for key, value in current.items()
    }


def noise_of(
    groups: Iterable[Group], metrics: Sequence[Metric], columns: Iterable[int] | None = None
) -> dict[str, Noise]:
    """Compare both sides query by query; of each metric that changed, return how sure the change is.

    Only of the metrics in those ``columns``, where given.
    """
    shared = [one for one in groups if one.now and one.before]
    changed = [one for one in shared if one.now != one.before]  # few, as a rule: the rest is about them alone
    weights = Weights(
        count=sum(one.count for one in shared),
        total=fsum(one.weight * one.count for one in shared),
        squares=fsum(one.weight * one.weight * one.count for one in shared),
    )
    found = {}
    for column in range(len(metrics)) if columns is None else columns:
        metric = metrics[column]
        changes = [
            change
            for one in changed
            if one.before and abs(difference := one.now[column] - one.before[column]) > SAME
            for change in repeat((one.weight, difference), one.count)
        ]
        if changes:
            found[metric.key] = noise(changes, weights, better=metric.better, scale=metric.scale)
    return found


def by_tag(groups: Iterable[Group]) -> dict[str, list[Group]]:
    """Sort by tags; queries count under each of theirs."""
    tagged: dict[str, list[Group]] = {}
    for one in groups:
        for tag in one.tags:
            tagged.setdefault(tag, []).append(one)
    return dict(sorted(tagged.items()))
