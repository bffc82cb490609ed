"""Pass rates: the weighted share of the queries whose rules hold, after waivers and known failures."""

from collections.abc import Container

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.rule import Violation
from ragcontract.decision.evaluated import Violations


class PassRate(Struct, frozen=True, kw_only=True):
    """How many queries pass, and with which weight."""

    queries: int = 0  # that have rules
    passed: int = 0
    weight: float = 0.0  # of the queries that have rules
    passed_weight: float = 0.0

    @property
    def rate(self) -> float | None:
        """The share of the weight that passed; None if no query has rules."""
        return self.passed_weight / self.weight if self.weight else None


class Outcomes(Struct, frozen=True, kw_only=True):
    """The pass rates of all queries, by tag and by tier."""

    overall: PassRate = PassRate()
    tags: dict[str, PassRate] = {}  # only tags that have a limit
    tiers: dict[str, PassRate] = {}

    def of(self, gate: Gate) -> PassRate:
        """Return the pass rate that a gate limits."""
        if gate.tier is not None:
            return self.tiers.get(gate.tier, PassRate())
        return self.overall if gate.tag is None else self.tags.get(gate.tag, PassRate())


def has_outcomes(contract: Contract) -> bool:
    """Return whether pass rates are wanted: there is a limit on one, or golden rows expect something of an answer."""
    return bool(contract.golden.answer_fields) or any(gate.quantity.of_rules for gate in contract.gates)


def outcomes_of(contract: Contract, violations: Violations, skipped: Container[str] = ()) -> Outcomes:
    """Return the pass rates. Queries of ``skipped`` tiers count only in the rates of these tiers.

    If no other query is left, they count in all rates, because a limit does not hold for want of queries.
    """
    tags = {gate.tag for gate in contract.gates if gate.quantity.of_rules and gate.tag is not None}
    counted, left_out, tiers = _Rates(), _Rates(), _Rates()
    for query in contract.queries.values():
        if not contract.has_rules(query):
            continue
        passed = not any(fails(query, violation) for violation in violations.get(query.id, ()))
        tier = tier_of(query)
        rates = counted if tier is None or tier not in skipped else left_out
        for group in (None, *(tag for tag in query.tags if tag in tags)):
            rates.add(group, query.weight, passed=passed)
        if tier is not None:
            tiers.add(tier, query.weight, passed=passed)
    overall, *of_tags = (counted.of(group) or left_out.of(group) or PassRate() for group in (None, *sorted(tags)))
    return Outcomes(
        overall=overall,
        tags=dict(zip(sorted(tags), of_tags, strict=True)),
        tiers={tier: rate for tier in tiers.groups if tier is not None and (rate := tiers.of(tier))},
    )


class RateLimits:
    """The queries that limits on pass rates cover."""

    def __init__(self, contract: Contract) -> None:
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
    """Return whether a violation makes its query fail, or counts in the pass rate where only the rate decides."""
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
