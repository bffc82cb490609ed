"""Gates: the observed value of each limit, whether it is beyond the limit, and the tests of changes.

All changes of metrics that have a limit are tested together, so that p-values are adjusted for their number. The
changes of other metrics are tested alone, only for the report.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import Contract, lacking_field
from ragcontract.contract.warnings import TooFew, too_few_queries
from ragcontract.core import bounds
from ragcontract.core.gate import FALLING, OF_LEVEL, FailMode, Gate
from ragcontract.core.metric import Metric
from ragcontract.core.numbers import SAME
from ragcontract.core.run import Confusion
from ragcontract.core.safe_text import shorten, visible
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import (
    KIND_IN_JSON,
    Certainty,
    GateReport,
    GateStatus,
    LevelRuns,
    found_and_allowed,
)
from ragcontract.decision.policy import Outcomes, outcomes_of
from ragcontract.evaluation.aggregates import Aggregates
from ragcontract.evaluation.stored import references_of
from ragcontract.runs.baseline_file import StoredHead
from ragcontract.statistics.max_t import adjust
from ragcontract.statistics.quantities import summed
from ragcontract.statistics.sign_flips import SignFlips
from ragcontract.statistics.significance import ChangeTest, Noise, assess, noise, queries_needed

if TYPE_CHECKING:
    from ragcontract.evaluation.past import PastSeries

NO_HISTORY = "no history is named; name it with --history (in the action, with the input history)"
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


def noise_of_metrics(aggregates: Aggregates, tests: ChangeTests, *, only_limited: bool = False) -> dict[str, Noise]:
    """Return the noise of each metric that changed. A metric without a limit on its change is tested alone.

    With ``only_limited``, only metrics with a limit on their change have it.
    """
    keys = [metric.key for family in aggregates.families for metric in family.metrics]
    if only_limited:
        keys = [key for key in keys if (key, None) in tests.results]
    changes = {key: change for key, change in aggregates.changes(None, keys).items() if change.changed}
    others = [key for key in changes if (key, None) not in tests.results]
    results = assess([changes[key] for key in others], tests.alpha, together=False)
    alone = dict(zip(others, results, strict=True))
    noises = {key: noise(change, alone.get(key) or tests.results[key, None]) for key, change in changes.items()}
    return {key: noise_of_metric for key, noise_of_metric in noises.items() if noise_of_metric}


def p_values_of_tags(
    aggregates: Aggregates, tests: ChangeTests, keys: Sequence[str], *, only_limited: bool = False
) -> dict[str, dict[str, float]]:
    """Return the p-values of changes for the worse, by tag and metric.

    They are adjusted over all tags, because among many tags some get worse by chance alone. Where a limit was tested,
    its p-value is returned. With ``only_limited``, only changes with a limit have one.
    """
    wanted = {tag: [key for key in keys if not only_limited or (key, tag) in tests.results] for tag in aggregates.tags}
    by_tag = {tag: aggregates.changes(tag, of_tag) for tag, of_tag in wanted.items() if of_tag}
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
        mode=UNSET if tests.mode == "strict" else tests.mode,
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
        if report.needs
        and report.certainty == "undecided"
        and not (tests.mode == "significant" and report.status == "fail")
        and (test := tests.of(gate))
    ]
    for location, message in too_few_queries(lacking):
        yield f"{location}: {message}"


class Observed(Struct, frozen=True, kw_only=True):
    """The observed values of a gate."""

    amount: float | None = None  # what is limited; None if it cannot be computed
    now: float | None = None  # the quantity of the run
    before: float | None = None  # the quantity of the baseline
    why: str = ""  # why there is no amount
    level: LevelRuns | None = None  # of a limit on a level
    skipped: str = ""  # why the limit cannot be applied yet, which is no problem


def observe(gate: Gate, evaluation: Evaluation, outcomes: Outcomes | None = None) -> Observed:
    """Return the observed values of a gate in run and baseline.

    ``outcomes`` are the pass rates; without them, no rule counts as broken.
    """
    if gate.kind in OF_LEVEL:
        return _of_level(gate, evaluation.past)
    if gate.quantity.of_rules:
        return _of_rules(gate, outcomes or outcomes_of(evaluation.contract, {}))
    if (read := gate.quantity.read) is None:
        return _of_metric(gate, evaluation)
    if gate.compares and gate.quantity.of_labels:
        return _of_class(gate, gate.quantity.of_labels, evaluation)
    now = read(evaluation.run)
    before = read(evaluation.baseline) if evaluation.baseline else None
    if now is None:
        return Observed(why=gate.quantity.absent)
    if not gate.compares:
        return Observed(amount=now, now=now, before=before)
    return Observed(why=gate.quantity.absent_before) if before is None else _change(gate, now, before)


def _of_class(gate: Gate, read: Callable[[Confusion], float | None], evaluation: Evaluation) -> Observed:
    """Return the change of a label's measure, over the queries of which both sides know the labels."""
    run = evaluation.run.labels_of_queries
    baseline = evaluation.baseline.labels_of_queries if evaluation.baseline else {}
    shared = run.keys() & baseline.keys()
    now, before = (read(summed(side[query_id] for query_id in shared)) for side in (run, baseline))
    if now is None or before is None:
        return Observed(why=gate.quantity.absent_before)
    return _change(gate, now, before)


def _of_level(gate: Gate, past: "PastSeries | None") -> Observed:
    if past is None:
        return Observed(why=NO_HISTORY)
    if past.problem:
        return Observed(why=past.problem)
    if past.skipped:
        return Observed(amount=0.0, skipped=past.skipped)
    series = past.series[gate.quantity.key]
    runs, best, now = len(series.known), series.level, series.now
    if best is None:
        return Observed(amount=0.0, now=now, skipped=f"{series.lacking}{past.of}")
    if now is None:
        return Observed(why=f"no query with a value of {gate.quantity.label} is in this run and in all recorded runs")
    level = LevelRuns(
        runs=runs,
        first=best.first.isoformat(),
        last=best.last.isoformat(),
        queries=series.queries,
        todays=series.todays,
    )
    return replace(_change(gate, now, best.value), level=level)


def _of_rules(gate: Gate, outcomes: Outcomes) -> Observed:
    rate = outcomes.of(gate).rate
    which = f" of the tier {gate.tier!r}" if gate.tier is not None else ""
    which = which if gate.tag is None else f" with the tag {gate.tag!r}"
    return Observed(amount=rate, now=rate, why=f"no golden query{which} has rules")


def _lacking(gate: Gate, evaluation: Evaluation) -> str:
    return lacking_field(evaluation.contract, gate.quantity.key) or f"has a value of {gate.quantity.label}"


def _of_metric(gate: Gate, evaluation: Evaluation) -> Observed:
    key, tagged = gate.quantity.key, "" if gate.tag is None else f" with the tag {gate.tag!r}"
    means = evaluation.aggregates.comparison(key, gate.tag)
    if not gate.compares:
        lacking = "has relevant documents" if _ranks(gate, evaluation) else _lacking(gate, evaluation)
        why = f"no golden query{tagged} {lacking}"
        return Observed(amount=means.current, now=means.current, before=means.baseline, why=why)
    if why := _not_comparable(gate, evaluation, has_values=means.baseline is not None):
        return Observed(why=why)
    if means.current_shared is None or means.baseline is None:
        both = f"{tagged} and with relevant documents" if tagged else " with relevant documents"
        which = both if _ranks(gate, evaluation) else tagged
        return Observed(why=f"no query{which} is in both the run and the baseline")
    return _change(gate, means.current_shared, means.baseline)


def _not_comparable(gate: Gate, evaluation: Evaluation, *, has_values: bool) -> str:
    """Return why the metric of a stored baseline cannot be compared with the run's; empty if it can.

    A metric that cannot be computed from document ids is only known of a baseline that was made with it.
    """
    key, label, baseline = gate.quantity.key, gate.quantity.label, evaluation.baseline
    if baseline is None or baseline.stored is None:
        return ""
    recreate = "recreate it from its run, with `rag-contract baseline --force`"
    from_ids = any(metric.key == key for family in evaluation.contract.from_ids for metric in family.metrics)
    if not has_values and key not in baseline.stored.head.metrics and not from_ids:
        return f"the baseline has no {label}; {recreate}"
    families = [each for each in evaluation.contract.families if any(metric.key == key for metric in each.metrics)]
    if not has_values and baseline.scores and (fields := [name for each in families for name in references_of(each)]):
        return f"the baseline has no {label} of a query with the same {' and '.join(fields)} as now; {recreate}"
    if key not in baseline.stored.incomparable:
        return ""
    metric = next(metric for metric in evaluation.contract.metrics if metric.key == key)
    return f"the baseline's {label} {in_another_way(metric, baseline.stored.head)}; {recreate}"


def in_another_way(metric: Metric, stored: StoredHead) -> str:
    """Return that a stored baseline computed a metric in another way, for example with another judge."""
    ways = (stored.fingerprints.get(metric.key, ""), metric.fingerprint)
    before, now = [shorten(visible(way), bounds.NAME) if way else "the defaults" for way in ways]
    return f"was computed in another way ({before}, and now {now})"


def _ranks(gate: Gate, evaluation: Evaluation) -> bool:
    return any(metric.key == gate.quantity.key for metric in evaluation.contract.ranking.metrics)


def _change(gate: Gate, now: float, before: float) -> Observed:
    change = before - now if gate.kind in FALLING else now - before
    if not gate.relative:
        return Observed(amount=change, now=now, before=before)
    if whole := abs(before - gate.quantity.zero):
        amount = min(change / whole, sys.float_info.max)  # JSON has no infinity
        return Observed(amount=amount, now=now, before=before)
    if gate.kind in FALLING and change <= 0:  # only on a scale with negative values
        return Observed(amount=0.0, now=now, before=before)
    unit = "milliseconds" if gate.quantity.unit == "ms" else "points"
    value = "0 ms" if gate.quantity.unit == "ms" else f"{gate.quantity.zero:g}"
    label = gate.quantity.label.removesuffix(" latency")
    whose = f"the best level of {label}" if gate.kind in OF_LEVEL else f"the baseline's {label}"
    return Observed(why=f"{whose} is {value}, so a relative limit cannot be applied; give the limit in {unit}")


def is_over(gate: Gate, amount: float) -> bool:
    """Return whether an amount is beyond the limit, unrounded and with a tolerance of 1e-9. At the limit, it is not."""
    excess = gate.limit - amount if gate.kind == "minimum" else amount - gate.limit
    return excess > SAME


def report_gate(gate: Gate, seen: Observed, tests: ChangeTests | None = None) -> GateReport:
    """Return the result of a gate; ``tests`` are those of all limits on changes of metrics."""
    amount = seen.amount or 0.0
    report = GateReport(
        id=gate.id,
        location=str(gate.location),
        tag=gate.tag,
        tier=UNSET if gate.tier is None else gate.tier,
        metric=gate.quantity.key,
        kind_in_json=KIND_IN_JSON[
            gate.quantity.unit, gate.kind, gate.relative and (gate.compares or gate.kind in OF_LEVEL)
        ],
        limit=gate.limit,
        observed=amount,
        status="fail" if is_over(gate, amount) else "pass",
        message="",
        label=gate.quantity.label,
        unit=gate.quantity.unit,
        now=seen.now,
        before=seen.before,
        level=seen.level or UNSET,
    )
    if seen.skipped:
        return replace(report, status="skipped", skipped=seen.skipped, message=f"{gate.quantity.label}: {seen.skipped}")
    if tests:
        report = with_test(gate, report, tests)
    mode = tests.mode if tests else "strict"
    return replace(report, message=", ".join(found_and_allowed(gate, report, mode)))
