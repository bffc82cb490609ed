"""Weighted means over queries.

Where there are many queries, few fared differently: they are counted as :class:`Alike`, and a mean over a million
queries is one over a few thousand kinds of them. Counts of parts of a set add up to those of the whole.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from math import fsum

from msgspec import Struct

from ragcontract.model import GoldenQuery, Means, Noise, QueryScore
from ragcontract.numbers import SAME
from ragcontract.scoring.metrics import MetricAtK
from ragcontract.scoring.significance import Weights, noise

Values = tuple[float, ...]


class Alike(Struct, frozen=True, gc=False):
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


def alike(
    queries: Sequence[GoldenQuery], scores: Mapping[str, QueryScore], before: Mapping[str, QueryScore] | None = None
) -> list[Alike]:
    """Count queries that fared alike on both sides."""
    now = [scores[query.id] for query in queries]
    then = [before.get(query.id) for query in queries] if before else [None] * len(queries)
    # Most that fared alike share a score: what one says is looked at once for all of them.
    tags, weights = [query.tags for query in queries], [query.weight for query in queries]
    shared = Counter(zip(tags, weights, map(id, now), map(id, then), strict=True))
    by_identity: dict[int, QueryScore | None] = dict(zip(map(id, now), now, strict=True))
    by_identity |= zip(map(id, then), then, strict=True)
    kinds: Counter[tuple[tuple[str, ...], float, Values, Values | None]] = Counter()
    for (of_tags, weight, now_id, then_id), count in shared.items():
        score, earlier = by_identity[now_id], by_identity[then_id]
        kinds[of_tags, weight, score.values if score else (), earlier.values if earlier else None] += count
    return [Alike(*kind, count) for kind, count in kinds.items()]


def means(kinds: Iterable[Alike], metrics: Sequence[MetricAtK], *, before: bool = False) -> Means:
    """Average each metric over the answerable queries, now or ``before``, by weight; None where there are none.

    The sums are exact before they are rounded (``math.fsum``), so the order of the queries does not matter; nor does
    that they are counted, since a count is taken as the powers of two in it, by which products are exact.
    """
    parts = [
        (values, kind.weight, 2.0**bit)
        for kind in kinds
        if (values := kind.before if before else kind.now)
        for bit in range(kind.count.bit_length())
        if kind.count >> bit & 1
    ]
    if not parts:
        return {metric.key: None for metric in metrics}
    total = fsum([weight * times for _, weight, times in parts])
    return {
        metric.key: fsum([weight * values[column] * times for values, weight, times in parts]) / total
        for column, metric in enumerate(metrics)
    }


def compare(kinds: Sequence[Alike], metrics: Sequence[MetricAtK]) -> dict[str, Comparison]:
    """Average each metric, and on either side over the queries that both have, asked with the same words."""
    current = means(kinds, metrics)
    shared = [kind for kind in kinds if kind.before is not None]
    current_shared = current if len(shared) == len(kinds) else means(shared, metrics)
    baseline = means(shared, metrics, before=True)
    return {
        key: Comparison(current=value, current_shared=current_shared[key], baseline=baseline[key])
        for key, value in current.items()
    }


def noise_of(
    kinds: Iterable[Alike], metrics: Sequence[MetricAtK], columns: Iterable[int] | None = None
) -> dict[str, Noise]:
    """Compare both sides query by query; of each metric that moved, how sure its change is.

    Only of the metrics in those ``columns``, where given.
    """
    shared = [kind for kind in kinds if kind.now and kind.before]
    moved = [kind for kind in shared if kind.now != kind.before]  # few, as a rule: the rest is about them alone
    weights = Weights(
        count=sum(kind.count for kind in shared),
        total=fsum(kind.weight * kind.count for kind in shared),
        squares=fsum(kind.weight * kind.weight * kind.count for kind in shared),
    )
    found = {}
    for column in range(len(metrics)) if columns is None else columns:
        changes = [
            change
            for kind in moved
            if kind.before and abs(difference := kind.now[column] - kind.before[column]) > SAME
            for change in repeat((kind.weight, difference), kind.count)
        ]
        if changes:
            found[metrics[column].key] = noise(changes, weights)
    return found


def by_tag(kinds: Iterable[Alike]) -> dict[str, list[Alike]]:
    """Group by tags, sorted; queries stand under each of theirs."""
    groups: dict[str, list[Alike]] = {}
    for kind in kinds:
        for tag in kind.tags:
            groups.setdefault(tag, []).append(kind)
    return dict(sorted(groups.items()))
