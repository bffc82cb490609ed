"""The gates: limits on the means, absolute or against the baseline."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ragcontract.contract.config import Config, Drop, TagLimits
from ragcontract.core.numbers import SAME, digits_for, fixed, percent
from ragcontract.metrics.formulas import MetricAtK
from ragcontract.model import COMPARING, GateKind, GateReport, Status
from ragcontract.statistics.aggregate import Comparison

WORST_FIRST: tuple[Status, ...] = ("fail", "waived", "pass")
NO_LIMITS = {"mode", "alpha"}  # of fail_on
NO_BASELINE = "there is no baseline; make one with `rag-contract baseline`, or leave the limit out"


class Limit(Struct, frozen=True, kw_only=True):
    """One limit that the configuration asks for; of a relative kind, a part of the baseline's value."""

    id: str
    kind: GateKind
    limit: float

    @property
    def compares(self) -> bool:
        """Whether it needs a baseline."""
        return self.kind in COMPARING

    def cannot(self, why: str) -> str:
        """Say why it cannot be judged."""
        return f"{self.id} cannot be judged: {why}"


class Gate(Limit, frozen=True, kw_only=True):
    """A limit on a mean, over the queries with a ``tag``; None for all queries."""

    metric: MetricAtK
    tag: str | None = None


class NoiseVerdict(Struct, frozen=True, kw_only=True):
    """What the sign-flip test says of a drop; ``p_value`` is None where too few queries changed to say."""

    p_value: float | None
    counts: bool

    def words(self, *, over: bool) -> str:
        """Say so, where it matters."""
        if not over:
            return ""
        if self.p_value is None:
            return " (too few queries changed to tell it from noise, so it counts)"
        p = f"p {self.p_value:.2g}"
        return f" (significant, {p})" if self.counts else f", which noise explains ({p}): not significant"


def gates_of(config: Config, metrics: Sequence[MetricAtK]) -> Iterator[Gate]:
    """Yield the gates that are asked for, metric by metric, those of all queries before those of a tag."""
    yield from _gates(config, metrics, None)
    for tag in config.tags:
        yield from _gates(config.tags[tag], metrics, tag)


def _gates(limits: Config | TagLimits, metrics: Sequence[MetricAtK], tag: str | None) -> Iterator[Gate]:
    prefix = "" if tag is None else f"tags.{tag}."
    largest = max(metric.k for metric in metrics)
    for metric in metrics:
        plain = [metric.metric.name] if metric.k == largest else []
        for name in [*plain, metric.key]:
            drop: Drop | None = getattr(limits.fail_on, f"{name}_drop_gt", None)
            if drop is not None:
                limit, is_part = of_baseline(drop)
                yield Gate(
                    id=f"{prefix}fail_on.{name}_drop_gt",
                    metric=metric,
                    kind="relative_drop" if is_part else "drop",
                    limit=limit,
                    tag=tag,
                )
        for name in [*(f"{name}_at_k" for name in plain), metric.key]:
            minimum: float | None = getattr(limits.minimums, name, None)
            if minimum is not None:
                yield Gate(id=f"{prefix}minimums.{name}", metric=metric, kind="minimum", limit=minimum, tag=tag)


def of_baseline(limit: float | str) -> tuple[float, bool]:
    """Return a limit on a change as a number, and whether it is a part of the baseline's value, as "10%" is."""
    return (float(limit.rstrip("% ")) / 100, True) if isinstance(limit, str) else (limit, False)


def limits_set(config: Config) -> Iterator[str]:
    """Yield the ids of all limits that are set, also of those at a cut-off that is not scored."""
    groups: list[tuple[str, Struct]] = [("fail_on", config.fail_on), ("minimums", config.minimums)]
    for tag, limits in config.tags.items():
        groups += [(f"tags.{tag}.fail_on", limits.fail_on), (f"tags.{tag}.minimums", limits.minimums)]
    groups.append(("latency", config.latency))
    for name, group in groups:
        for field in group.__struct_fields__:
            if field not in NO_LIMITS and getattr(group, field) is not None:
                yield f"{name}.{field}"


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


def is_over(gate: Limit, observed: float) -> bool:
    """Compare unrounded, with a tolerance of 1e-9: exactly at the limit is not over it."""
    excess = gate.limit - observed if gate.kind == "minimum" else observed - gate.limit
    return excess > SAME


def judge(gate: Gate, observed: float, location: str, *, noise: NoiseVerdict | None = None) -> GateReport:
    """Say whether a limit is broken. ``location`` is where it stands.

    With ``noise``, a drop over its limit that is not significant is none.
    """
    over = is_over(gate, observed)
    forgiven = over and noise is not None and not noise.counts
    return GateReport(
        id=gate.id,
        location=location,
        tag=gate.tag,
        metric=gate.metric.key,
        kind=gate.kind,
        limit=gate.limit,
        observed=observed,
        status="fail" if over and not forgiven else "pass",
        message=message(gate, gate.metric.label, observed, _in_points) + (noise.words(over=over) if noise else ""),
        p_value=noise.p_value if noise else None,
    )


def worst(gates: Sequence[GateReport]) -> Status:
    """Return what becomes of a metric with these gates."""
    statuses: list[Status] = [gate.status for gate in gates]
    return next((status for status in WORST_FIRST if status in statuses), "none")


def why_not(gate: Gate, *, has_baseline: bool, has_queries: bool = True) -> str:
    """Say why a gate cannot be evaluated, which must never look like a pass."""
    tagged = "" if gate.tag is None else f" with the tag {gate.tag!r}"
    if gate.tag is not None and not has_queries:
        reason = f"no golden query has the tag {gate.tag!r}"
    elif gate.kind == "minimum":
        reason = f"no golden query{tagged} has relevant documents"
    elif not has_baseline:
        reason = NO_BASELINE
    else:
        both = f"{tagged} and with relevant documents" if tagged else " with relevant documents"
        reason = f"no query{both} is in both the run and the baseline"
    return gate.cannot(reason)


def message(gate: Limit, label: str, observed: float, write: Callable[[float, float], tuple[str, str]]) -> str:
    """Say what is seen and what is allowed; ``write`` writes both, where they are no parts of the baseline's value."""
    seen, limit = (_in_percent if gate.kind.startswith("relative") else write)(observed, gate.limit)
    if not gate.compares:
        return f"{label} is {seen}, {'minimum' if gate.kind == 'minimum' else 'allowed'} {limit}"
    limited, verb, bad, good = (
        ("drop", "fall", "fell", "rose") if gate.kind.endswith("drop") else ("increase", "rise", "rose", "fell")
    )
    moved = f"did not {verb}" if abs(observed) <= SAME else f"{bad if observed > 0 else good} by {seen}"
    return f"{label} {moved}, allowed {limited} {limit}"


def _in_percent(observed: float, limit: float) -> tuple[str, str]:
    digits = digits_for([(observed * 100, limit * 100)])
    return f"{percent(abs(observed), digits)} of the baseline", percent(limit, digits)


def _in_points(observed: float, limit: float) -> tuple[str, str]:
    digits = digits_for([(observed, limit)])
    return fixed(abs(observed), digits), fixed(limit, digits)
