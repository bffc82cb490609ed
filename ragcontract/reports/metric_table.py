"""The metric table of the reports for people: metrics, other limited quantities, limited means of tags."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ragcontract.core.numbers import (
    decimals,
    digits_for,
    digits_that_add_up,
    fixed,
    milliseconds,
    ms_digits,
    percent,
    signed,
)
from ragcontract.judging.gates import COMPARING, GateReport, Status, worst
from ragcontract.reports.report import MetricReport, Report

NO_VALUE = "-"


class Row(Struct, frozen=True, kw_only=True):
    """One row with formatted values. ``current`` is over all queries, the other values over the shared ones.

    ``tag`` is None for the mean over all queries. ``metric`` has the numbers; it is None for a quantity that is not a
    metric. ``gates`` are its limits. ``p_value`` is for a change for the worse; for tags it is adjusted over all tags.
    """

    label: str
    tag: str | None = None
    metric: MetricReport | None = None
    gates: Sequence[GateReport] = ()
    p_value: float | None = None
    baseline: str
    current: str
    current_shared: str
    change: str
    limits: str
    status: Status

    @property
    def compared(self) -> bool:
        """Whether there is a baseline value."""
        return self.baseline != NO_VALUE


def table_rows(report: Report) -> list[Row]:
    """Return the means over all queries, other quantities with a limit, and the limited means of tags, worst first.

    Each row has as many decimals as it takes to show a broken limit or a change.
    """
    return [*metric_rows(report), *_quantity_rows(report), *_tag_rows(report)]


def metric_rows(report: Report) -> Iterator[Row]:
    """Yield the means over all queries: at the largest cut-off, and others that have a limit."""
    largest = at_largest_k(report)
    by_key: dict[str, list[GateReport]] = {}
    for gate in report.gates:
        if gate.tag is None:
            by_key.setdefault(gate.metric, []).append(gate)
    for key, metric in report.metrics.items():
        gates = by_key.get(key, [])
        if gates or key in largest:  # report.json has the other cut-offs
            yield _row(metric, gates, None, metric.noise.p_value if metric.noise else None)


def at_largest_k(report: Report) -> dict[str, MetricReport]:
    """Return the metrics at the largest cut-off, and those without one."""
    k = max(report.k)
    return {key: metric for key, metric in report.metrics.items() if metric.k in {None, k}}


def _tag_rows(report: Report) -> Iterator[Row]:
    tagged: dict[tuple[str, str], list[GateReport]] = {}
    for gate in sorted(report.gates, key=lambda gate: (gate.status != "fail", _room(gate))):
        if gate.tag is not None:
            tagged.setdefault((gate.tag, gate.metric), []).append(gate)
    for (tag, key), gates in tagged.items():
        yield _row(_metric_of(tag, key, gates, report), gates, tag, report.tags[tag].p_values.get(key))


def _quantity_rows(report: Report) -> Iterator[Row]:
    """Yield a row for each limited quantity that is not a metric."""
    by_key: dict[str, list[GateReport]] = {}
    for gate in report.gates:
        if gate.metric not in report.metrics:
            by_key.setdefault(gate.metric, []).append(gate)
    for gates in by_key.values():
        now, before = gates[0].now or 0.0, gates[0].before
        digits = ms_digits(now, *(gate.limit for gate in gates if gate.kind not in COMPARING))
        if before is not None:
            digits = max(digits, ms_digits(now, before))
        current = milliseconds(now, digits)
        yield Row(
            label=gates[0].label,
            gates=gates,
            baseline=NO_VALUE if before is None else milliseconds(before, digits),
            current=current,
            current_shared=current,
            change=NO_VALUE if before is None else milliseconds(now - before, digits, sign=True),
            limits=", ".join(map(_quantity_limit, gates)),
            status=worst(gates),
        )


def _quantity_limit(gate: GateReport) -> str:
    allowed = "allowed increase" if gate.kind in COMPARING else "allowed"
    if gate.kind.startswith("relative"):
        return f"{allowed} {percent(gate.limit, decimals(gate.limit * 100))}"
    return f"{allowed} {milliseconds(gate.limit, ms_digits(gate.limit, gate.limit))}"


def _room(gate: GateReport) -> float:
    """Return the distance of a gate from its limit; negative if it is beyond."""
    return gate.observed - gate.limit if gate.kind == "minimum" else gate.limit - gate.observed


def _metric_of(tag: str, key: str, gates: list[GateReport], report: Report) -> MetricReport:
    found = report.tags[tag]
    shared, before = (found.metrics_shared or {}).get(key), (found.baseline_metrics or {}).get(key)
    return MetricReport(
        label=report.metrics[key].label,
        current=found.metrics[key],
        current_shared=shared,
        baseline=before,
        delta=None if shared is None or before is None else shared - before,
        status=worst(gates),
        better=report.metrics[key].better,
        scale=report.metrics[key].scale,
    )


def _row(metric: MetricReport, gates: list[GateReport], tag: str | None, p_value: float | None) -> Row:
    digits = _digits(metric, gates)
    return Row(
        label=metric.label,
        tag=tag,
        metric=metric,
        gates=gates,
        p_value=p_value,
        baseline=fixed(metric.baseline, digits),
        current=fixed(metric.current, digits),
        current_shared=fixed(metric.current_shared, digits),
        change=signed(metric.delta, digits),
        limits=", ".join(_limit(gate, metric, digits) for gate in gates),
        status=metric.status,
    )


def _digits(metric: MetricReport, gates: list[GateReport]) -> int:
    def absolute(gate: GateReport) -> float:
        return metric.baseline or 0.0 if gate.kind.startswith("relative") else 1.0

    apart = [(gate.observed * absolute(gate), gate.limit * absolute(gate)) for gate in gates if gate.status == "fail"]
    as_given = max((decimals(gate.limit) for gate in gates if not gate.kind.startswith("relative")), default=0)
    if metric.delta is None or metric.baseline is None or metric.current_shared is None:
        return max(digits_for(apart), as_given)
    digits = max(digits_for([*apart, (metric.delta, 0.0)]), as_given)
    return digits_that_add_up(metric.baseline, metric.current_shared, digits)


def _limit(gate: GateReport, metric: MetricReport, digits: int) -> str:
    if gate.kind in {"minimum", "maximum"}:
        return f"{gate.kind} {fixed(gate.limit, digits)}"
    allowed = "allowed drop" if gate.kind.endswith("drop") else "allowed increase"
    if not gate.kind.startswith("relative"):
        return f"{allowed} {fixed(gate.limit, digits)}"
    in_points = fixed(gate.limit * (metric.baseline or 0.0), digits)
    return f"{allowed} {percent(gate.limit, decimals(gate.limit * 100))} ({in_points})"
