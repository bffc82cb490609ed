"""Weighted means over queries."""

from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from operator import mul

from msgspec import Struct

from ragcontract.model import GoldenQuery, Means, QueryScore
from ragcontract.scoring.metrics import MetricAtK


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


def means(queries: Iterable[GoldenQuery], scores: Mapping[str, QueryScore], metrics: Sequence[MetricAtK]) -> Means:
    """Average each metric over the answerable ones of ``queries``, weighted; None where there are none.

    The sums are exact before they are rounded once (``math.fsum``), so the order of the queries does not matter.
    """
    counted = [query for query in queries if query.answerable]
    if not counted:
        return {metric.key: None for metric in metrics}
    weights = [query.weight for query in counted]
    total = fsum(weights)
    alike = min(weights) == max(weights) == 1
    columns = zip(*[scores[query.id].values for query in counted], strict=True)
    return {
        metric.key: fsum(values if alike else map(mul, weights, values)) / total
        for metric, values in zip(metrics, columns, strict=True)
    }


def by_tag(queries: Iterable[GoldenQuery]) -> dict[str, list[GoldenQuery]]:
    """Group queries by their tags, sorted by tag; a query stands under each of its tags."""
    groups: dict[str, list[GoldenQuery]] = {}
    for query in queries:
        for tag in query.tags:
            groups.setdefault(tag, []).append(query)
    return dict(sorted(groups.items()))
