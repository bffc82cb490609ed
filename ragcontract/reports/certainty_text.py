"""How sure changes are, as the reports for people say it: bounds beside a change, what a pass may hide, p-values."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragcontract.core import bounds
from ragcontract.core.finding import phrase_of
from ragcontract.core.numbers import (
    MOST_FOR_TABLES,
    SAME,
    as_written,
    count,
    digits_beside,
    fixed,
    percent,
    percent_as_written,
    signed,
)
from ragcontract.core.phrase import Name, Phrase
from ragcontract.judging.gate_report import NOT_PROVEN, Certainty, GateReport
from ragcontract.judging.gate_text import p_beside_threshold
from ragcontract.reports.broken import not_proven_gates
from ragcontract.reports.limit_text import whole_of
from ragcontract.reports.report import MetricReport, Report
from ragcontract.statistics.significance import ALPHA

OUTCOMES: dict[Certainty, str] = {
    "within": "within for sure",
    "beyond": "beyond for sure",
    "undecided": "not decided",
}
NO_BOUNDS = (0.0, 0.0)


class Ends(NamedTuple):
    """The one-sided bounds of a change, in points of its metric: it is at worst the first and at best the second."""

    worst: float
    best: float


def ends_of(gates: Sequence[GateReport], metric: MetricReport) -> Ends | None:
    """Return the bounds of a change as its limits have them, else those of the metric; None if nothing changed."""
    for gate in gates:
        if gate.bounds and any(gate.bounds):
            least, most = gate.bounds
            return Ends(_change(gate, most, metric), _change(gate, least, metric))
    if metric.noise is None:
        return None
    low, high = metric.noise.bounds
    return Ends(low, high) if metric.better == "higher" else Ends(high, low)


def bound_beside(gates: Sequence[GateReport], metric: MetricReport, digits: int) -> str:
    """Return the bound of a change that says most about its limits: ``at worst -0.07`` or ``at best -0.03``.

    The change may be as bad as the first. The second is for one that is over a limit and for the worse for sure. Empty
    without limits on it, and if nothing changed.
    """
    bounded = [gate for gate in gates if gate.bounds]
    ends = ends_of(bounded, metric) if bounded else None
    if ends is None:
        return ""
    lower = any(gate.observed - gate.limit > SAME and (gate.bounds or NO_BOUNDS)[0] > SAME for gate in bounded)
    shown = max(digits_beside((gate.bounds or NO_BOUNDS)[0 if lower else 1], gate.limit) for gate in bounded)
    end = ends.best if lower else ends.worst
    return f"at {'best' if lower else 'worst'} {signed(end, max(digits, min(shown, MOST_FOR_TABLES)))}"


def _change(gate: GateReport, amount: float, metric: MetricReport) -> float:
    """Return an amount of a limit as a change of the metric, in its points."""
    points = amount * (whole_of(metric) or 0.0) if gate.kind.startswith("relative") else amount
    return -points if gate.kind.endswith("drop") else points


def could_hide(report: Report) -> Phrase | None:
    """Return which change beyond its limit a pass does not exclude: the worst one, and the number of others.

    Limits over all queries come before those on tags, where few queries leave much room. None for a contract that is
    broken, and where every limit excludes what it forbids, as for a run that is its own baseline.
    """
    if report.verdict != "pass":
        return None
    unsure = [gate for gate in report.gates if gate.status == "pass" and gate.certainty == "undecided"]
    if not unsure:
        return None
    unsure.sort(key=lambda gate: (gate.of is not None, -_excess(gate, report)))
    first, others = unsure[0], len(unsure) - 1
    most, limit = _amounts(first)
    what = "a drop" if first.kind.endswith("drop") else "an increase"
    of = () if first.of is None else (" of ", Name(first.of))
    more = f", or one beyond {count(others, 'other limit')}" if others else ""
    return (f"This pass could have hidden {what} of {most} in {first.label}", *of, f" (limit {limit}){more}.")


def _excess(gate: GateReport, report: Report) -> float:
    """Return by how much a change may exceed its limit, as a fraction of the scale or of the baseline's value."""
    metric = report.metrics.get(gate.metric)
    relative = gate.kind.startswith("relative") or metric is None
    whole = 1.0 if relative or metric is None else metric.scale.high - metric.scale.low
    return ((gate.bounds or NO_BOUNDS)[1] - gate.limit) / (whole or 1.0)


def _amounts(gate: GateReport) -> tuple[str, str]:
    """Return the upper bound of a change and its limit as text."""
    most = (gate.bounds or NO_BOUNDS)[1]
    if gate.kind.startswith("relative"):
        return percent(most, digits_beside(most * 100, gate.limit * 100)), percent_as_written(gate.limit)
    return fixed(most, digits_beside(most, gate.limit)), as_written(gate.limit)


def left_open(report: Report) -> Iterator[Phrase]:
    """Yield what a verdict does not settle: changes over their limits that do not fail, and what a pass may hide."""
    yield from not_proven_notes(report)
    if hidden := could_hide(report):
        yield hidden


def not_proven_notes(report: Report) -> Iterator[Phrase]:
    """Yield the changes over their limits that do not fail, each with the reason; of many the first, and a count."""
    found = not_proven_gates(report)
    for finding in found[: bounds.NAMES]:
        yield (*phrase_of(finding), f": {finding.why}")
    if (more := len(found) - bounds.NAMES) > 0:
        yield (f"{count(more, 'more change')} over {'its limit' if more == 1 else 'their limits'} and not proven",)


def over_and_not_proven(report: Report) -> str:
    """Return how many changes are over their limits and do not fail, for the headline; empty if none are."""
    found = [gate for gate in report.gates if gate.status in NOT_PROVEN]
    if not found:
        return ""
    few = sum(gate.status == "too_few" for gate in found)
    noun = "drop" if all(gate.kind.endswith("drop") for gate in found) else "change"
    more = "more " if any(gate.status == "fail" for gate in report.gates) else ""
    verb, limit = ("is", "its limit") if len(found) == 1 else ("are", "their limits")
    start = f"; {count(len(found), f'{more}{noun}')} {verb} over {limit}"
    if few == len(found):
        return f"{start}, and too few queries changed to tell"
    return f"{start} and not proven" + (f", {few:,} of them with too few changed queries to tell" if few else "")


def alpha_of(report: Report) -> float:
    """Return the level of tests and bounds: that of the limits on changes, if there are any."""
    return next((gate.alpha for gate in report.gates if gate.alpha), ALPHA)


def method_note(report: Report) -> str:
    """Return what the bounds and the p-values of changes mean."""
    tests = tested_together(report)
    note = f"Each bound is one-sided ({percent(1 - alpha_of(report))}), for other questions of the same kind."
    return f"{note} p of a change with a limit is adjusted over {tests:,} such changes." if tests > 1 else note


def tested_together(report: Report) -> int:
    """Return over how many changes the p-values of limits are adjusted: limits on the same change count once."""
    return len({(gate.metric, gate.tag) for gate in report.gates if gate.alpha})


def p_of(gates: Sequence[GateReport], p_value: float) -> str:
    """Return a p-value beside the threshold that it met or missed, if a limit has one: ``p 0.19 > 0.05``."""
    return p_beside_threshold(p_value, next((gate.alpha for gate in gates if gate.alpha), None))


def outcomes_of(gates: Sequence[GateReport]) -> str:
    """Return whether a change is within its limits for sure, beyond one, or not decided; empty without such limits."""
    found = {gate.certainty for gate in gates if gate.certainty}
    order: tuple[Certainty, ...] = ("beyond", "undecided", "within")
    return next((OUTCOMES[one] for one in order if one in found), "")
