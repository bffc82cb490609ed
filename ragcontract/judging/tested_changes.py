"""The tests of changes of metrics: those with a limit together, all others for the report."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import FailMode, Gate
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.statistics.max_t import adjust
from ragcontract.statistics.sign_flips import SignFlips
from ragcontract.statistics.significance import ChangeTest, Noise, assess, noise

Limited = tuple[str, str | None]  # the key of a metric, and the tag of the queries; None for all


class ChangeTests(Struct, frozen=True, kw_only=True):
    """The results of all limits on a change of a metric; limits on the same metric and queries have one.

    ``mode`` and ``alpha`` are those of ``fail_on``. ``sets`` is the number of sets of queries that are limited: all
    queries, and those with each tag.
    """

    results: Mapping[Limited, ChangeTest] = {}
    mode: FailMode
    alpha: float
    sets: int = 1

    def of(self, gate: Gate) -> ChangeTest | None:
        """Return the result of a limit; None if it is not on the change of a metric."""
        return self.results.get((gate.quantity.key, gate.tag)) if is_tested(gate) else None


def is_tested(gate: Gate) -> bool:
    """Return whether a limit is on the change of a metric."""
    return gate.compares and gate.quantity.read is None and not gate.quantity.of_rules


def change_tests(contract: Contract, aggregates: Aggregates) -> ChangeTests:
    """Test all limits on changes of metrics together."""
    fail_on = contract.config.fail_on
    wanted: dict[str | None, list[str]] = {}
    for gate in contract.gates:
        if is_tested(gate):
            wanted.setdefault(gate.tag, []).append(gate.quantity.key)
    changes = {
        (key, tag): change for tag, keys in wanted.items() for key, change in aggregates.changes(tag, keys).items()
    }
    results = assess(list(changes.values()), fail_on.alpha)
    return ChangeTests(
        results=dict(zip(changes, results, strict=True)),
        mode=fail_on.mode,
        alpha=fail_on.alpha,
        sets=max(1, len(wanted)),
    )


def noise_of_metrics(aggregates: Aggregates, tests: ChangeTests) -> dict[str, Noise]:
    """Return the noise of each metric that changed; one without a limit on its change is tested alone."""
    keys = [metric.key for family in aggregates.families for metric in family.metrics]
    changes = {key: change for key, change in aggregates.changes(None, keys).items() if change.changed}
    others = [key for key in changes if (key, None) not in tests.results]
    results = assess([changes[key] for key in others], tests.alpha, together=False)
    alone = dict(zip(others, results, strict=True))
    found = {key: noise(change, alone.get(key) or tests.results[key, None]) for key, change in changes.items()}
    return {key: one for key, one in found.items() if one}


def p_values_of_tags(aggregates: Aggregates, tests: ChangeTests, keys: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the p-values of changes for the worse, by tag and metric.

    They are adjusted over all tags: among many, some get worse by chance alone. One with a limit has that limit's.
    """
    by_tag = {tag: aggregates.changes(tag, keys) for tag in aggregates.tags}
    found: dict[str, dict[str, float]] = {tag: {} for tag in by_tag}
    for key in keys:
        changes = {tag: of[key] for tag, of in by_tag.items() if key in of and of[key].changed}
        flips = {tag: SignFlips.of(change) for tag, change in changes.items()}
        adjusted = adjust(list(flips.values()), tests.alpha).tests
        for (tag, one), result in zip(flips.items(), adjusted, strict=True):
            limited = tests.results.get((key, tag))
            if one.statistic > 0:
                found[tag][key] = result.p_value if limited is None or limited.p_value is None else limited.p_value
    return found
