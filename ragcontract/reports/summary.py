"""What every report for people has in common: the headline and the metric table."""

from collections.abc import Iterator

from msgspec import Struct

from ragcontract.model import GateReport, Report, Status
from ragcontract.numbers import count, digits_for, fixed, percent, signed


class Row(Struct, frozen=True, kw_only=True):
    """One metric, written out. ``current`` is over all queries; change and baseline over the shared ones."""

    label: str
    baseline: str
    current: str
    change: str
    limits: str
    status: Status


def rows(report: Report) -> Iterator[Row]:
    """Write the metrics with as many decimals as keep broken limits and real changes visible."""
    digits = _digits(report)
    for key, metric in report.metrics.items():
        gates = [gate for gate in report.gates if gate.metric == key]
        yield Row(
            label=metric.label,
            baseline=fixed(metric.baseline, digits),
            current=fixed(metric.current, digits),
            change=signed(metric.delta, digits),
            limits=", ".join(_limit(gate, digits) for gate in gates),
            status=metric.status,
        )


def _digits(report: Report) -> int:
    broken = [(gate.observed, gate.limit) for gate in report.gates if gate.status == "fail"]
    moved = [(metric.delta, 0.0) for metric in report.metrics.values() if metric.delta is not None]
    return digits_for(broken + moved)


def _limit(gate: GateReport, digits: int) -> str:
    if gate.kind == "minimum":
        return f"minimum {fixed(gate.limit, digits)}"
    return f"allowed drop {percent(gate.limit) if gate.kind == 'relative_drop' else fixed(gate.limit, digits)}"


def shared_note(report: Report) -> str | None:
    """Say over which queries a change is taken, where that is not all of them."""
    baseline = report.inputs.baseline
    if baseline is None or not (baseline.new or baseline.changed or baseline.gone):
        return None
    differs = any(metric.current != metric.current_shared for metric in report.metrics.values())
    apart = [
        f"{len(ids)} {word}"
        for ids, word in ((baseline.new, "new"), (baseline.changed, "with another question"))
        if ids
    ]
    if baseline.gone:
        apart.append(f"{len(baseline.gone)} only in the baseline")
    end = f"; the run's means over those: {_means(report)}" if differs else ""
    return (
        f"Changes are taken over the {count(baseline.shared, 'query')} that both sides have ({', '.join(apart)}){end}."
    )


def _means(report: Report) -> str:
    digits = _digits(report)
    return ", ".join(f"{metric.label} {fixed(metric.current_shared, digits)}" for metric in report.metrics.values())


def headline(report: Report) -> str:
    """Say in one line what the verdict rests on."""
    broken_gates = [gate for gate in report.gates if gate.status == "fail"]
    broken = sum(query.status == "fail" for query in report.queries)
    if report.verdict == "pass":
        gates = count(len(report.gates), "gate") if report.gates else "no gates"
        return f"{count(len(report.queries), 'query')} and {gates} hold"
    reasons = []
    if broken_gates:
        more = "; …" if len(broken_gates) > 1 else ""
        reasons.append(
            f"{len(broken_gates)} of {count(len(report.gates), 'gate')} broken ({broken_gates[0].message}{more})"
        )
    if broken:
        reasons.append(f"{broken:,} of {count(len(report.queries), 'query')} broken")
    return ", ".join(reasons)
