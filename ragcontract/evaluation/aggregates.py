"""The means of all metrics on both sides, for all queries and by tag, and the queries whose values changed."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import fsum

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.run import Values
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.statistics.means import Comparison, Group, Row, by_tag, compare, group, means
from ragcontract.statistics.sign_flips import Change, Weights


class ChangedQuery(Struct, frozen=True, gc=False):
    """A query with another value of a family's metric than in the baseline."""

    number: int  # of the query in the golden set
    tags: tuple[str, ...]
    weight: float
    differences: Values  # now minus before, for each metric of the family


class FamilyGroups(Struct, frozen=True, kw_only=True):
    """Queries grouped by their values of one family's metrics."""

    metrics: tuple[Metric, ...]
    keys: tuple[str, ...]  # of the metrics
    groups: list[Group]  # of all queries
    tags: dict[str, list[Group]]
    changed: list[ChangedQuery] = []
    changed_tags: dict[str, list[ChangedQuery]] = {}

    def of(self, tag: str | None) -> list[Group]:
        return self.groups if tag is None else self.tags.get(tag, [])

    def changes(self, tag: str | None, keys: Collection[str]) -> dict[str, Change]:
        """Return the changes of some metrics over the queries with a tag, or over all queries for None.

        Diagnostic metrics are not compared.
        """
        wanted = {
            column: metric for column, metric in enumerate(self.metrics) if metric.key in keys and not metric.diagnostic
        }
        if not wanted:
            return {}
        queries = self.changed if tag is None else self.changed_tags.get(tag, [])
        return dict(changes(wanted, queries, self.of(tag), identical=not self.changed))


class Aggregates(Struct, frozen=True, kw_only=True):
    """The means of all metrics on both sides."""

    families: tuple[FamilyGroups, ...]
    comparisons: dict[str, Comparison]  # by metric
    tags: dict[str, dict[str, Comparison]]  # by tag and metric
    # The means that the ranking metrics of the run would have if all documents without a label were relevant; empty if
    # all documents have labels.
    if_relevant: Mapping[str, float] = {}

    def comparison(self, key: str, tag: str | None) -> Comparison:
        empty = Comparison(current=None)
        return self.comparisons[key] if tag is None else self.tags.get(tag, {}).get(key, empty)

    def changes(self, tag: str | None, keys: Collection[str]) -> dict[str, Change]:
        return {key: change for family in self.families for key, change in family.changes(tag, keys).items()}


def aggregate(plan: Plan, run: Side, baseline: Side | None) -> Aggregates:
    """Compute the means of all metrics on both sides."""
    ids, queries = list(plan.golden), plan.golden.values()
    tags, weights = [_tags(query, plan.tags) for query in queries], [query.weight for query in queries]
    families = []
    for number, family in enumerate(plan.every_family):
        now = [values or () for values in run.values(number, ids)]
        before = baseline.values(number, ids) if baseline else [None] * len(ids)
        groups = group(zip(tags, weights, now, before, strict=True))
        changed = find_changed_queries(zip(tags, weights, now, before, strict=True)) if baseline else []
        families.append(
            FamilyGroups(
                metrics=tuple(family.metrics),
                keys=tuple(metric.key for metric in family.metrics),
                groups=groups,
                tags=by_tag(groups),
                changed=changed,
                changed_tags=queries_by_tag(changed),
            )
        )
    names = dict.fromkeys(tag for family in families for tag in family.tags)
    return Aggregates(
        families=tuple(families),
        comparisons={
            key: comparison for family in families for key, comparison in compare(family.groups, family.metrics).items()
        },
        tags={
            tag: {
                key: comparison
                for family in families
                for key, comparison in compare(family.of(tag), family.metrics).items()
            }
            for tag in names
        },
        if_relevant=_if_relevant(plan, run, families[0].groups),
    )


def find_changed_queries(rows: Iterable[Row]) -> list[ChangedQuery]:
    """Return the queries with a changed value; ``rows`` are all golden queries, in their order."""
    return [
        ChangedQuery(number, tags, weight, differences)
        for number, (tags, weight, now, before) in enumerate(rows)
        if now and before and now != before
        for differences in [tuple([after - earlier for after, earlier in zip(now, before, strict=True)])]
        if any(abs(difference) > SAME for difference in differences)
    ]


def queries_by_tag(queries: Iterable[ChangedQuery]) -> dict[str, list[ChangedQuery]]:
    """Return the queries by tag. A query is listed under each of its tags."""
    tagged: dict[str, list[ChangedQuery]] = {}
    for query in queries:
        for tag in query.tags:
            tagged.setdefault(tag, []).append(query)
    return tagged


def changes(
    metrics: Mapping[int, Metric], queries: Sequence[ChangedQuery], groups: Sequence[Group], *, identical: bool
) -> Iterator[tuple[str, Change]]:
    """Yield the change of each metric over those queries of the groups that both sides have.

    ``metrics`` are by their column.
    """
    weights = Weights.of([(group.weight, group.count) for group in groups if group.now and group.before])
    for column, metric in metrics.items():
        changed = {
            query.number: (query.weight, moved) for query in queries if abs(moved := query.differences[column]) > SAME
        }
        yield (
            metric.key,
            Change(changed=changed, weights=weights, better=metric.better, scale=metric.scale, identical=identical),
        )


def _if_relevant(plan: Plan, run: Side, groups: Sequence[Group]) -> dict[str, float]:
    """Return the best means of the ranking metrics: those of their ``groups``, and what the best values add."""
    golden = plan.golden
    could_rise = [(golden[query_id].weight, score) for query_id, score in run.scores.items() if score.if_relevant]
    if not could_rise:
        return {}
    total = fsum(group.weight * group.count for group in groups if group.now)
    return {
        key: (now or 0.0)
        + fsum(weight * (score.if_relevant[column] - score.values[column]) for weight, score in could_rise) / total
        for column, (key, now) in enumerate(means(groups, plan.ranking.metrics).items())
    }


def _tags(query: GoldenQuery, wanted: frozenset[str]) -> tuple[str, ...]:
    """Return the tags of a query, only the ``wanted`` ones if there are any: not all queries of others are in scope."""
    return tuple([tag for tag in query.tags if tag in wanted]) if wanted else query.tags
