"""Limits as the reports for people show them: as they were written, and how many decimals stand beside them."""

from collections.abc import Iterable, Sequence

from ragcontract.core.gate import Unit
from ragcontract.core.numbers import (
    MOST_FOR_TABLES,
    as_written,
    decimals,
    digits_beside,
    digits_for,
    digits_that_add_up,
    fixed,
    ms_as_written,
    percent_as_written,
)
from ragcontract.judging.gate_report import COMPARING, NOT_HELD, GateReport, GateStatus
from ragcontract.reports.report import MetricReport

# What is said of a limit beside others of the same mean that hold.
MARKS: dict[GateStatus, str] = {"fail": " (broken)", "unproven": " (over)", "too_few": " (over)"}


def limits_text(gates: Sequence[GateReport], digits: int, metric: MetricReport | None = None) -> str:
    """Return the limits of one mean; where some hold and others do not, those that do not are marked."""
    whole = None if metric is None else whole_of(metric)
    mixed = len({gate.status for gate in gates}) > 1
    texts = (limit_text(gate, whole, digits) + (MARKS.get(gate.status, "") if mixed else "") for gate in gates)
    return ", ".join(texts)


def limit_text(gate: GateReport, whole: float | None, digits: int) -> str:
    """Return a limit as it was written: ``minimum 0.80``, ``allowed drop 10% (0.08)``.

    A relative limit on a metric is also given in points, with ``digits`` decimals; ``whole`` is what 100 % are.
    """
    written = _written(gate)
    if gate.unit == "points" and gate.kind.startswith("relative"):
        written += f" ({fixed(gate.limit * (whole or 0.0), digits)})"
    return f"{_verb(gate)} {written}"


def whole_of(metric: MetricReport) -> float | None:
    """Return what 100 % are in limits on a metric: the baseline's value, counted from the lowest one of the scale."""
    return None if metric.baseline is None else abs(metric.baseline - metric.scale.zero)


def _written(gate: GateReport) -> str:
    if gate.kind.startswith("relative"):
        return percent_as_written(gate.limit)
    return written(gate.limit, gate.unit)


def written(limit: float, unit: Unit) -> str:
    """Return an absolute limit as it was written, with its unit."""
    return ms_as_written(limit) if unit == "ms" else as_written(limit)


def _verb(gate: GateReport) -> str:
    if gate.kind not in COMPARING:
        return "allowed" if gate.unit == "ms" else gate.kind
    return "allowed drop" if gate.kind.endswith("drop") else "allowed increase"


def table_digits(rows: Iterable[tuple[MetricReport, Sequence[GateReport]]]) -> int:
    """Return the number of decimals for the metrics of a table: the same for all of its rows.

    It is 2 to 4: what shows that a value changed, and on which side of its limit it is. Where a change is over its
    limit by less than that, it is as many as show it, up to 10. In the rows with limits, if there are any, changes are
    also the differences of what is shown, as far as 4 decimals allow.
    """
    rows = list(rows)
    limited = [row for row in rows if row[1]]
    broken: list[int] = []
    other: list[int] = []
    steps: list[tuple[float, float]] = []
    for metric, gates in rows:
        for gate in gates:
            (broken if gate.status in NOT_HELD else other).append(_digits_beside(gate, metric))
        other.append(digits_for([(metric.delta or 0.0, 0.0)]))
    for metric, _ in limited or rows:
        if metric.baseline is not None and metric.current_shared is not None:
            steps.append((metric.baseline, metric.current_shared))
    fewest = max([*broken, *(min(one, MOST_FOR_TABLES) for one in other)], default=digits_for([]))
    return digits_that_add_up(steps, fewest)


def _digits_beside(gate: GateReport, metric: MetricReport) -> int:
    if not gate.kind.startswith("relative"):
        return max(digits_beside(gate.observed, gate.limit), min(decimals(gate.limit), MOST_FOR_TABLES))
    whole = whole_of(metric) or 0.0  # a limit in percent is also shown in points, rounded
    return digits_for([(gate.observed * whole, gate.limit * whole)])


def limited_by(gate: GateReport) -> str:
    """Return what a gate limits: ``drop of Recall@5``, ``minimum of HitRate@5``, ``p95 latency``."""
    if gate.kind in COMPARING:
        return f"{'drop' if gate.kind.endswith('drop') else 'increase'} of {gate.label}"
    return gate.label if gate.unit == "ms" else f"{gate.kind} of {gate.label}"
