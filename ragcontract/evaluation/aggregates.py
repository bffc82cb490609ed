"""The means of all metrics on both sides, for all queries and by tag, and the queries whose values changed."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.evaluation import changed_queries
from ragcontract.evaluation.changed_queries import ChangedQuery
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.statistics.change import Change
from ragcontract.statistics.means import Comparison, Group, by_tag, compare, group, means


class FamilyGroups(Struct, frozen=True, kw_only=True):
    """Queries grouped by their values of one family's metrics: all queries, and those with each tag.

    ``changed`` are the queries that have another value than in the baseline.
    """

    metrics: tuple[Metric, ...]
    keys: tuple[str, ...]
    groups: list[Group]
    tags: dict[str, list[Group]]
    changed: list[ChangedQuery] = []
    changed_tags: dict[str, list[ChangedQuery]] = {}

    def of(self, tag: str | None) -> list[Group]:
        """Return the groups with a tag; all groups for None."""
        return self.groups if tag is None else self.tags.get(tag, [])

    def changes(self, tag: str | None, keys: Collection[str]) -> dict[str, Change]:
        """Return the changes of some metrics over the queries with a tag, or over all queries for None.

        Diagnostic metrics are not compared.
        """
        wanted = {column: one for column, one in enumerate(self.metrics) if one.key in keys and not one.diagnostic}
        if not wanted:
            return {}
        queries = self.changed if tag is None else self.changed_tags.get(tag, [])
        return dict(changed_queries.changes(wanted, queries, self.of(tag), identical=not self.changed))


class Aggregates(Struct, frozen=True, kw_only=True):
    """The means of all metrics by key, for all queries and by tag.

    ``if_relevant`` are the highest means that the ranking metrics of the run could have, whatever the documents are
    that nobody has judged; it is empty if all are judged.
    """

    families: tuple[FamilyGroups, ...]
    comparisons: dict[str, Comparison]
    tags: dict[str, dict[str, Comparison]]
    if_relevant: Mapping[str, float] = {}

    def comparison(self, key: str, tag: str | None) -> Comparison:
        """Return the means of a metric over the queries with a tag, or over all queries for None."""
        empty = Comparison(current=None)
        return self.comparisons[key] if tag is None else self.tags.get(tag, {}).get(key, empty)

    def changes(self, tag: str | None, keys: Collection[str]) -> dict[str, Change]:
        """Return the changes of some metrics over the queries with a tag, or over all queries for None."""
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
        changed = changed_queries.changed_queries(zip(tags, weights, now, before, strict=True)) if baseline else []
        families.append(
            FamilyGroups(
                metrics=tuple(family.metrics),
                keys=tuple(metric.key for metric in family.metrics),
                groups=groups,
                tags=by_tag(groups),
                changed=changed,
                changed_tags=changed_queries.by_tag(changed),
            )
        )
    names = dict.fromkeys(tag for family in families for tag in family.tags)
    return Aggregates(
        families=tuple(families),
        comparisons={key: one for family in families for key, one in compare(family.groups, family.metrics).items()},
        tags={
            tag: {key: one for family in families for key, one in compare(family.of(tag), family.metrics).items()}
            for tag in names
        },
        if_relevant=_if_relevant(plan, run),
    )


def _if_relevant(plan: Plan, run: Side) -> dict[str, float]:
    scores = run.scores
    if not any(score.if_relevant for score in scores.values()):
        return {}
    having = ((query.weight, scores[query_id]) for query_id, query in plan.golden.items() if query_id in scores)
    groups = group(((), weight, score.if_relevant or score.values, None) for weight, score in having)
    return {key: value for key, value in means(groups, plan.ranking.metrics).items() if value is not None}


def _tags(query: GoldenQuery, wanted: frozenset[str]) -> tuple[str, ...]:
    """Return the tags of a query; only the ``wanted`` ones, if any are: of others, not all queries are judged."""
    return tuple([tag for tag in query.tags if tag in wanted]) if wanted else query.tags
