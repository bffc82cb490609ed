"""Resolves golden queries and configuration into a contract with its metrics, rules and gates."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ragcontract.contract.config import Config, Locations, enforced, only_new
from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.golden_file import Golden, refuse_unlabelled
from ragcontract.contract.scope import (
    Scope,
    gates_within,
    ghost_tags,
    ghost_tags_of_scores,
    golden_within,
    like_tags,
    scope_of,
    unexpected_labels,
    unknown_tags,
    unknown_tiers,
)
from ragcontract.core import bounds
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.lines import Line
from ragcontract.core.metric import Demanding, Family, Gain, Metric, MetricSettings, SwitchedOn
from ragcontract.core.numbers import as_written
from ragcontract.core.phrase import Location, Place, dotted
from ragcontract.core.rule import Plugin, RowRule, Rule, RuleSettings, names_of, row_rules_of
from ragcontract.files.problems import Collector, Problems
from ragcontract.metrics.judged import JudgedShares
from ragcontract.metrics.overlap import Overlap
from ragcontract.metrics.ranking import Families, Ranking
from ragcontract.registry import Registry

TOO_STEEP = f"has a grade over {bounds.EXPONENT}, too much for `gain: exponential`"
DIAGNOSTICS = (JudgedShares, Overlap)  # families that are not computed from single rows alone
NAMED: Line[Any] = Line(home="ragcontract.contract.named_metrics")  # for rules that name metrics
NO_BASELINE = "there is no baseline; make one with `rag-contract baseline`, or leave the limit out"


class Contract(Families, frozen=True, kw_only=True):
    """Everything that a run must keep to."""

    golden: Golden  # only the queries in scope
    config_file: ConfigFile
    rules: tuple[type[Rule], ...]  # the classes that are enforced
    only_new: frozenset[str] = frozenset()  # names of rules whose violations count only if the baseline has none
    gates: tuple[Gate, ...]  # only those in scope
    settings: RuleSettings
    problems: Problems = Problems()  # of the files
    limit_problems: Problems = Problems()  # limits that cannot be evaluated for any run
    impossible: frozenset[str] = frozenset()  # the ids of their gates
    scope: Scope | None = None
    with_gates: bool = True  # whether gates are evaluated at all

    @property
    def config(self) -> Config:
        """The configuration; its limits are in ``gates``."""
        return self.config_file.config

    @property
    def queries(self) -> dict[str, GoldenQuery]:
        """The golden queries by id."""
        return self.golden.queries

    @property
    def k(self) -> int:
        """The largest cut-off, which applies to rules and to limits without a cut-off."""
        return self.settings.k

    @property
    def metrics(self) -> list[Metric]:
        """All metrics, family by family."""
        return [metric for family in self.every_family for metric in family.metrics]

    @property
    def needs_judgments(self) -> bool:
        """Whether anything needs what a judge said: a metric, a limit, or the second pass."""
        return self.config.judge.second_pass or any(metric.task for metric in self.metrics)

    def has_rules(self, query: GoldenQuery) -> bool:
        """Return whether any rule that is enforced applies to a query, or to a turn of it."""
        ranked = (rule for rule in self.rules if not issubclass(rule, RowRule))
        return bool(row_rules_of(query, self.rules)) or any(list(rule.of(query, self.settings)) for rule in ranked)

    def without_diagnostics(self) -> "Contract":
        """Return the contract without the metrics that describe labels and changes."""
        return replace(self, diagnostics=())

    @property
    def from_ids(self) -> list[Family]:
        """The families that are computed from document ids alone."""
        return [family for family in self.every_family if family.from_ids]

    @property
    def metrics_at_largest_k(self) -> list[Metric]:
        """The metrics at the largest cut-off, and those without one."""
        return [metric for metric in self.metrics if metric.k in {None, self.k}]

    def with_plugins(self, plugins: Mapping[str, Plugin]) -> "Contract":
        """Return the contract with objects for the rule ``custom``, by the names of their classes."""
        return replace(self, settings=replace(self.settings, plugins=plugins)) if plugins else self

    def without_gates(self) -> "Contract":
        """Return the contract with its rules alone."""
        return replace(self, gates=(), limit_problems=Problems(), with_gates=False)

    def without_limits(self) -> "Contract":
        """Return the contract without gates and rules, under which every run passes."""
        return replace(self.without_gates(), rules=())

    def without_comparisons(self) -> "Contract":
        """Return the contract without the gates that need a baseline."""
        return replace(self, gates=tuple(gate for gate in self.gates if not gate.needs_baseline))

    def without_judged_metrics(self) -> "Contract":
        """Return the contract without the metrics of a judge, and without the limits on them."""
        judged = {metric.key for metric in self.metrics if metric.task}
        families = tuple(
            family for family in self.families if judged.isdisjoint(metric.key for metric in family.metrics)
        )
        return replace(
            self, families=families, gates=tuple(gate for gate in self.gates if gate.quantity.key not in judged)
        )


def resolve(
    golden: Golden, config_file: ConfigFile, registry: Registry, *, has_baseline: bool, tags: Sequence[str] = ()
) -> Contract:
    """Combine golden set and configuration, within the ``tags`` if any; raises InputError while nothing is labelled."""
    config = config_file.config
    scope = scope_of(golden, config_file.gates, tags)
    all_golden, golden = golden, golden_within(golden, scope)
    refuse_unlabelled(all_golden, golden.queries)
    answers = config.answers
    names_metrics = answers.composite is not None or answers.must_not_leak is not None or bool(golden.rule_types)
    if names_metrics:  # in rules; a message on one may name any metric
        golden = NAMED.load().with_rules_of_config(golden, config_file)
    else:
        registry = registry.naming(config_file.names | golden.answer_fields.keys())
    steep = list(_too_steep(golden.queries.values(), config))
    ranking, diagnostics, of_rows = _families(_settings(config_file, "linear" if steep else config.gain), registry)
    gates = gates_within(config_file.gates, scope)
    by_ids = [metric for family in (ranking, *diagnostics) for metric in family.metrics]
    by_rows = {metric.key: metric for family in of_rows for metric in family.metrics}
    problems = [
        *((f"tag {tag!r}", problem) for tag, problem in unknown_tags(all_golden, scope)),
        *((query.location.at("relevance"), TOO_STEEP) for query in steep),
        *unknown_tiers(all_golden, config.tiers, config_file.locations),
        *(NAMED.load().wrong_names(golden, config_file, by_rows, by_ids) if names_metrics else ()),
    ]
    keys = {*by_rows, *(metric.key for metric in by_ids), *(limit.quantity.key for limit in registry.quantities)}
    why_not = _why_not(config_file, gates, all_golden, keys, has_baseline=has_baseline)
    rules = tuple(rule for rule in _rules(golden, registry) if enforced(config, rule))
    named: set[str] = NAMED.load().named_metrics(golden) if names_metrics else set()
    computed = list(_in_use(of_rows, golden, named | _named_in(config_file)))
    return Contract(
        golden=golden,
        config_file=config_file,
        ranking=ranking,
        families=tuple(computed),
        diagnostics=tuple(family for family in diagnostics if has_baseline or family.switch is SwitchedOn.ALWAYS),
        rules=rules,
        only_new=frozenset(name for rule in rules if only_new(config, rule) for name in names_of(rule)),
        gates=gates,
        settings=_rule_settings(config, ranking.k, {key: by_rows[key] for key in sorted(named & by_rows.keys())}),
        problems=config_file.problems
        + golden.problems
        + _problems(problems)
        + complaints(computed, golden, config_file.locations)
        + _wrong_tags(all_golden, config_file, tags)
        + Problems(warnings=tuple(_likely_slips(config_file))),
        limit_problems=_limit_problems(why_not) + _nothing_decides(config_file, gates),
        impossible=frozenset(gate.id for gate, reasons in why_not.items() if reasons),
        scope=scope,
    )


def _rules(golden: Golden, registry: Registry) -> Iterator[type[Rule]]:
    """Yield the classes of the rules of every contract, and of those that golden rows have."""
    names = {name for rule in golden.rule_types for name in names_of(rule)}
    yield from (line.load() for line in registry.rules if line.is_named(names))


def _families(settings: MetricSettings, registry: Registry) -> tuple[Ranking, list[Family], list[Family]]:
    families = [family for provider in registry.providers for family in provider(settings)]
    ranking = next(family for family in families if isinstance(family, Ranking))
    diagnostics: list[Family] = [family for family in families if isinstance(family, DIAGNOSTICS)]
    return ranking, diagnostics, [family for family in families if family is not ranking and family not in diagnostics]


def _settings(config_file: ConfigFile, gain: Gain) -> MetricSettings:
    config = config_file.config
    return MetricSettings(
        cutoffs=config_file.cutoffs,
        rank_by=config.rank_by,
        gain=gain,
        unjudged=config.unjudged,
        declared=config_file.declared,
        answers=config.answers,
    )


def _named_in(config_file: ConfigFile) -> set[str]:
    limited = (gate.quantity.key for gate in config_file.gates)
    return {*config_file.declared, *config_file.config.judge.metrics, *limited}


def _in_use(families: Iterable[Family], golden: Golden, named: Container[str]) -> Iterator[Family]:
    """Yield the families that a golden row asks for, or of which the configuration or a rule names a metric."""
    for family in families:
        is_on = family.switch is SwitchedOn.ALWAYS or family.switch in golden.answer_fields
        if is_on or any(metric.key in named for metric in family.metrics):
            yield family


def _rule_settings(config: Config, k: int, metrics: Mapping[str, Metric]) -> RuleSettings:
    return RuleSettings(
        k=k,
        includes_any=config.per_query.includes_any,
        forbidden_within=config.per_query.forbidden_within,
        different_documents=frozenset(map(as_id, config.per_query.different_documents)),
        answers=config.answers,
        metrics=metrics,
    )


def complaints(families: Iterable[Family], golden: Golden, locations: Locations) -> Problems:
    """Return the problems and warnings of families that cannot be computed for every contract."""
    problems = Collector()
    for family in families:
        for complaint in family.complaints(golden.queries.values()) if isinstance(family, Demanding) else ():
            location = complaint.location or _of_option(complaint.option, locations)
            if complaint.warns:
                problems.warning(f"{location} {complaint.message}")
            else:
                problems.problem(location, complaint.message)
    return problems.collected()


def _of_option(option: tuple[str, ...], locations: Locations) -> Place:
    """Return the location and the name of an option; if it is not written, the location of the section around it."""
    paths = (option[:length] for length in range(len(option), 0, -1))
    where = next(filter(None, (locations.of(*path) for path in paths)), None)
    return where.at(*option) if isinstance(where, Location) else dotted(option)


def _why_not(
    config_file: ConfigFile, within: Sequence[Gate], golden: Golden, known: set[str], *, has_baseline: bool
) -> dict[Gate, list[str]]:
    """Return the reasons why gates cannot be evaluated for any run.

    ``within`` are the gates in scope; ``golden`` has the queries outside of it, too. ``known`` are all quantities.
    """
    ghosts = ghost_tags(golden, config_file.gates)
    cutoffs = config_file.cutoffs
    reasons = {gate: list(_impossible(gate, known, ghosts, cutoffs, has_baseline=has_baseline)) for gate in within}
    for gate, why in unexpected_labels(golden, within):
        reasons[gate].append(why)
    # No query has such a tag, so no check evaluates its limits. A check of other tags refuses them, too.
    others = [gate for gate in config_file.gates if gate not in reasons and gate.tag in ghosts]
    return reasons | {gate: [ghosts[gate.tag]] for gate in others}


def _nothing_decides(config_file: ConfigFile, gates: Iterable[Gate]) -> Problems:
    """Return a problem if only pass rates may fail the check and no limit on one is evaluated."""
    if config_file.config.per_query.fail_on != "pass_rate" or any(gate.quantity.of_rules for gate in gates):
        return Problems()
    message = "per_query.fail_on: pass_rate needs a limit on it that is checked; set minimums.pass_rate, or tiers"
    return _problems([(config_file.locations.of("per_query", "fail_on"), message)])


WIDE = 10  # from this highest value on, numbers below 1 on a scale from 0 may be fractions of it


def _likely_slips(config_file: ConfigFile) -> Iterator[str]:
    """Yield warnings about settings that change nothing, and about limits that may be in another unit."""
    if config_file.problems.problems:  # its limits are not known
        return
    for key in ("mode", "alpha"):
        if (where := config_file.locations.of("fail_on", key)) and not any(gate.compares for gate in config_file.gates):
            why = "because no limit on a drop or a rise is set"
            yield f"{where}: fail_on.{key} has no effect, {why}; set one, or remove fail_on.{key}"
    for gate in config_file.gates:
        low, high = getattr(config_file.declared.get(gate.quantity.key), "scale", (0, 1))
        if gate.kind == "minimum" and low == 0 and high >= WIDE and 0 < gate.limit < 1:
            limit, fraction = as_written(gate.limit), f"{gate.limit * high:g}"
            why = f"is {limit} on a scale from 0 to {high:g}; if it is a fraction of the scale, write {fraction}"
            yield f"{gate.location}: {gate.id} {why}"


def _impossible(
    gate: Gate,
    known: set[str],
    ghosts: Mapping[str | None, str],
    cutoffs: Sequence[int],
    *,
    has_baseline: bool,
) -> Iterator[str]:
    """Yield the reasons why no run can be compared with a limit; ``ghosts`` are the tags that no golden query has."""
    if gate.tier is None and gate.quantity.of_class is None and gate.quantity.key not in known:
        yield f"k is {', '.join(map(str, sorted(cutoffs)))}"
    if gate.tag in ghosts:
        yield ghosts[gate.tag]
    if gate.needs_baseline and not has_baseline:
        yield NO_BASELINE


def _problems(pairs: Iterable[tuple[Place, str]]) -> Problems:
    problems = Collector()
    for location, problem in pairs:
        problems.problem(location, problem)
    return problems.collected()


def _limit_problems(why_not: Mapping[Gate, Sequence[str]]) -> Problems:
    """Return the problems of gates from the reasons why each cannot be evaluated for any run."""
    return _problems(
        (gate.location, f"{gate.id} cannot be judged: {why}") for gate, reasons in why_not.items() for why in reasons
    )


def _wrong_tags(golden: Golden, config_file: ConfigFile, tags: Sequence[str]) -> Problems:
    """Return the problems of scores with a tag that no query has, and warnings about tags that are like a named one."""
    config = config_file.config
    named = [*tags, *(gate.tag for gate in config_file.gates), *(waiver.tag for waiver in config.waivers)]
    named += [tag for entry in config_file.declared.values() for tag in getattr(entry, "tags", ())]
    if golden.problems or not any(named):
        return Problems()
    ghosts = _problems(ghost_tags_of_scores(golden, config_file.declared, config_file.locations))
    return ghosts + Problems(warnings=tuple(like_tags(golden.queries.values(), filter(None, named))))


def _too_steep(queries: Iterable[GoldenQuery], config: Config) -> Iterator[GoldenQuery]:
    """Yield the queries with a grade so large that exponential gain would overflow."""
    if config.gain == "exponential":
        for query in queries:
            if max((query.relevance or {}).values(), default=0) > bounds.EXPONENT:
                yield query


def lacking_field(contract: Contract, key: str) -> str:
    """Return the golden field without which no query has a metric, and what to do; empty if any row has it."""
    for family in contract.families:
        for metric in family.metrics:
            asks = metric.asks or family.switch
            if metric.key == key and isinstance(asks, str) and asks not in contract.golden.answer_fields:
                return f"has {asks}; {metric.supply}, or leave the limit out"
    return ""
