"""The rows of the metric table with those on latency, and the latency of one run in a line."""

from collections.abc import Iterator

from ragcontract.core.numbers import count, decimals, milliseconds, ms_digits, percent
from ragcontract.judging.gates import worst
from ragcontract.judging.latency import LABELS
from ragcontract.model import GateReport, Latency, Report
from ragcontract.reports.summary import Row, rows


def table_rows(report: Report) -> list[Row]:
    """Return the means over all queries, the latencies that have a limit, and the limited means of tags."""
    means = list(rows(report))
    return [
        *(row for row in means if row.tag is None),
        *_rows(report),
        *(row for row in means if row.tag is not None),
    ]


def in_words(latency: Latency) -> str:
    """As ``latency: p50 41 ms, p95 80 ms, max 120 ms (25 rows)``."""
    values = [f"{field.removesuffix('_ms')} {_shown(getattr(latency, field))}" for field in LABELS]
    return f"latency: {', '.join(values)} ({count(latency.rows, 'row')})"


def _rows(report: Report) -> Iterator[Row]:
    found = report.latency
    if found is None:
        return
    for field, label in LABELS.items():
        gates = [gate for gate in report.gates if gate.metric == f"latency_{field}"]
        if not gates:
            continue
        now: float = getattr(found.current, field)
        before: float | None = getattr(found.baseline, field) if found.baseline else None
        digits = ms_digits(now, *(gate.limit for gate in gates if gate.kind == "latency"))
        if before is not None:
            digits = max(digits, ms_digits(now, before))
        current = milliseconds(now, digits)
        yield Row(
            label=label,
            tag=None,
            gates=gates,
            baseline="-" if before is None else milliseconds(before, digits),
            current=current,
            current_shared=current,
            change="-" if before is None else milliseconds(now - before, digits, sign=True),
            limits=", ".join(map(_limit, gates)),
            status=worst(gates),
        )


def _limit(gate: GateReport) -> str:
    if gate.kind == "latency":
        return f"allowed {_shown(gate.limit)}"
    if gate.kind == "latency_increase":
        return f"allowed increase {_shown(gate.limit)}"
    return f"allowed increase {percent(gate.limit, decimals(gate.limit * 100))}"


def _shown(value: float) -> str:
    return milliseconds(value, ms_digits(value, value))
