"""The gates on latency: the most that is allowed, and by how much the 95th percentile may exceed the baseline's."""

import sys
from collections.abc import Iterator
from typing import NamedTuple

from ragcontract.contract.config import Config, LoadedConfig
from ragcontract.core.numbers import milliseconds, ms_digits
from ragcontract.core.text import encodable
from ragcontract.judging.gates import NO_BASELINE, Limit, is_over, message, of_baseline
from ragcontract.model import GateReport, Latency

LABELS = {"p50_ms": "p50 latency", "p95_ms": "p95 latency", "max_ms": "max latency"}


class LatencyGate(Limit, frozen=True, kw_only=True):
    """A limit on a ``field`` of the latency, in milliseconds where it is not relative."""

    field: str


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
            part_or_ms, is_part = of_baseline(most)
            yield LatencyGate(
                id="latency.p95_increase_gt",
                field=field,
                kind="relative_latency_increase" if is_part else "latency_increase",
                limit=part_or_ms,
            )


def judge(
    config: LoadedConfig, current: Latency | None, baseline: Latency | None, *, has_baseline: bool
) -> tuple[list[GateReport], list[str]]:
    """Return what becomes of every gate, and why some cannot be judged, with the line of each."""
    reports, problems = [], []
    for gate in gates_of(config.config):
        location = encodable(f"{config.files[0].path}:{config.lines[gate.id]}")
        observed = _observe(gate, current, baseline, has_baseline=has_baseline)
        if observed.value is None:
            problems.append(f"{location}: {gate.cannot(observed.why_not)}")
        else:
            reports.append(_report(gate, observed.value, location))
    return reports, problems


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


def _report(gate: LatencyGate, observed: float, location: str) -> GateReport:
    return GateReport(
        id=gate.id,
        location=location,
        metric=f"latency_{gate.field}",
        kind=gate.kind,
        limit=gate.limit,
        observed=observed,
        status="fail" if is_over(gate, observed) else "pass",
        message=message(gate, LABELS[gate.field], observed, _in_ms),
    )


def _in_ms(observed: float, limit: float) -> tuple[str, str]:
    digits = ms_digits(observed, limit)
    return milliseconds(abs(observed), digits), milliseconds(limit, digits)
