"""The policy: the status of each violation and gate after waivers, tiers, severities and known violations.

Rules are excused before gates are decided, because a limit on a pass rate, which is the weighted share of the queries
whose rules hold, counts only violations that count.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import Waiver
from ragcontract.contract.resolve import Contract
from ragcontract.contract.scope import skipped_tiers
from ragcontract.core.config_sections import Task
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id, first_names
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import count
from ragcontract.core.rule import Violation, ViolationStatus
from ragcontract.decision.evaluated import Evaluation, Violations
from ragcontract.decision.gate_report import NOT_HELD, GateReport
from ragcontract.files.problems import Collector, Problems
from ragcontract.rules.ranks import MustInclude

T = TypeVar("T")
QueryStatus = Literal["pass", "fail", "warn", "counted", "skipped", "waived", "known"]
WORST_FIRST: tuple[ViolationStatus, ...] = ("fail", "counted", "warn", "skipped", "known", "waived")
FAILING: frozenset[ViolationStatus] = frozenset({"fail", "counted"})  # for the pass rate, the query fails
EXCUSED: frozenset[ViolationStatus] = frozenset({"skipped", "known", "waived"})
# The reasons for a status.
KNOWN = "already broken in the baseline"
ONLY_WARNS = "only warns"  # the rule, whatever the severity of the query
ADVISORY = "advisory, because the judge is not calibrated"
UNCOVERED = "no limit on the pass rate covers the query"  # so it fails the check although only the pass rate decides
Target: TypeAlias = tuple[Literal["gate", "query", "tag"], str, str | None]  # the last is the rule, None for any
NAMED_BY = {"gate": "gate has the id", "query": "golden query has the id", "tag": "golden query has the tag"}
# The reasons why limits on what a judge said do not count, by the id of the limit.
Distrusted: TypeAlias = Mapping[str, tuple[str, ...]]


def judged_limits(contract: Contract) -> dict[Gate, Task]:
    """Return the limits on judged metrics, with their tasks."""
    tasks = {metric.key: metric.task for metric in contract.metrics if metric.task}
    return {gate: task for gate in contract.gates if (task := tasks.get(gate.quantity.key))}


def distrusted_limits(evaluation: Evaluation, now: datetime) -> Distrusted:
    """Return why limits on what a judge said do not count: its calibration is missing, too old, or not good enough.

    A limit on a change depends on the judge of the baseline, which may be stored, as well as on that of the run.
    """
    contract, judge, baseline = evaluation.contract, evaluation.judge, evaluation.baseline
    if judge is None:
        return {}
    from ragcontract.judgments.calibration import why_not

    distrusted = {}
    for gate, task in judged_limits(contract).items():
        sides = (evaluation.run, baseline) if gate.compares else (evaluation.run,)
        judges = set[str]().union(*(side.judged.fingerprints(task) for side in sides if side and side.judged))
        if gate.compares and judge.replay and baseline and baseline.stored:
            # The metric's fingerprint names these judges, and a baseline of others is not compared.
            judges |= judge.replay.fingerprints(task, contract.queries.keys())
        if reasons := why_not(judge.calibrations, task, fingerprints=judges, now=now):
            distrusted[gate.id] = reasons
    return distrusted


def judge_problems(evaluation: Evaluation, now: datetime) -> Problems:
    """Return what is wrong with a judge that cannot be relied on, and warnings about what it cleared.

    A limit that does not count is a problem, or a warning if such limits are advisory.
    """
    contract, judge, problems = evaluation.contract, evaluation.judge, Collector()
    used, before = evaluation.run.judged, evaluation.baseline and evaluation.baseline.judged
    if judge is None or used is None or evaluation.run.problems or judge.problems.problems:
        return Problems()
    if used.cleared:  # a check may pass for that reason alone
        cleared = count(sum(used.cleared.values()), "violation")
        problems.warning(f"the judge cleared {cleared} of {_queries(used.cleared)}")
    if before and before.unknown and contract.only_new:
        what = f"the baseline has flagged texts without a verdict in {_queries(before.unknown)}"
        problems.warning(f"{what}: they count as new; judge that run, too, into another file, and name both")
    distrusted = distrusted_limits(evaluation, now)
    for gate in contract.gates:
        why = f"the judge is not calibrated: {'; '.join(distrusted.get(gate.id, ()))}"
        if gate.id in distrusted and contract.config.judge.uncalibrated == "advisory":
            problems.warning(f"{gate.location}: {gate.id} is shown without effect: {why}")
        elif gate.id in distrusted:
            advisory = "judge.uncalibrated: advisory shows it without effect"
            problems.problem(gate.location, f"{gate.id} cannot be judged: {why}; {advisory}")
    return problems.collected()


def _queries(ids: Collection[str]) -> str:
    return f"{count(len(ids), 'golden query')}: {first_names(list(ids))}"


def status_of(violations: Iterable[Violation]) -> QueryStatus:
    """Return the status of a query with these violations, which is that of its worst one."""
    statuses = {violation.status for violation in violations}
    return next((status for status in WORST_FIRST if status in statuses), "pass")


def with_status(contract: Contract, violations: Violations, today: date) -> tuple[Violations, frozenset[int]]:
    """Give each violation its status and the reason for it, as of ``today`` (UTC), while no tier is skipped.

    Also return the indexes of the waivers that match any violation, whether it counts or not.
    """
    waivers = _Waivers(contract.config.waivers, today)
    # Broken rules of queries that a limit on a pass rate covers may fail only through it. Without gates, nothing else
    # would fail.
    only_rates_fail = contract.config.per_query.fail_on == "pass_rate" and contract.with_gates
    is_covered = _covered_by_rates(contract) if only_rates_fail else None

    def marked(query: GoldenQuery, violation: Violation) -> Violation:
        if reason := waivers.reason(_targets(query, violation.rule)):
            return replace(violation, status="waived", why=reason)
        if violation.in_baseline and violation.rule in contract.only_new:
            return replace(violation, status="known", why=KNOWN)
        if query.severity == "warn":
            return replace(violation, status="warn", why="severity warn")
        if violation.warns:
            return replace(violation, status="warn", why=ONLY_WARNS)
        if is_covered is None:
            return violation
        if is_covered(query):
            return replace(violation, status="counted", why="counts in the pass rate")
        return replace(violation, why=UNCOVERED)

    decided = {
        query_id: tuple([marked(contract.queries[query_id], violation) for violation in broken])
        for query_id, broken in violations.items()
    }
    return decided, waivers.used()


def skipped_by(contract: Contract, gates: Iterable[GateReport]) -> Mapping[str, str]:
    """Return the skipped tiers, each with the reason. A waived minimum skips no tier."""
    missed = [gate.tier for gate in gates if gate.tier and gate.status == "fail"]
    skipped = skipped_tiers(contract.config.tiers, missed) if missed else {}
    return {tier: f"tier {cause!r} missed its minimum" for tier, cause in skipped.items()}


def skip_rules(contract: Contract, violations: Violations, skipped: Mapping[str, str]) -> Violations:
    """Mark the violations of queries of skipped tiers, unless something else excuses them."""
    marked = dict(violations)
    for query_id, broken in violations.items():
        if why := skipped.get(tier_of(contract.queries[query_id]) or ""):
            marked[query_id] = tuple(
                [each if each.status in EXCUSED else replace(each, status="skipped", why=why) for each in broken]
            )
    return marked


def excuse_gates(
    contract: Contract,
    gates: Iterable[GateReport],
    today: date,
    *,
    distrusted: Distrusted,
    skipped: Mapping[str, str],
) -> tuple[tuple[GateReport, ...], frozenset[int]]:
    """Mark the gates of ``skipped`` tiers, those without effect, and the broken ones that are waived today (UTC).

    Also return the indexes of the waivers that match a gate. A gate that is over its limit without proof matches as
    well, because the next run may prove it. It keeps its status.
    """
    waivers = _Waivers(contract.config.waivers, today)
    advisory = distrusted if contract.config.judge.uncalibrated == "advisory" else {}
    marked = []
    for gate in gates:
        why = waivers.reason([("gate", gate.id, None)]) if gate.status in NOT_HELD else None
        if skip := skipped.get(gate.tier or "") or (ADVISORY if gate.id in advisory else ""):
            marked.append(replace(gate, status="skipped", skipped=skip))
        else:
            marked.append(replace(gate, status="waived", waived=why) if why and gate.status == "fail" else gate)
    return tuple(marked), waivers.used()


def waiver_warnings(contract: Contract, used: Container[int], today: date) -> Iterator[str]:
    """Yield a warning for every waiver that has expired, matches nothing broken, or names what does not exist."""
    if not contract.config.waivers:
        return
    queries = contract.queries
    known: dict[str, Collection[str]] = {
        "gate": dict.fromkeys(gate.id for gate in contract.gates),
        "query": queries,
        "tag": dict.fromkeys(tag for query in queries.values() for tag in query.tags),
    }
    near = {what: NearNames(names) for what, names in known.items()}
    for number, waiver in enumerate(contract.config.waivers):
        location, (what, name, _) = contract.config_file.locations.of("waivers", number), _target(waiver)
        if number not in used and contract.scope is not None:
            continue  # the scope may leave out what it waives
        if number not in used and name not in known[what]:
            advice = near[what].advice(name, "delete the waiver")
            yield f"{location}: no {NAMED_BY[what]} {name!r}; {advice}"
        elif number not in used:
            yield f"{location}: waives nothing that is broken ({_described(waiver)}); delete it"
        elif today > date.fromisoformat(waiver.expires):
            of_whom = f"{_described(waiver)}, {waiver.owner}"
            yield f"{location}: expired on {waiver.expires}, so it no longer counts ({of_whom})"


class _Waivers:
    """Waivers by their target, so that finding those of a broken rule needs no search through all of them."""

    def __init__(self, waivers: Sequence[Waiver], today: date) -> None:
        self._waivers = waivers
        self._numbers: dict[Target, list[int]] = {}
        self._current: dict[Target, int] = {}  # the first waiver of each target that has not expired
        self._matched: set[Target] = set()
        for number, waiver in enumerate(waivers):
            target = _target(waiver)
            self._numbers.setdefault(target, []).append(number)
            if today <= date.fromisoformat(waiver.expires):
                self._current.setdefault(target, number)

    def reason(self, targets: Iterable[Target]) -> str | None:
        """Return the reason of the first waiver of these targets that has not expired; None if there is none."""
        matching = [target for target in targets if target in self._numbers]
        self._matched.update(matching)
        current = [self._current[target] for target in matching if target in self._current]
        if not current:
            return None
        waiver = self._waivers[min(current)]
        return f"until {waiver.expires}, {waiver.owner}: {waiver.reason}"

    def used(self) -> frozenset[int]:
        """Return the indexes of the waivers whose reason was asked for, expired or not."""
        return frozenset(number for target in self._matched for number in self._numbers[target])


def _target(waiver: Waiver) -> Target:
    if waiver.gate is not None:
        return "gate", waiver.gate, None
    if waiver.query is not None:
        return "query", as_id(waiver.query), waiver.rule
    return "tag", waiver.tag or "", waiver.rule


def _targets(query: GoldenQuery, broken: str) -> Iterator[Target]:
    """Yield what a waiver may name to waive a broken rule of a query."""
    for rule in (None, *(MustInclude.names if broken in MustInclude.names else (broken,))):  # one rule, either way
        yield "query", query.id, rule
        for tag in query.tags:
            yield "tag", tag, rule


def _described(waiver: Waiver) -> str:
    what, name, rule = _target(waiver)
    if what == "gate":
        return name
    return f"{rule} of {what} {name!r}" if rule else f"{what} {name!r}"


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
    counted, left_out = dict[str | None, PassRate](), dict[str | None, PassRate]()
    tiers: dict[str, PassRate] = {}
    for query in contract.queries.values():
        if not contract.has_rules(query):
            continue
        passed = not any(violation.status in FAILING for violation in violations.get(query.id, ()))
        tier = tier_of(query)
        rates = counted if tier is None or tier not in skipped else left_out
        for group in (None, *(tag for tag in query.tags if tag in tags)):
            _count(rates, group, query.weight, passed=passed)
        if tier is not None:
            _count(tiers, tier, query.weight, passed=passed)
    overall, *of_tags = (counted.get(group) or left_out.get(group) or PassRate() for group in (None, *sorted(tags)))
    return Outcomes(overall=overall, tags=dict(zip(sorted(tags), of_tags, strict=True)), tiers=tiers)


def _count(rates: dict[T, PassRate], group: T, weight: float, *, passed: bool) -> None:
    """Count a query in the rate of a group."""
    before = rates.get(group) or PassRate()
    rates[group] = PassRate(
        queries=before.queries + 1,
        passed=before.passed + passed,
        weight=before.weight + weight,
        passed_weight=before.passed_weight + weight * passed,
    )


def _covered_by_rates(contract: Contract) -> Callable[[GoldenQuery], bool]:
    """Return a function that says whether any limit on a pass rate counts a query."""
    limits = [gate for gate in contract.gates if gate.quantity.of_rules]
    every = any(gate.tag is None and gate.tier is None for gate in limits)
    tags = frozenset(gate.tag for gate in limits if gate.tag is not None)
    tiers = frozenset(gate.tier for gate in limits if gate.tier is not None)
    return lambda query: every or tier_of(query) in tiers or not tags.isdisjoint(query.tags)


def tier_of(query: GoldenQuery) -> str | None:
    """Return the tier of a query, if it has one."""
    return query.answer.tier if query.answer else None
