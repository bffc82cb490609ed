"""What every report for people has in common: the headline and the metric table."""

from collections.abc import Iterator

from msgspec import Struct

from ragcontract.model import GateReport, MetricReport, Report, Status
from ragcontract.numbers import count, decimals, digits_for, digits_that_add_up, fixed, percent, signed
from ragcontract.reports.movement import not_compared


class Row(Struct, frozen=True, kw_only=True):
    """One metric, written out. ``current`` is over all queries; the others over the shared ones."""

    label: str
    baseline: str
    current: str
    current_shared: str
    change: str
    limits: str
    status: Status


def rows(report: Report) -> Iterator[Row]:
    """Write the metrics, each with as many decimals as keep a broken limit and a real change visible."""
    for key, metric in report.metrics.items():
        gates = [gate for gate in report.gates if gate.metric == key]
        digits = _digits(metric, gates)
        yield Row(
            label=metric.label,
            baseline=fixed(metric.baseline, digits),
            current=fixed(metric.current, digits),
            current_shared=fixed(metric.current_shared, digits),
            change=signed(metric.delta, digits),
            limits=", ".join(_limit(gate, metric, digits) for gate in gates),
            status=metric.status,
        )


def _digits(metric: MetricReport, gates: list[GateReport]) -> int:
    def absolute(gate: GateReport) -> float:
        return metric.baseline or 0.0 if gate.kind == "relative_drop" else 1.0

    apart = [(gate.observed * absolute(gate), gate.limit * absolute(gate)) for gate in gates if gate.status == "fail"]
    as_given = max((decimals(gate.limit) for gate in gates if gate.kind != "relative_drop"), default=0)
    if metric.delta is None or metric.baseline is None or metric.current_shared is None:
        return max(digits_for(apart), as_given)
    digits = max(digits_for([*apart, (metric.delta, 0.0)]), as_given)
    return digits_that_add_up(metric.baseline, metric.current_shared, digits)


def _limit(gate: GateReport, metric: MetricReport, digits: int) -> str:
    if gate.kind == "minimum":
        return f"minimum {fixed(gate.limit, digits)}"
    if gate.kind == "drop":
        return f"allowed drop {fixed(gate.limit, digits)}"
    in_points = fixed(gate.limit * (metric.baseline or 0.0), digits)
    return f"allowed drop {percent(gate.limit, decimals(gate.limit * 100))} ({in_points})"


def shared_note(report: Report) -> str | None:
    """Say over which queries a change is taken, where that is not all of them."""
    baseline = report.inputs.baseline
    if baseline is None or not (groups := not_compared(baseline)):
        return None
    differs = any(metric.current != metric.current_shared for metric in report.metrics.values())
    apart = [f"{len(ids):,} {name}" for name, ids in groups.items()]
    shared = ", ".join(f"{row.label} {row.current_shared}" for row in rows(report))
    end = f"; the run's means over those: {shared}" if differs else ""
    return (
        f"Changes are taken over the {count(baseline.shared, 'query')} that both sides have ({', '.join(apart)}){end}."
    )


def headline(report: Report) -> str:
    """Say in one line what the verdict rests on."""
    broken_gates = [gate for gate in report.gates if gate.status == "fail"]
    broken = sum(query.status == "fail" for query in report.queries)
    queries = count(len(report.queries), "query")
    if report.verdict == "pass":
        gates = f" and {count(len(report.gates), 'gate')}" if report.gates else "; no gates are set"
        return f"nothing broken in {queries}{gates}"
    reasons = []
    if broken_gates:
        more = f" (and {count(len(broken_gates) - 1, 'more gate')} broken)" if len(broken_gates) > 1 else ""
        reasons.append(broken_gates[0].message + more)
    if broken:
        reasons.append(f"{broken:,} of {queries} broken")
    return "; ".join(reasons)
