"""Tests of the changes of metrics, and what they decide about the limits on changes.

All changes that have a limit are tested together, so that p-values are adjusted for their number. The changes of other
metrics are tested alone, only for the report.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import Contract
from ragcontract.contract.warnings import TooFew, too_few_queries
from ragcontract.core.gate import FailMode, Gate
from ragcontract.core.numbers import SAME
from ragcontract.decision.gate_report import Certainty, GateReport, GateStatus
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.statistics.max_t import adjust
from ragcontract.statistics.sign_flips import SignFlips
from ragcontract.statistics.significance import ChangeTest, Noise, assess, noise, queries_needed

Limited = tuple[str, str | None]  # the key of a metric, and the tag of the queries; None for all


class ChangeTests(Struct, frozen=True, kw_only=True):
    """The tests of all limits on changes of metrics."""

    results: Mapping[Limited, ChangeTest] = {}  # limits on the same metric and the same queries share one
    mode: FailMode  # of fail_on
    alpha: float  # of fail_on
    sets: int = 1  # the number of sets of queries that have limits: all queries, and those with each tag

    def of(self, gate: Gate) -> ChangeTest | None:
        """Return the test of a limit; None if the limit is not on the change of a metric."""
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
    """Return the noise of each metric that changed. A metric without a limit on its change is tested alone."""
    keys = [metric.key for family in aggregates.families for metric in family.metrics]
    changes = {key: change for key, change in aggregates.changes(None, keys).items() if change.changed}
    others = [key for key in changes if (key, None) not in tests.results]
    results = assess([changes[key] for key in others], tests.alpha, together=False)
    alone = dict(zip(others, results, strict=True))
    noises = {key: noise(change, alone.get(key) or tests.results[key, None]) for key, change in changes.items()}
    return {key: noise_of_metric for key, noise_of_metric in noises.items() if noise_of_metric}


def p_values_of_tags(aggregates: Aggregates, tests: ChangeTests, keys: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the p-values of changes for the worse, by tag and metric.

    They are adjusted over all tags, because among many tags some get worse by chance alone. Where a limit was tested,
    its p-value is returned.
    """
    by_tag = {tag: aggregates.changes(tag, keys) for tag in aggregates.tags}
    p_values: dict[str, dict[str, float]] = {tag: {} for tag in by_tag}
    for key in keys:
        changes = {tag: of[key] for tag, of in by_tag.items() if key in of and of[key].changed}
        flips = {tag: SignFlips.of(change) for tag, change in changes.items()}
        adjusted = adjust(list(flips.values()), tests.alpha).tests
        for (tag, flip), result in zip(flips.items(), adjusted, strict=True):
            limited = tests.results.get((key, tag))
            if flip.statistic > 0:
                p_values[tag][key] = result.p_value if limited is None or limited.p_value is None else limited.p_value
    return p_values


def with_test(gate: Gate, report: GateReport, tests: ChangeTests) -> GateReport:
    """Return the result of a gate with what the test of its change decides; unchanged if the gate is not tested.

    The passed ``report`` has the status of the mode ``strict``, which fails a change over the limit. ``significant``
    fails it only if it is significant as well. ``noninferiority`` fails it unless the upper bound is within the limit
    (Schuirmann, *A Comparison of the Two One-Sided Tests Procedure and the Power Approach*, Journal of Pharmacokinetics
    and Biopharmaceutics 15 (1987)).
    """
    test = tests.of(gate)
    if test is None:
        return report
    whole = abs((report.before or 0.0) - gate.quantity.zero) if gate.relative else 1.0
    low, high = (_relative(bound, whole) for bound in test.bounds)
    certainty: Certainty = "beyond" if low - gate.limit > SAME else "undecided"
    if high - gate.limit <= SAME:
        certainty = "within"
    needs = _needs(gate.limit * whole, test, tests)
    return replace(
        report,
        status=_status(test, tests, over=report.status == "fail", certainty=certainty),
        bounds=(low, high),
        certainty=certainty,
        p_value=test.p_value,
        alpha=tests.alpha,
        needs=UNSET if needs is None else needs,
    )


def _relative(bound: float, whole: float) -> float:
    """Return a bound in points as a fraction of the ``whole``."""
    most = sys.float_info.max  # JSON has no infinity
    if not whole:
        return most if bound > 0 else 0.0
    return max(-most, min(most, bound / whole))


def _status(test: ChangeTest, tests: ChangeTests, *, over: bool, certainty: Certainty) -> GateStatus:
    if tests.mode == "noninferiority":
        return "pass" if certainty == "within" else "fail"
    if not over:
        return "pass"
    proven = test.p_value is not None and test.p_value <= tests.alpha
    if tests.mode == "strict" or proven:
        return "fail"
    return "unproven" if test.could_be else "too_few"


def _needs(limit: float, test: ChangeTest, tests: ChangeTests) -> int | None:
    """Return how many queries it takes to decide about the limit; None if there are enough, or the mode is strict."""
    if tests.mode == "strict":
        return None
    needs = queries_needed(limit, tests.mode, alpha=tests.alpha, span=test.span, tests=tests.sets)
    return needs if needs is not None and needs > test.queries else None


def too_few_warnings(gates: Sequence[Gate], reports: Sequence[GateReport], tests: ChangeTests) -> Iterator[str]:
    """Yield a warning for each limit that has too few queries to be decided; ``reports`` are those of the gates.

    Limits of one size share a warning. There is none for a limit that this run decides anyway, because the change is
    proven or certainly within the limit.
    """
    lacking = [
        TooFew(gate=gate, queries=test.queries, needs=report.needs)
        for gate, report in zip(gates, reports, strict=True)
        if report.needs and not _is_decided(report, tests) and (test := tests.of(gate))
    ]
    for location, message in too_few_queries(lacking):
        yield f"{location}: {message}"


def _is_decided(report: GateReport, tests: ChangeTests) -> bool:
    return report.certainty != "undecided" or (tests.mode == "significant" and report.status == "fail")
