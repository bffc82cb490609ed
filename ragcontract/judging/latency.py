"""The gates on latency: the most that is allowed, and by how much the 95th percentile may exceed the baseline's."""

import sys
from collections.abc import Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from ragcontract.inputs.config import Config, LoadedConfig
from ragcontract.model import GateReport, Latency
from ragcontract.numbers import SAME, digits_for, milliseconds, ms_digits, percent
from ragcontract.text import encodable

LABELS = {"p50_ms": "p50 latency", "p95_ms": "p95 latency", "max_ms": "max latency"}
INCREASE = "p95_increase_gt"
NO_BASELINE = "there is no baseline; make one with `rag-contract baseline`, or leave the limit out"


class LatencyGate(Struct, frozen=True, kw_only=True):
    """One limit: in milliseconds, or for a ``relative_latency_increase`` a part of the baseline's value."""

    id: str
    field: str
    kind: Literal["latency", "latency_increase", "relative_latency_increase"]
    limit: float


class Observed(NamedTuple):
    """What a gate limits, or why there is nothing to hold against it."""

    value: float | None
    why_not: str = ""


def gates_of(config: Config) -> Iterator[LatencyGate]:
    """Yield the gates that are asked for."""
    limits = config.latency
    for field in LABELS:
        limit: float | None = getattr(limits, field)
        if limit is not None:
            yield LatencyGate(id=f"latency.{field}", field=field, kind="latency", limit=limit)
        if field == "p95_ms" and (most := limits.p95_increase_gt) is not None:
            gate_id = f"latency.{INCREASE}"
            if isinstance(most, str):
                part = float(most.rstrip("% ")) / 100
                yield LatencyGate(id=gate_id, field=field, kind="relative_latency_increase", limit=part)
            else:
                yield LatencyGate(id=gate_id, field=field, kind="latency_increase", limit=most)


def judge(
    config: LoadedConfig, current: Latency | None, baseline: Latency | None, *, has_baseline: bool
) -> tuple[list[GateReport], list[str]]:
    """Return what becomes of every gate, and why some cannot be judged, with the line of each."""
    reports, problems = [], []
    for gate in gates_of(config.config):
        place = encodable(f"{config.files[0].path}:{config.lines[gate.id]}")
        observed = _observe(gate, current, baseline, has_baseline=has_baseline)
        if observed.value is None:
            problems.append(f"{place}: {_cannot(gate.id, observed.why_not)}")
        else:
            reports.append(_report(gate, observed.value, place))
    return reports, problems


def without_baseline() -> str:
    """Say why an increase cannot be judged, before anything is read."""
    return _cannot(f"latency.{INCREASE}", NO_BASELINE)


def _cannot(gate_id: str, why: str) -> str:
    return f"{gate_id} cannot be judged: {why}"


def _observe(gate: LatencyGate, current: Latency | None, baseline: Latency | None, *, has_baseline: bool) -> Observed:
    if current is None:
        return Observed(None, "no row of the run has latency_ms; export it, or leave the limit out")
    now: float = getattr(current, gate.field)
    if gate.kind == "latency":
        return Observed(now)
    if baseline is None:
        missing = (
            "the baseline has no latency; make it anew with `rag-contract baseline` from a run that has latency_ms"
            if has_baseline
            else NO_BASELINE
        )
        return Observed(None, missing)
    before: float = getattr(baseline, gate.field)
    if gate.kind == "latency_increase":
        return Observed(now - before)
    if not before:
        return Observed(None, "the baseline's p95 is 0 ms, of which nothing is a part; give the limit in milliseconds")
    return Observed(min((now - before) / before, sys.float_info.max))  # JSON has no infinity


def _report(gate: LatencyGate, observed: float, place: str) -> GateReport:
    return GateReport(
        id=gate.id,
        place=place,
        metric=f"latency_{gate.field}",
        kind=gate.kind,
        limit=gate.limit,
        observed=observed,
        status="fail" if observed - gate.limit > SAME else "pass",
        message=_message(gate, observed),
    )


def _message(gate: LatencyGate, observed: float) -> str:
    label = LABELS[gate.field]
    if gate.kind == "relative_latency_increase":
        digits = digits_for([(observed * 100, gate.limit * 100)])
        seen, limit = f"{percent(abs(observed), digits)} of the baseline", percent(gate.limit, digits)
    else:
        digits = ms_digits(observed, gate.limit)
        seen, limit = milliseconds(abs(observed), digits), milliseconds(gate.limit, digits)
    if gate.kind == "latency":
        return f"{label} is {seen}, allowed {limit}"
    if abs(observed) <= SAME:
        return f"{label} did not rise, allowed increase {limit}"
    return f"{label} {'rose' if observed > 0 else 'fell'} by {seen}, allowed increase {limit}"
