"""Limits and changes as the reports for people show them.

A limit is shown as it was written, with the decimals that its value needs. A change is shown with its bounds, its
p-value, and what a pass may hide.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragcontract.core import bounds
from ragcontract.core.finding import phrase_of
from ragcontract.core.gate import NOUNS, OF_LEVEL, written
from ragcontract.core.numbers import (
    FEWEST,
    MOST_FOR_TABLES,
    SAME,
    count,
    digits_beside,
    digits_for,
    fixed,
    more,
    percent,
)
from ragcontract.core.phrase import Name, Phrase
from ragcontract.decision.gate_report import (
    NOT_HELD,
    NOT_PROVEN,
    Certainty,
    GateReport,
    GateStatus,
    p_beside_threshold,
)
from ragcontract.report.queries import not_proven_gates
from ragcontract.report.record import MetricReport, Report
from ragcontract.statistics.significance import ALPHA

# The marks of limits that do not hold, beside limits on the same mean that do.
MARKS: dict[GateStatus, str] = {
    "fail": " (broken)",
    "unproven": " (over)",
    "too_few": " (over)",
    "waived": " (waived)",
    "skipped": " (skipped)",
}


def digits_of(report: Report) -> int:
    """Return the decimals of all numbers in a report: the fewest from 2 to 4 that show which limits hold.

    A limit for which even 4 are too few is marked with ``just over`` or ``just under``.
    """
    wanted = [_digits_beside(gate, report.metrics.get(gate.metric)) for gate in report.gates if gate.unit == "points"]
    return min(max(wanted, default=FEWEST), MOST_FOR_TABLES)


def _digits_beside(gate: GateReport, metric: MetricReport | None) -> int:
    if not gate.relative:
        return digits_beside(gate.observed, gate.limit)
    whole = abs((gate.before or 0.0) - (metric.scale.zero if metric else 0.0))
    return digits_for([(gate.observed * whole, gate.limit * whole)])  # a limit in percent is shown in points, rounded


def limits_text(gates: Sequence[GateReport], digits: int, metric: MetricReport | None = None) -> str:
    """Return the limits of one mean as text; if some hold and others do not, those that do not are marked."""
    of_baseline = None if metric is None else whole_of(metric)
    mixed = len({gate.status for gate in gates}) > 1
    texts = []
    for gate in gates:
        mark = MARKS.get(gate.status, "") if mixed else ""
        if gate.status in NOT_HELD and gate.unit == "points" and _digits_beside(gate, metric) > digits:
            mark = f" (just {'under' if gate.kind == 'minimum' else 'over'})"
        whole = gate.before if metric is None else of_baseline
        if metric is not None and gate.kind in OF_LEVEL:
            whole = abs((gate.before or 0.0) - metric.scale.zero)
        texts.append(limit_text(gate, whole, digits) + mark)
    return ", ".join(texts)


def limit_text(gate: GateReport, whole: float | None, digits: int) -> str:
    """Return a limit as it was written: ``minimum 0.80``, ``allowed drop 10% (0.08)``.

    A relative limit on a metric is also shown in points, with ``digits`` decimals; ``whole`` is the value of 100 %.
    """
    limit = written(gate.limit, gate.unit, relative=gate.relative)
    if gate.unit == "points" and gate.relative:
        limit += f" ({fixed(gate.limit * (whole or 0.0), digits)})"
    if gate.compares or gate.kind in OF_LEVEL:
        return f"allowed {NOUNS[gate.kind]} {limit}"
    return f"{'allowed' if gate.unit == 'ms' else gate.kind} {limit}"


def whole_of(metric: MetricReport) -> float | None:
    """Return the value of 100 % in limits on a metric: the baseline's value, counted from the lowest of the scale."""
    return None if metric.baseline is None else abs(metric.baseline - metric.scale.zero)


def limited_by(gate: GateReport) -> str:
    """Return what a gate limits: ``drop of Recall@5``, ``minimum of HitRate@5``, ``p95 latency``."""
    return gate.label if gate.unit == "ms" and not gate.compares else f"{NOUNS[gate.kind]} of {gate.label}"


NO_BOUNDS = (0.0, 0.0)


class Ends(NamedTuple):
    """The one-sided bounds of a change, in points of its metric."""

    worst: float
    best: float


def ends_of(gates: Sequence[GateReport], metric: MetricReport) -> Ends | None:
    """Return the bounds of a change from its limits or, without any, from the metric; None if nothing changed."""
    for gate in gates:
        if gate.bounds and any(gate.bounds):
            least, most = gate.bounds
            return Ends(_change(gate, most, metric), _change(gate, least, metric))
    if metric.noise is None:
        return None
    low, high = metric.noise.bounds
    return Ends(low, high) if metric.better == "higher" else Ends(high, low)


def chance_of(gates: Sequence[GateReport], metric: MetricReport, digits: int) -> str:
    """Return what chance means for a change whose limits count it; empty if none does, and if nothing changed.

    The amount that chance alone explains is the distance of the change from its bound. A test of several limits may
    decide otherwise at the edge; then the decision counts.
    """
    tested = [gate for gate in gates if gate.bounds and any(gate.bounds) and gate.mode]
    for gate in tested[:1]:
        low, high = gate.bounds or NO_BOUNDS
        most, explained, change = (
            abs(_change(gate, amount, metric)) for amount in (high, gate.observed - low, gate.observed)
        )
        if gate.status == "too_few":
            return f"too few queries changed to tell{f' (needs {gate.needs:,})' if gate.needs else ''}"
        if gate.mode == "noninferiority":
            return f"up to {fixed(most, digits)} is not excluded"
        if gate.status in NOT_HELD:
            explained = max(explained, change) if gate.status in NOT_PROVEN else min(explained, change)
        return f"chance alone explains up to {fixed(explained, digits)}"
    return ""


def _change(gate: GateReport, amount: float, metric: MetricReport) -> float:
    """Return an amount in the unit of a limit as a change of the metric in points."""
    points = amount * (whole_of(metric) or 0.0) if gate.relative else amount
    return -points if gate.kind == "drop" else points


def could_hide(report: Report) -> Phrase | None:
    """Return a sentence on the worst change beyond its limit that a pass does not exclude, with a count of the others.

    Limits over all queries come before those on tags, where few queries leave much room. It is None for a broken
    contract, and if every limit excludes what it forbids, as for a run that is its own baseline.
    """
    if report.verdict != "pass":
        return None
    unsure = [gate for gate in report.gates if gate.status == "pass" and gate.certainty == "undecided"]
    if not unsure:
        return None
    unsure.sort(key=lambda gate: (gate.of is not None, -_excess(gate, report)))
    first, others = unsure[0], len(unsure) - 1
    most, limit = _amounts(first, digits_of(report))
    what = "drop" if first.kind == "drop" else "increase"
    of = () if first.of is None else (" of ", Name(first.of))
    further = f", and one beyond {count(others, 'other limit')}" if others else ""
    start = f"Chance could hide a real {what} of {most} in {first.label}"
    return (start, *of, f" (limit {limit}){further}; more queries would show {'them' if others else 'it'}.")


def _excess(gate: GateReport, report: Report) -> float:
    """Return how far a change may exceed its limit, as a fraction of the scale or of the baseline's value."""
    metric = report.metrics.get(gate.metric)
    relative = gate.relative or metric is None
    whole = 1.0 if relative or metric is None else metric.scale.high - metric.scale.low
    return ((gate.bounds or NO_BOUNDS)[1] - gate.limit) / (whole or 1.0)


def _amounts(gate: GateReport, digits: int) -> tuple[str, str]:
    """Return the upper bound of a change and its limit as text; the bound has at least the decimals of the report."""
    most, limit = (gate.bounds or NO_BOUNDS)[1], written(gate.limit, relative=gate.relative)
    if gate.relative:
        return percent(most, digits_beside(most * 100, gate.limit * 100)), limit
    return fixed(most, max(digits, digits_beside(most, gate.limit))), limit


def left_open(report: Report) -> Iterator[Phrase]:
    """Yield sentences on changes over their limits that do not fail, and on what a pass may hide."""
    yield from not_proven_notes(report)
    if hidden := could_hide(report):
        yield hidden


def not_proven_notes(report: Report) -> Iterator[Phrase]:
    """Yield the first changes over their limits that do not fail, each with the reason, and a count of the others."""
    findings = not_proven_gates(report)
    for finding in findings[: bounds.NAMES]:
        yield (*phrase_of(finding), f": {finding.why}")
    if rest := more(len(findings), bounds.NAMES, "change"):
        yield (f"{rest} over {'its limit' if len(findings) == bounds.NAMES + 1 else 'their limits'} and not proven",)


def alpha_of(report: Report) -> float:
    """Return the significance level of tests and bounds: that of the limits on changes, or else the usual one."""
    return next((gate.alpha for gate in report.gates if gate.alpha), ALPHA)


def method_note(report: Report) -> str:
    """Return a sentence that explains the bounds and the p-values of changes."""
    tests = tested_together(report)
    note = f"Each bound is one-sided ({percent(1 - alpha_of(report))}), for other questions of the same kind."
    return f"{note} p of a change with a limit is adjusted over {tests:,} such changes." if tests > 1 else note


def tested_together(report: Report) -> int:
    """Return the number of changes over which p-values are adjusted; limits on the same change count once."""
    return len({(gate.metric, gate.tag) for gate in report.gates if gate.alpha})


def p_of(gates: Sequence[GateReport], p_value: float) -> str:
    """Return a p-value and the threshold that it met or missed, if a limit has one: ``0.19 > 0.05``."""
    return p_beside_threshold(p_value, next((gate.alpha for gate in gates if gate.alpha), None))


CERTAIN: dict[tuple[bool, Certainty], str] = {
    (False, "within"): "holds, also for other questions",
    (False, "undecided"): "holds; for other questions, more is not excluded",
    (True, "undecided"): "over its limit; other questions may be within it",
    (True, "beyond"): "over its limit, also for other questions",
}
NOT_EXCLUDED = "more is not excluded, as it must be"


def outcomes_of(gates: Sequence[GateReport]) -> str:
    """Return whether the limits on a change hold, and how sure that is, as one sentence; empty without such limits."""
    certain = sorted((gate for gate in gates if gate.certainty), key=lambda gate: gate.limit - gate.observed)
    for gate in certain[:1]:
        is_over = gate.observed - gate.limit > SAME
        if gate.mode == "noninferiority" and gate.certainty == "undecided" and not is_over:
            return NOT_EXCLUDED
        return CERTAIN.get((is_over, gate.certainty or "undecided"), "")
    return ""
