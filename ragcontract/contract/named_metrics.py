"""Checks the metrics that rules name: a row must have them, and they need the direction that the rule expects."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ragcontract.contract.config import enforced
from ragcontract.contract.config_file import ConfigFile
from ragcontract.contract.golden_file import Golden
from ragcontract.core.config_sections import Leaks
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.nearest import NearNames
from ragcontract.core.phrase import FieldPath, Place
from ragcontract.core.rule import LEAKS, RowRule, names_of
from ragcontract.rules.scores import CompositeMinimum, ScoreRule

DECLARE = "declare it under metrics in the configuration"


def with_rules_of_config(golden: Golden, config_file: ConfigFile) -> Golden:
    """Return the golden set with ``composite`` and ``must_not_leak`` of the configuration as rules of every query."""
    return _without_leaks(_with_composite(golden, config_file), config_file)


def _without_leaks(golden: Golden, config_file: ConfigFile) -> Golden:
    leaks = config_file.config.answers.must_not_leak
    if leaks is None:
        return golden
    from ragcontract.rules.leaks import MustNotLeak
    from ragcontract.rules.turns import InTurns

    if not enforced(config_file.config, MustNotLeak):
        return golden
    kinds, allowed = (leaks.kinds, leaks.allowed) if isinstance(leaks, Leaks) else (leaks, [])
    rule = MustNotLeak(kinds=tuple(dict.fromkeys(kinds)), allowed=tuple(allowed))
    queries = {}
    for key, query in golden.queries.items():
        of_query = InTurns(rule=rule, turns=tuple(range(query.turns))) if query.turns else rule
        queries[key] = query if _has_own(query) else replace(query, rules=(*query.rules, of_query))
    return replace(golden, queries=queries, rule_types=golden.rule_types | {MustNotLeak})


def _has_own(query: GoldenQuery) -> bool:
    """Return whether a query has rules of its own about leaks, which replace that of the configuration."""
    return any(isinstance(rule, RowRule) and LEAKS in names_of(type(rule.inner)) for rule in query.rules)


def _with_composite(golden: Golden, config_file: ConfigFile) -> Golden:
    """Return the golden set with the ``composite`` of the configuration as a rule of every query."""
    composite = config_file.config.answers.composite
    if composite is None or not enforced(config_file.config, CompositeMinimum):
        return golden
    rule = CompositeMinimum(minimum=composite.minimum, metrics=tuple(composite.metrics))
    queries = {key: replace(query, rules=(*query.rules, rule)) for key, query in golden.queries.items()}
    return replace(golden, queries=queries, rule_types=golden.rule_types | {CompositeMinimum})


def named_metrics(golden: Golden) -> set[str]:
    """Return the keys of all metrics that rules of golden queries name."""
    if not any(issubclass(rule, ScoreRule) for rule in golden.rule_types):
        return set()
    return {key for query in golden.queries.values() for _, rule in _score_rules(query) for key in rule.read}


def wrong_names(
    golden: Golden, config_file: ConfigFile, metrics: Mapping[str, Metric], ranking: Iterable[Metric]
) -> Iterator[tuple[Place, str]]:
    """Yield a location and a message for each metric that a rule cannot be about.

    ``metrics`` are those that are computed for rows, by key; ``ranking`` are those on documents.
    """
    composite = config_file.config.answers.composite
    names = _Names(metrics, ranking)
    for number, key in enumerate(composite.metrics if composite else ()):
        if why := names.wrong(key):
            location = config_file.locations.of("answers", "composite", "metrics", number)
            yield location, f"answers.composite.metrics[{number}]: {why}"
    if not any(issubclass(rule, ScoreRule) for rule in golden.rule_types):
        return
    from_config = None if composite is None else (composite.minimum, tuple(composite.metrics))
    for query in golden.queries.values():
        for index, rule in _score_rules(query):
            if isinstance(rule, CompositeMinimum) and (rule.minimum, rule.metrics) == from_config:
                continue
            for path, why in names.wrong_in(rule):
                yield query.location.at("rules", index, *path), why


def _score_rules(query: GoldenQuery) -> Iterator[tuple[int, ScoreRule]]:
    """Yield the rules about scores with their numbers in the ``rules`` of the row."""
    # The entries of ``rules`` come before the other rules that may be written there.
    written = (rule for rule in query.rules if not isinstance(rule, RowRule) or rule.inner.in_rows)
    for index, rule in enumerate(written):
        if isinstance(rule, ScoreRule):
            yield index, rule


class _Names:
    """The keys that rules may name."""

    def __init__(self, metrics: Mapping[str, Metric], ranking: Iterable[Metric]) -> None:
        self._metrics, self._ranking = metrics, {metric.key for metric in ranking}
        self._near = NearNames(metrics)

    def wrong(self, key: str) -> str | None:
        if key in self._metrics:
            of_judge = f"{key} is what a judge said, which is often wrong on one query; limit its mean under minimums"
            return of_judge if self._metrics[key].task else None
        if key in self._ranking:
            return f"{key} is about documents; use must_rank_at_most, or limit its mean under minimums"
        return f"there is no metric {key!r}; {self._near.advice(key, DECLARE)}"

    def wrong_in(self, rule: ScoreRule) -> Iterator[tuple[FieldPath, str]]:
        """Yield each fault of a rule with its path in the rule."""
        for number, key in enumerate(rule.read):
            path = rule.path_of(number)
            if why := self.wrong(key):
                yield path, why if path else f"needs the metric {key}; {DECLARE}"
            else:
                yield from rule.faults_with(self._metrics[key])
