"""How to evaluate each row of a run; the same plan is used for run and baseline, locally and on a cluster."""

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, Missing
from ragcontract.core.rule import RankRule, RowRule, RuleSettings, Violation
from ragcontract.core.run import RunRow, row_type
from ragcontract.core.scores import QueryScore, Values
from ragcontract.metrics.ranking import Ranking


class RowOutcome(Struct, frozen=True, kw_only=True, gc=False):
    """The result of one row: its ranks, the values of the other families, the rules of rows that it violates."""

    score: QueryScore
    values: tuple[Values, ...] = ()
    violations: tuple[Violation, ...] = ()


class Plan(Struct, frozen=True, kw_only=True):
    """The metrics, rules and options for the evaluation of rows.

    ``ranking`` is the family whose ranks are stored for rules; ``families`` are the others. ``row_rules`` are the rule
    classes that need the row, and ``rank_rules`` those that need its ranks: they say which rows break the contract, so
    that their results can be listed. ``listed`` are the queries whose results a baseline holds. With ``repeats``, a
    query may have several rows; with ``keep_ids``, the document ids of all rows are stored. With ``tags``, means are
    computed for these tags only, and rows for the golden queries that are ``not_judged`` are skipped. A run is scored
    as if nothing was retrieved for a golden query without a row (whether that is allowed, ``judging.unjudgeable``
    says); a baseline may lack rows, because golden queries may be new.
    """

    golden: dict[str, GoldenQuery]
    ranking: Ranking
    families: tuple[Family, ...] = ()
    row_rules: tuple[type[RowRule], ...] = ()
    rank_rules: tuple[type[RankRule], ...] = ()
    listed: frozenset[str] = frozenset()
    settings: RuleSettings
    repeats: bool = False
    keep_ids: bool = False
    is_baseline: bool = False
    tags: frozenset[str] = frozenset()
    not_judged: frozenset[str] = frozenset()

    @property
    def k(self) -> int:
        """The largest cut-off."""
        return self.ranking.k

    @property
    def needs(self) -> frozenset[str]:
        """The fields of a run row that metrics and rules read."""
        of_families = (family.needs for family in (self.ranking, *self.families))
        return frozenset().union(*of_families, *(rule.needs for rule in self.row_rules))

    @property
    def row_type(self) -> type[RunRow]:
        """The record type with which rows are decoded."""
        return row_type(self.needs)

    def for_baseline(self, listed: Collection[str] = ()) -> "Plan":
        """Return the plan for the other side: a baseline is not judged, and need not have every query.

        Its results are held for the queries that are ``listed``.
        """
        return replace(self, row_rules=(), rank_rules=(), keep_ids=False, is_baseline=True, listed=frozenset(listed))

    def violations(self, query: GoldenQuery, row: RunRow) -> Iterator[Violation]:
        """Yield what a row violates, but for rules of ranks."""
        for rules in self.row_rules:
            for rule in rules.of(query, self.settings):
                yield from rule.violations(query, row)

    def missing(self, query: GoldenQuery) -> RowOutcome:
        """Return the outcome of a query without a row, as of an empty row: nothing found, the worst of what it has.

        A query that has no part in a family's metrics has none here either.
        """
        row = self.row_type(query_id=query.id, results=[])
        values = [() if family.values(query, row) == () else worst_values(family.metrics) for family in self.families]
        return RowOutcome(
            score=self.ranking.score(query, ()), values=tuple(values), violations=tuple(self.violations(query, row))
        )


def valid_values(family: Family, query: GoldenQuery, row: RunRow) -> Values | str:
    """Return the values of one row, or a message if a value is missing or out of range."""
    values = family.values(query, row)
    if isinstance(values, Missing):
        return values.why
    if values and len(values) != len(family.metrics):
        return f"has {len(values)} values of {len(family.metrics)} metrics"
    for metric, value in zip(family.metrics, values, strict=False):
        if not metric.scale.low <= value <= metric.scale.high:  # the comparison is false for NaN
            return f"{metric.key} is {value}, outside of its scale from {metric.scale.low:g} to {metric.scale.high:g}"
    return values


def worst_values(metrics: Iterable[Metric]) -> Values:
    """Return the values of a query without any result."""
    return tuple([metric.worst for metric in metrics])
