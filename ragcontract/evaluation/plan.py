"""How to evaluate each row of a run; the same plan is used for run and baseline, locally and on a cluster."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, Missing
from ragcontract.core.rule import RowRule, RuleSettings, Violation
from ragcontract.core.run import RunRow, row_type
from ragcontract.core.scores import Values
from ragcontract.metrics.ranking import Ranking

LISTED = 10_000  # maximum number of unknown query ids stored; a log may contain any number of them


class Plan(Struct, frozen=True, kw_only=True):
    """The metrics, rules and options for the evaluation of rows.

    ``ranking`` is the family whose ranks are stored for rules; ``families`` are the others. ``row_rules`` are the rule
    classes that need the row. With ``repeats``, a query may have several rows; with ``keep_ids``, the document ids of
    all rows are stored. With ``score_missing``, a golden query without a row is scored as if nothing was retrieved; a
    baseline may lack rows, because golden queries may be new.
    """

    golden: dict[str, GoldenQuery]
    ranking: Ranking
    families: tuple[Family, ...] = ()
    row_rules: tuple[type[RowRule], ...] = ()
    settings: RuleSettings
    repeats: bool = False
    keep_ids: bool = False
    score_missing: bool = True

    @property
    def k(self) -> int:
        """The largest cut-off."""
        return self.ranking.k

    @property
    def metrics(self) -> list[Metric]:
        """All metrics, family by family."""
        return [metric for family in (self.ranking, *self.families) for metric in family.metrics]

    @property
    def needs(self) -> frozenset[str]:
        """The fields of a run row that metrics and rules read."""
        of_families = (family.needs for family in (self.ranking, *self.families))
        return frozenset().union(*of_families, *(rule.needs for rule in self.row_rules))

    @property
    def row_type(self) -> type[RunRow]:
        """The record type with which rows are decoded."""
        return row_type(self.needs)

    def for_baseline(self) -> "Plan":
        """Return the plan for the baseline, which is not checked against rules and may lack queries."""
        return replace(self, row_rules=(), keep_ids=False, score_missing=False)

    def row_rules_of(self, query: GoldenQuery) -> tuple[RowRule, ...]:
        """Return the rules of a query that need its row."""
        return tuple(rule for rules in self.row_rules for rule in rules.of(query, self.settings))

    def violations(self, query: GoldenQuery, row: RunRow) -> Iterator[Violation]:
        """Yield the violations in a row, except for those of rank rules."""
        for rule in self.row_rules_of(query):
            yield from rule.violations(query, row)


def valid_values(family: Family, query: GoldenQuery, row: RunRow) -> Values | str:
    """Return the values of one row, or a message if a value is missing or out of range."""
    values = family.values(query, row)
    if isinstance(values, Missing):
        return values.why
    for metric, value in zip(family.metrics, values, strict=False):
        if not metric.scale.low <= value <= metric.scale.high:  # the comparison is false for NaN
            return f"{metric.key} is {value}, outside of its scale from {metric.scale.low:g} to {metric.scale.high:g}"
    return values


def worst_values(metrics: Iterable[Metric]) -> Values:
    """Return the values of a query without any result."""
    return tuple([metric.worst for metric in metrics])
