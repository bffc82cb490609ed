"""The queries whose values of a family's metrics differ between run and baseline."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.scores import Values
from ragcontract.statistics.change import Change, Weights
from ragcontract.statistics.means import Group, Row


class ChangedQuery(Struct, frozen=True, gc=False):
    """A query by its ``number`` in the golden set, with now minus before for each of a family's metrics."""

    number: int
    tags: tuple[str, ...]
    weight: float
    differences: Values


def changed_queries(rows: Iterable[Row]) -> list[ChangedQuery]:
    """Return the queries of which a value changed; ``rows`` are all golden queries, in their order."""
    return [
        ChangedQuery(number, tags, weight, differences)
        for number, (tags, weight, now, before) in enumerate(rows)
        if now and before and now != before
        for differences in [tuple([after - one for after, one in zip(now, before, strict=True)])]
        if any(abs(difference) > SAME for difference in differences)
    ]


def by_tag(queries: Iterable[ChangedQuery]) -> dict[str, list[ChangedQuery]]:
    """Return the queries by tag; a query counts for each of its tags."""
    tagged: dict[str, list[ChangedQuery]] = {}
    for one in queries:
        for tag in one.tags:
            tagged.setdefault(tag, []).append(one)
    return tagged


def changes(
    metrics: Mapping[int, Metric], queries: Sequence[ChangedQuery], groups: Sequence[Group], *, identical: bool
) -> Iterator[tuple[str, Change]]:
    """Yield the change of each metric, given by its column, over the queries of some groups that both sides have."""
    weights = Weights.of([(one.weight, one.count) for one in groups if one.now and one.before])
    for column, metric in metrics.items():
        changed = {one.number: (one.weight, moved) for one in queries if abs(moved := one.differences[column]) > SAME}
        yield (
            metric.key,
            Change(changed=changed, weights=weights, better=metric.better, scale=metric.scale, identical=identical),
        )
