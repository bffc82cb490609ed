"""Pass rates: the weighted share of the queries whose rules hold, after waivers and known failures."""

from collections.abc import Container

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Violation
from ragcontract.decision.evaluated import Violations


class PassRate(Struct, frozen=True, kw_only=True):
    """How many ``queries`` have rules, and how many of them ``passed``; ``rate`` is the share of their weight.

    The rate is None if no query has rules.
    """

    queries: int = 0
    passed: int = 0
    weight: float = 0.0
    passed_weight: float = 0.0

    @property
    def rate(self) -> float | None:
        """The weight of the queries that passed, of that of all of them."""
        return self.passed_weight / self.weight if self.weight else None


class Outcomes(Struct, frozen=True, kw_only=True):
    """The pass rates of all queries, of those with each tag that has a limit, and of those of each tier."""

    overall: PassRate = PassRate()
    tags: dict[str, PassRate] = {}
    tiers: dict[str, PassRate] = {}

    def of(self, gate: Gate) -> PassRate:
        """Return the pass rate that a gate limits."""
        if gate.tier is not None:
            return self.tiers.get(gate.tier, PassRate())
        return self.overall if gate.tag is None else self.tags.get(gate.tag, PassRate())


def has_outcomes(contract: Contract) -> bool:
    """Return whether pass rates are wanted: a limit is on one, or golden rows expect something of the answer."""
    return bool(contract.golden.answer_fields) or any(gate.quantity.of_rules for gate in contract.gates)


def outcomes_of(contract: Contract, violations: Violations, skipped: Container[str] = ()) -> Outcomes:
    """Return the pass rates; queries of ``skipped`` tiers count only in the rates of these tiers.

    If no other query is left, they count all the same: a limit does not hold because nothing was judged.
    """
    tags = {gate.tag for gate in contract.gates if gate.quantity.of_rules and gate.tag is not None}
    judged, left_out, tiers = _Rates(), _Rates(), _Rates()
    for query in contract.queries.values():
        if not contract.has_rules(query):
            continue
        passed = not any(fails(query, one) for one in violations.get(query.id, ()))
        tier = tier_of(query)
        rates = judged if tier is None or tier not in skipped else left_out
        for group in (None, *(tag for tag in query.tags if tag in tags)):
            rates.add(group, query.weight, passed=passed)
        if tier is not None:
            tiers.add(tier, query.weight, passed=passed)
    overall, *of_tags = (judged.of(group) or left_out.of(group) or PassRate() for group in (None, *sorted(tags)))
    return Outcomes(
        overall=overall,
        tags=dict(zip(sorted(tags), of_tags, strict=True)),
        tiers={tier: rate for tier in tiers.groups if tier is not None and (rate := tiers.of(tier))},
    )


class RateLimits:
    """Which queries the limits on pass rates cover, so that a broken rule of them can miss one."""

    def __init__(self, contract: Contract) -> None:
        """Note the tags and the tiers that have a limit, and whether all queries have one."""
        limits = [gate for gate in contract.gates if gate.quantity.of_rules]
        self._all = any(gate.tag is None and gate.tier is None for gate in limits)
        self._tags = frozenset(gate.tag for gate in limits if gate.tag is not None)
        self._tiers = frozenset(gate.tier for gate in limits if gate.tier is not None)

    def cover(self, query: GoldenQuery) -> bool:
        """Return whether any limit on a pass rate counts the query."""
        return self._all or tier_of(query) in self._tiers or not self._tags.isdisjoint(query.tags)


def only_rates_fail(contract: Contract) -> bool:
    """Return whether broken rules of the queries that a limit on a pass rate covers fail only through that limit."""
    return contract.config.per_query.fail_on == "pass_rate" and contract.with_gates  # without gates, nothing else fails


def fails(query: GoldenQuery, violation: Violation) -> bool:
    """Return whether a violation makes its query fail, or counts in the pass rate if only that decides."""
    return violation.counts and not violation.warns and query.severity == "error"


def tier_of(query: GoldenQuery) -> str | None:
    """Return the tier of a query, if it has one."""
    return query.answer.tier if query.answer else None


class _Rates:
    """Adds up the queries of each group."""

    def __init__(self) -> None:
        self.groups: dict[str | None, tuple[int, int, float, float]] = {}

    def add(self, group: str | None, weight: float, *, passed: bool) -> None:
        queries, passing, total, of_passing = self.groups.get(group, (0, 0, 0.0, 0.0))
        self.groups[group] = (queries + 1, passing + passed, total + weight, of_passing + weight * passed)

    def of(self, group: str | None) -> PassRate | None:
        if group not in self.groups:
            return None
        queries, passed, weight, passed_weight = self.groups[group]
        return PassRate(queries=queries, passed=passed, weight=weight, passed_weight=passed_weight)
