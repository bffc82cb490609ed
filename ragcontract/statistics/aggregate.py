"""Weighted means over queries.

Where there are many queries, few fared differently: they are counted as :class:`Alike`, and a mean over a million
queries is one over a few thousand kinds of them. Counts of parts of a set add up to those of the whole.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from math import fsum

from msgspec import Struct

from ragcontract.core.numbers import SAME
from ragcontract.metrics.formulas import MetricAtK
from ragcontract.model import GoldenQuery, Means, Noise, QueryScore
from ragcontract.statistics.significance import Weights, noise

Values = tuple[float, ...]


class Group(Struct, frozen=True, gc=False):
    """How many queries (``count``) have the same tags, the same weight and the same values of the metrics.

    The values ``now`` are empty for unanswerable queries; those ``before`` are None where there is nothing to compare
    with.
    """

    tags: tuple[str, ...]
    weight: float
    now: Values
    before: Values | None
    count: int


class Comparison(Struct, frozen=True, kw_only=True):
    """A metric's means: over all answerable queries, and over those shared with the baseline on either side."""

    current: float | None
    current_shared: float | None = None
    baseline: float | None = None

    @property
    def delta(self) -> float | None:
        """Current minus baseline, over the shared queries."""
        if self.current_shared is None or self.baseline is None:
            return None
        return self.current_shared - self.baseline


def groups_of(
    queries: Sequence[GoldenQuery], scores: Mapping[str, QueryScore], before: Mapping[str, QueryScore] | None = None
) -> list[Group]:
    """Count queries that fared alike on both sides."""
    now = [scores[query.id] for query in queries]
    then = [before.get(query.id) for query in queries] if before else [None] * len(queries)
    # Most that fared alike share a score: what one says is looked at once for all of them.
    tags, weights = [query.tags for query in queries], [query.weight for query in queries]
    shared = Counter(zip(tags, weights, map(id, now), map(id, then), strict=True))
    by_identity: dict[int, QueryScore | None] = dict(zip(map(id, now), now, strict=True))
    by_identity |= zip(map(id, then), then, strict=True)
    groups: Counter[tuple[tuple[str, ...], float, Values, Values | None]] = Counter()
    for (of_tags, weight, now_id, then_id), count in shared.items():
        score, earlier = by_identity[now_id], by_identity[then_id]
        groups[of_tags, weight, score.values if score else (), earlier.values if earlier else None] += count
    return [Group(*group, count) for group, count in groups.items()]


def means(groups: Iterable[Group], metrics: Sequence[MetricAtK], *, before: bool = False) -> Means:
    """Average each metric over the answerable queries, now or ``before``, by weight; None where there are none.

    The sums are exact before they are rounded (``math.fsum``), so the order of the queries does not matter; nor does
    that they are counted, since a count is taken as the powers of two in it, by which products are exact.
    """
    parts = [
        (values, group.weight, 2.0**bit)
        for group in groups
        if (values := group.before if before else group.now)
        for bit in range(group.count.bit_length())
        if group.count >> bit & 1
    ]
    if not parts:
        return {metric.key: None for metric in metrics}
    total = fsum([weight * times for _, weight, times in parts])
    return {
        metric.key: fsum([weight * values[column] * times for values, weight, times in parts]) / total
        for column, metric in enumerate(metrics)
    }


def compare(groups: Sequence[Group], metrics: Sequence[MetricAtK]) -> dict[str, Comparison]:
    """Average each metric, and on either side over the queries that both have, asked with the same words."""
    current = means(groups, metrics)
    shared = [group for group in groups if group.before is not None]
    current_shared = current if len(shared) == len(groups) else means(shared, metrics)
    baseline = means(shared, metrics, before=True)
    return {
        key: Comparison(current=value, current_shared=current_shared[key], baseline=baseline[key])
        for key, value in current.items()
    }


def noise_of(
    groups: Iterable[Group], metrics: Sequence[MetricAtK], columns: Iterable[int] | None = None
) -> dict[str, Noise]:
    """Compare both sides query by query; of each metric that moved, how sure its change is.

    Only of the metrics in those ``columns``, where given.
    """
    shared = [group for group in groups if group.now and group.before]
    moved = [group for group in shared if group.now != group.before]  # few, as a rule: the rest is about them alone
    weights = Weights(
        count=sum(group.count for group in shared),
        total=fsum(group.weight * group.count for group in shared),
        squares=fsum(group.weight * group.weight * group.count for group in shared),
    )
    found = {}
    for column in range(len(metrics)) if columns is None else columns:
        changes = [
            change
            for group in moved
            if group.before and abs(difference := group.now[column] - group.before[column]) > SAME
            for change in repeat((group.weight, difference), group.count)
        ]
        if changes:
            found[metrics[column].key] = noise(changes, weights)
    return found


def by_tag(groups: Iterable[Group]) -> dict[str, list[Group]]:
    """Group by tags, sorted; queries stand under each of theirs."""
    by_name: dict[str, list[Group]] = {}
    for group in groups:
        for tag in group.tags:
            by_name.setdefault(tag, []).append(group)
    return dict(sorted(by_name.items()))
