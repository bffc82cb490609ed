"""The gates: limits on the means, absolute or against the baseline."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from ragcontract.inputs.config import Drop, FailOn, Minimums
from ragcontract.model import GateReport
from ragcontract.numbers import SAME, digits_for, fixed, percent
from ragcontract.scoring.aggregate import Comparison
from ragcontract.scoring.metrics import MetricAtK


class Gate(Struct, frozen=True, kw_only=True):
    """One limit that the configuration asks for. A relative drop is a part of the baseline's value."""

    id: str
    metric: MetricAtK
    kind: Literal["drop", "relative_drop", "minimum"]
    limit: float


def gates_of(fail_on: FailOn, minimums: Minimums, metrics: Sequence[MetricAtK]) -> Iterator[Gate]:
    """Yield the gates that are asked for, metric by metric."""
    for metric in metrics:
        name = metric.metric.name
        drop: Drop | None = getattr(fail_on, f"{name}_drop_gt")
        if isinstance(drop, str):
            limit = float(drop.rstrip("% ")) / 100
            yield Gate(id=f"fail_on.{name}_drop_gt", metric=metric, kind="relative_drop", limit=limit)
        elif drop is not None:
            yield Gate(id=f"fail_on.{name}_drop_gt", metric=metric, kind="drop", limit=drop)
        minimum: float | None = getattr(minimums, f"{name}_at_k")
        if minimum is not None:
            yield Gate(id=f"minimums.{name}_at_k", metric=metric, kind="minimum", limit=minimum)


def observe(gate: Gate, means: Comparison) -> float | None:
    """Return the number that the gate limits; None where there is nothing to average or to compare with."""
    if gate.kind == "minimum":
        return means.current
    if means.delta is None or means.baseline is None:
        return None
    drop = 0.0 - means.delta  # not -delta: no change is 0, not minus 0
    if gate.kind == "drop":
        return drop
    return drop / means.baseline if means.baseline else 0.0  # nothing falls below 0


def judge(gate: Gate, observed: float, place: str) -> GateReport:
    """Compare unrounded, with a tolerance of 1e-9: exactly at the limit passes. ``place`` is where the limit stands."""
    excess = gate.limit - observed if gate.kind == "minimum" else observed - gate.limit
    return GateReport(
        id=gate.id,
        place=place,
        metric=gate.metric.key,
        kind=gate.kind,
        limit=gate.limit,
        observed=observed,
        status="fail" if excess > SAME else "pass",
        message=_message(gate, observed),
    )


def why_not(gate: Gate, *, has_baseline: bool) -> str:
    """Say why a gate cannot be evaluated, which must never look like a pass."""
    if gate.kind == "minimum":
        reason = "no golden query has relevant documents"
    elif not has_baseline:
        reason = "there is no baseline; make one with `rag-contract baseline`, or leave the limit out"
    else:
        reason = "no query with relevant documents is in both the run and the baseline"
    return f"{gate.id} cannot be judged: {reason}"


def _message(gate: Gate, observed: float) -> str:
    if gate.kind == "relative_drop":
        digits = digits_for([(observed * 100, gate.limit * 100)])
        seen, limit = f"{percent(abs(observed), digits)} of the baseline", percent(gate.limit, digits)
    else:
        digits = digits_for([(observed, gate.limit)])
        seen, limit = fixed(abs(observed), digits), fixed(gate.limit, digits)
    if gate.kind == "minimum":
        return f"{gate.metric.label} is {seen}, minimum {limit}"
    if abs(observed) <= SAME:
        return f"{gate.metric.label} did not fall, allowed drop {limit}"
    return f"{gate.metric.label} {'fell' if observed > 0 else 'rose'} by {seen}, allowed drop {limit}"
