"""The result of a gate as report.json has it, and its texts for people.

The texts say what was observed, what is allowed, and why a value over its limit does not fail the check.
"""

from collections.abc import Sequence
from datetime import date
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from ragcontract.core import bounds
from ragcontract.core.gate import COMPARING, NOUNS, OF_LEVEL, FailMode, Gate, Kind, Unit, digits_beside_limit, written
from ragcontract.core.numbers import (
    SAME,
    count,
    digits_beside,
    fixed,
    milliseconds,
    ms_digits,
    percent,
)

GateKind = Literal[
    "drop",
    "relative_drop",
    "rise",
    "relative_rise",
    "level_drop",
    "relative_level_drop",
    "level_rise",
    "relative_level_rise",
    "minimum",
    "maximum",
    "latency",
    "latency_increase",
    "relative_latency_increase",
]
GateStatus = Literal["pass", "fail", "unproven", "too_few", "waived", "skipped"]
Status = Literal["pass", "fail", "unproven", "too_few", "waived", "skipped", "none"]
WORST_FIRST: tuple[Status, ...] = ("fail", "too_few", "unproven", "waived", "skipped", "pass")
# Over its limit without failing the check, because the change is not shown to be real.
NOT_PROVEN: frozenset[GateStatus] = frozenset({"unproven", "too_few"})
NOT_HELD: frozenset[GateStatus] = NOT_PROVEN | {"fail"}
Certainty = Literal["within", "beyond", "undecided"]
# What each kind of report.json stands for: the unit, the kind, and whether the limit is relative to the baseline.
KINDS: dict[GateKind, tuple[Unit, Kind, bool]] = {
    "minimum": ("points", "minimum", False),
    "maximum": ("points", "maximum", False),
    "drop": ("points", "drop", False),
    "relative_drop": ("points", "drop", True),
    "rise": ("points", "rise", False),
    "relative_rise": ("points", "rise", True),
    "level_drop": ("points", "level_drop", False),
    "relative_level_drop": ("points", "level_drop", True),
    "level_rise": ("points", "level_rise", False),
    "relative_level_rise": ("points", "level_rise", True),
    "latency": ("ms", "maximum", False),
    "latency_increase": ("ms", "rise", False),
    "relative_latency_increase": ("ms", "rise", True),
}
KIND_IN_JSON = {meaning: name for name, meaning in KINDS.items()}
SIGNIFICANT_DIGITS = range(2, 8)


class LevelRuns(Struct, frozen=True, kw_only=True):
    """The recorded runs that a limit on a level looks at."""

    runs: int  # how many have the metric
    first: str  # the day of the first of the five runs with the best mean
    last: str  # the day of the last of them
    queries: int  # over which the run and the level are compared: those that all runs have
    todays: int  # that have the metric in this run


class GateReport(Struct, frozen=True, kw_only=True):
    """The result of one gate.

    ``p_value``, ``bounds``, ``certainty``, ``alpha`` and ``needs`` are of limits on the change of a metric only.
    """

    id: str
    location: str  # where the limit is defined, for example ragcontract.yml:4
    metric: str  # of a limit on latency a name such as latency_p95_ms, which is not among the report's metrics
    kind_in_json: GateKind = field(name="kind")  # people and other code read ``kind``, ``relative`` and ``unit``
    # The limit and the observed value are in points of the metric (for most metrics from 0 to 1), or in milliseconds
    # for latency and latency_increase. For relative limits they are fractions of the baseline's value, counted from
    # the lowest value of the scale: 10 % is 0.1.
    limit: float
    observed: float  # a drop or an increase is negative if the metric got better; a relative one can exceed 1
    # Under the mode significant, a change over its limit is unproven if it is not significant, and too_few if so few
    # queries changed that no change of theirs could be significant. Neither fails the check.
    status: GateStatus
    message: str
    tag: str | None = None  # the tag whose queries are limited; null for all queries
    tier: str | UnsetType = UNSET  # the tier whose queries are limited; left out for all queries
    waived: str | None = None
    # Why the limit is skipped: a tier missed its minimum and gates this one, or the history has too few runs.
    skipped: str | UnsetType = UNSET
    p_value: float | None = None  # of a change for the worse, adjusted over all limits on changes
    label: str = ""  # of the limited quantity
    unit: Unit = "points"  # of the limited quantity
    now: float | None = None  # the quantity of the run, over the limited queries
    before: float | None = None  # the quantity of the baseline, or the best level, over the limited queries
    level: LevelRuns | UnsetType = UNSET  # of limits on levels
    bounds: tuple[float, float] | UnsetType = UNSET  # the one-sided 95 % bounds of the change, in the unit of observed
    # Within if the change is certainly at most the limit, beyond if it is certainly more, otherwise undecided.
    certainty: Certainty | UnsetType = UNSET
    alpha: float | UnsetType = UNSET  # the p-value of a significant change does not exceed it
    mode: FailMode | UnsetType = UNSET  # of fail_on; left out if it is strict, and of limits that it does not concern
    needs: int | UnsetType = UNSET  # how many queries it takes to decide about the limit, if there are fewer

    @property
    def kind(self) -> Kind:
        """What the limit is: a minimum, a maximum, or a limit on a change."""
        return KINDS[self.kind_in_json][1]

    @property
    def relative(self) -> bool:
        return KINDS[self.kind_in_json][2]

    @property
    def compares(self) -> bool:
        return self.kind in COMPARING

    @property
    def is_of_part(self) -> bool:
        """Whether a limit on a level does not look at all queries of today."""
        return self.level is not UNSET and self.level.queries < self.level.todays

    @property
    def of(self) -> str | None:
        """The tag or the tier whose queries the gate limits; None for all queries."""
        return self.tier or self.tag


def worst(gates: Sequence[GateReport]) -> Status:
    """Return the worst status of a metric's gates, or ``none`` without gates."""
    statuses: list[Status] = [gate.status for gate in gates]
    return next((status for status in WORST_FIRST if status in statuses), "none")


def found_and_allowed(gate: Gate, report: GateReport, mode: FailMode) -> Sequence[str]:
    """Return the parts of a gate's message: ``MRR@5 fell by 0.02``, ``at most by 0.07`` and ``allowed drop 0.05``.

    The first is what was observed. Only a change within its limit has the second, its upper bound, unless no query
    changed. If the mode requires that a change is shown to be real, or certainly within its limit, the last part has
    the answer.
    """
    label, amount = gate.quantity.label, report.observed
    seen, limit = _written(gate, amount)
    if gate.kind in OF_LEVEL:
        return _beside_level(gate, report), f"allowed {NOUNS[gate.kind]} {limit}"
    if not gate.compares:
        return f"{label} is {seen}", f"{'minimum' if gate.kind == 'minimum' else 'allowed'} {limit}"
    worse, better = _verbs(gate)
    verb = "fall" if gate.kind == "drop" else "rise"
    moved = f"did not {verb}" if abs(amount) <= SAME else f"{worse if amount > 0 else better} by {seen}"
    observed, allowed = f"{label} {moved}", f"allowed {NOUNS[gate.kind]} {limit}"
    if not report.bounds or report.bounds == (0.0, 0.0):
        return observed, allowed
    over = amount - gate.limit > SAME
    bound = "" if over else _at_most(gate, amount, report.bounds[1])
    return [observed, *([bound] if bound else []), allowed + _answer(report, mode, over=over)]


def _beside_level(gate: Gate, report: GateReport) -> str:
    """Return ``MRR@5 is 0.78; its best level in the last 30 runs was 0.84 (runs of 2 to 9 October 2026)``."""
    digits, of = digits_beside_limit(report.observed, gate.limit), report.level
    if report.now is None or report.before is None or not of:
        return f"{gate.quantity.label} has no level yet"
    over = f" over {of.queries:,} of {count(of.todays, 'query')}" if of.queries < of.todays else ""
    days = period(*map(date.fromisoformat, (of.first, of.last)))
    level = f"its best level in the last {count(of.runs, 'run')} was {fixed(report.before, digits)} (runs of {days})"
    return f"{gate.quantity.label} is {fixed(report.now, digits)}{over}; {level}"


def period(first: date, last: date) -> str:
    """Return two days and what is between them as text: ``2 to 9 October 2026``."""
    end = f"{last.day} {last:%B} {last.year}"
    if first == last:
        return end
    start = [str(first.day), *([f"{first:%B}"] if first.month != last.month or first.year != last.year else [])]
    return f"{' '.join([*start, *([str(first.year)] if first.year != last.year else [])])} to {end}"


def why_not_proven(report: GateReport) -> str:
    """Return why a change over its limit does not fail: it is not shown to be real, or cannot be shown to be."""
    if report.status == "too_few":
        return f"over its limit, too few queries changed to tell{_needs(report, ': ')}"
    return "over its limit, not shown to be real"


def p_beside_threshold(p_value: float, alpha: float | None) -> str:
    """Return a p-value beside the threshold that it met or missed: ``0.19 > 0.05``, ``0.012 ≤ 0.05``."""
    if alpha is None:
        return f"{p_value:.2g}"
    if p_value <= alpha:
        return f"{p_value:.2g} ≤ {alpha:g}"
    shown = (f"{p_value:.{digits}g}" for digits in SIGNIFICANT_DIGITS)
    return f"{next((text for text in shown if float(text) > alpha), p_value)} > {alpha:g}"


def named(query_ids: Sequence[str], of: int = 0) -> str:
    """Return the first ids and how many more there are; ``of`` is the total if ``query_ids`` is only a part."""
    more = max(of, len(query_ids)) - bounds.NAMES
    rest = f" and {more} more" if more > 0 else ""
    return ", ".join(repr(query_id) for query_id in query_ids[: bounds.NAMES]) + rest


def _at_most(gate: Gate, amount: float, most: float) -> str:
    """Return the upper bound of a change for the worse; empty if it is where the change is."""
    worse, _ = _verbs(gate)
    size = _written(gate, most)[0]
    if most <= SAME:
        return f"at least by {size}" if -most > SAME else ""
    return f"at most by {size}" if amount > SAME else f"or {worse} by at most {size}"


def _answer(report: GateReport, mode: FailMode, *, over: bool) -> str:
    if report.status not in {"fail", "waived"}:  # a limit is only waived if it is broken
        return ""
    if mode == "significant" and report.p_value is not None:
        return f" (significant, p {report.p_value:.2g})"
    if mode == "noninferiority" and not over:
        return f": more is not excluded{_needs(report, '; ')}"
    return ""


def _needs(report: GateReport, before: str) -> str:
    return f"{before}needs {count(report.needs, 'query')}" if report.needs else ""


def _verbs(gate: Gate) -> tuple[str, str]:
    """Return the verbs for a change for the worse and for the better."""
    return ("fell", "rose") if gate.kind == "drop" else ("rose", "fell")


def _written(gate: Gate, amount: float) -> tuple[str, str]:
    """Return an amount and its limit as text, with as many decimals as show which is larger."""
    limit, zero, unit = gate.limit, gate.quantity.zero, gate.quantity.unit
    if gate.relative:
        above = f" above {zero:g}" if zero else ""
        seen = f"{percent(abs(amount), digits_beside(amount * 100, limit * 100))} of the baseline{above}"
    elif unit == "ms":
        seen = milliseconds(abs(amount), ms_digits(amount, limit))
    else:
        seen = fixed(abs(amount), digits_beside_limit(amount, limit))
    return seen, written(limit, unit, relative=gate.relative)
