"""Gates: the observed value of each limit, and whether it is beyond the limit."""

import sys
from collections.abc import Container, Iterable

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ragcontract.contract.resolve import lacking_field
from ragcontract.core import bounds
from ragcontract.core.gate import Gate
from ragcontract.core.numbers import SAME
from ragcontract.core.safe_text import shorten, visible
from ragcontract.decision.changes import ChangeTests, with_test
from ragcontract.decision.evaluated import Evaluation
from ragcontract.decision.gate_report import NAMES, GateReport, found_and_allowed
from ragcontract.decision.pass_rates import Outcomes, outcomes_of
from ragcontract.evaluation.fold import references_of


class Observed(Struct, frozen=True, kw_only=True):
    """The observed values of a gate."""

    amount: float | None = None  # what is limited; None if it cannot be computed
    now: float | None = None  # the quantity of the run
    before: float | None = None  # the quantity of the baseline
    why: str = ""  # why there is no amount


def observe(gate: Gate, evaluation: Evaluation, outcomes: Outcomes | None = None) -> Observed:
    """Return the observed values of a gate in run and baseline.

    ``outcomes`` are the pass rates; without them, no rule counts as broken.
    """
    if gate.quantity.of_rules:
        return _of_rules(gate, outcomes or outcomes_of(evaluation.contract, {}))
    return _of_quantity(gate, evaluation) if gate.quantity.read else _of_metric(gate, evaluation)


def _of_quantity(gate: Gate, evaluation: Evaluation) -> Observed:
    quantity = gate.quantity
    if quantity.read is None:
        raise TypeError(f"{quantity.key} is a metric")
    now = quantity.read(evaluation.run)
    before = quantity.read(evaluation.baseline) if evaluation.baseline else None
    if now is None:
        return Observed(why=quantity.absent)
    if not gate.compares:
        return Observed(amount=now, now=now, before=before)
    return Observed(why=quantity.absent_before) if before is None else _change(gate, now, before)


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
    if not has_values and key not in baseline.stored.metrics and not from_ids:
        return f"the baseline has no {label}; {recreate}"
    families = [one for one in evaluation.contract.families if any(metric.key == key for metric in one.metrics)]
    if not has_values and baseline.scores and (fields := [name for one in families for name in references_of(one)]):
        return f"the baseline has no {label} of a query with the same {' and '.join(fields)} as now; {recreate}"
    if key not in baseline.incomparable:
        return ""
    now = next(metric.fingerprint for metric in evaluation.contract.metrics if metric.key == key)
    before = baseline.stored.fingerprints.get(key, "")
    ways = [shorten(visible(way), bounds.NAME) if way else "the defaults" for way in (before, now)]
    return f"the baseline's {label} was computed in another way ({ways[0]}, and now {ways[1]}); {recreate}"


def _ranks(gate: Gate, evaluation: Evaluation) -> bool:
    return any(metric.key == gate.quantity.key for metric in evaluation.contract.ranking.metrics)


def _change(gate: Gate, now: float, before: float) -> Observed:
    change = before - now if gate.kind == "drop" else now - before
    if not gate.relative:
        return Observed(amount=change, now=now, before=before)
    if whole := abs(before - gate.quantity.zero):
        amount = min(change / whole, sys.float_info.max)  # JSON has no infinity
        return Observed(amount=amount, now=now, before=before)
    if gate.kind == "drop" and change <= 0:  # only on a scale with negative values
        return Observed(amount=0.0, now=now, before=before)
    unit = "milliseconds" if gate.quantity.unit == "ms" else "points"
    value = "0 ms" if gate.quantity.unit == "ms" else f"{gate.quantity.zero:g}"
    label = gate.quantity.label.removesuffix(" latency")
    return Observed(
        why=f"the baseline's {label} is {value}, so a relative limit cannot be applied; give the limit in {unit}"
    )


def is_over(gate: Gate, amount: float) -> bool:
    """Return whether an amount is beyond the limit, unrounded and with a tolerance of 1e-9. At the limit, it is not."""
    excess = gate.limit - amount if gate.kind == "minimum" else amount - gate.limit
    return excess > SAME


def report_gate(gate: Gate, seen: Observed, tests: ChangeTests | None = None) -> GateReport:
    """Return the result of a gate; ``tests`` are those of all limits on changes of metrics."""
    amount = seen.amount or 0.0
    report = GateReport(
        id=gate.id,
        location=gate.location,
        tag=gate.tag,
        tier=UNSET if gate.tier is None else gate.tier,
        metric=gate.quantity.key,
        kind=NAMES[gate.quantity.unit, gate.kind][gate.relative],
        limit=gate.limit,
        observed=amount,
        status="fail" if is_over(gate, amount) else "pass",
        message="",
        label=gate.quantity.label,
        unit=gate.quantity.unit,
        now=seen.now,
        before=seen.before,
    )
    if tests:
        report = with_test(gate, report, tests)
    mode = tests.mode if tests else "strict"
    return replace(report, message=", ".join(found_and_allowed(gate, report, mode)))


def without_effect(gates: Iterable[GateReport], advisory: Container[str]) -> tuple[GateReport, ...]:
    """Return the results of gates. Advisory ones, of a judge without a good calibration, are skipped."""
    skipped = "advisory, because the judge is not calibrated"
    return tuple(
        [
            replace(gate, status="skipped", waived=None, skipped=skipped) if gate.id in advisory else gate
            for gate in gates
        ]
    )
