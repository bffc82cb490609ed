"""Resolves golden queries and configuration into a contract: metrics, rules and gates."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.contract.config import Config, enforced
from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.golden_file import Golden
from ragcontract.core import bounds
from ragcontract.core.gate import Gate
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings
from ragcontract.core.rule import RankRule, RowRule, Rule, RuleSettings
from ragcontract.evaluation.plan import Plan
from ragcontract.files.problems import Collector, Problems
from ragcontract.metrics.ranking import Ranking
from ragcontract.registry import Registry

NO_BASELINE = "there is no baseline; make one with `rag-contract baseline`, or leave the limit out"


class Contract(Struct, frozen=True, kw_only=True):
    """Everything that a run is judged by. ``rules`` are the enforced rule classes.

    ``problems`` are problems of the files. ``limit_problems`` are limits that cannot be judged for any run; the ids of
    their gates are in ``impossible``.
    """

    golden: Golden
    config_file: ConfigFile
    ranking: Ranking
    families: tuple[Family, ...]
    rules: tuple[type[Rule], ...]
    gates: tuple[Gate, ...]
    settings: RuleSettings
    problems: Problems = Problems()
    limit_problems: Problems = Problems()
    impossible: frozenset[str] = frozenset()
    judged: bool = True

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
        return [metric for family in (self.ranking, *self.families) for metric in family.metrics]

    def plan(self, *, repeats: bool = False, keep_ids: bool = False) -> Plan:
        """Return the plan for scoring the rows of a run."""
        return Plan(
            golden=self.queries,
            ranking=self.ranking,
            families=self.families,
            row_rules=tuple(rule for rule in self.rules if issubclass(rule, RowRule)),
            rank_rules=tuple(rule for rule in self.rules if issubclass(rule, RankRule)),
            settings=self.settings,
            repeats=repeats,
            keep_ids=keep_ids,
        )

    def rank_rules(self, query: GoldenQuery) -> Iterator[RankRule]:
        """Yield the rank rules of a query."""
        for rule in self.rules:
            if issubclass(rule, RankRule):
                yield from rule.of(query, self.settings)

    def without_limits(self, *, rules: bool = False) -> "Contract":
        """Return the contract without gates and rules, under which every run passes.

        With ``rules``, they stay, to say which queries are broken.
        """
        return replace(self, rules=self.rules if rules else (), gates=(), limit_problems=Problems(), judged=False)


def resolve(golden: Golden, config_file: ConfigFile, registry: Registry, *, has_baseline: bool) -> Contract:
    """Combine golden set and configuration; what makes the contract unusable is in its problems."""
    config = config_file.config
    steep = list(_too_steep(golden.queries.values(), config))
    settings = MetricSettings(
        cutoffs=config_file.cutoffs,
        rank_by=config.rank_by,
        gain="linear" if steep else config.gain,  # so that the remaining problems can be found
    )
    families = [family for provider in registry.metrics for family in provider(settings)]
    ranking = next(family for family in families if isinstance(family, Ranking))
    gates = config_file.gates
    problems, limit_problems = Collector(), Collector()
    problems.include(config_file.problems)
    problems.include(golden.problems)
    known = {metric.key for family in families for metric in family.metrics} | {
        key.quantity.key for key in registry.quantities
    }
    # With invalid golden rows, which may have any tag, the tags are not known.
    tags = None if golden.problems else {tag for query in golden.queries.values() for tag in query.tags}
    impossible = set()
    for gate in gates:
        for why in _impossible(gate, known, tags, config_file.cutoffs, has_baseline=has_baseline):
            impossible.add(gate.id)
            limit_problems.problem(gate.location, f"{gate.id} cannot be judged: {why}")
    for query in steep:
        limit = f"has a grade over {bounds.EXPONENT}, too much for `gain: exponential`"
        problems.problem(f"{query.location}: relevance", limit)
    rules = tuple(rule for rule in registry.rules if enforced(config, rule))
    return Contract(
        golden=golden,
        config_file=config_file,
        ranking=ranking,
        families=tuple(family for family in families if family is not ranking),
        rules=rules,
        gates=gates,
        settings=RuleSettings(k=ranking.k, forbidden_within=config.per_query.forbidden_within),
        problems=problems.found(),
        limit_problems=limit_problems.found(),
        impossible=frozenset(impossible),
    )


def _impossible(
    gate: Gate, known: set[str], tags: set[str] | None, cutoffs: Sequence[int], *, has_baseline: bool
) -> Iterator[str]:
    """Yield the reasons why no run can be compared with a limit; ``tags`` are those of the golden queries, if known."""
    if gate.quantity.key not in known:
        yield f"k is {', '.join(map(str, sorted(cutoffs)))}"
    if gate.tag is not None and tags is not None and gate.tag not in tags:
        yield f"no golden query has the tag {gate.tag!r}"
    if gate.compares and not has_baseline:
        yield NO_BASELINE


def _too_steep(queries: Iterable[GoldenQuery], config: Config) -> Iterator[GoldenQuery]:
    """Yield the queries with a grade so large that exponential gain would overflow."""
    if config.gain == "exponential":
        for query in queries:
            if max((query.relevance or {}).values(), default=0) > bounds.EXPONENT:
                yield query
