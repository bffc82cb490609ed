"""The model of gates: limits of the configuration, what they are compared with, tiers, pass rates, latency."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model.answers import Scale
from tests.model.ranks import RANKING
from tests.model.workspace import Broken, CannotJudgeError, Row

AT_ANY_CUT_OFF = (*RANKING, "judged", "overlap")
DROP = re.compile(r"(.+)_(drop|rise)_gt")


@dataclasses.dataclass(frozen=True)
class Query:
    """A golden query after evaluation: its numbers now and before, and its broken rules."""

    id: str
    weight: float
    tags: frozenset[str]
    tier: str | None
    has_rules: bool
    now: Mapping[str, float]
    before: Mapping[str, float] | None
    broken: tuple[Broken, ...]

    @property
    def passes(self) -> bool:
        """Whether its rules hold, but for what may be broken."""
        return not any(broken.excuses <= {"counted", "skipped"} for broken in self.broken)


@dataclasses.dataclass(frozen=True)
class Gate:
    """A limit of the configuration."""

    id: str
    metric: str
    kind: str  # minimum, maximum, drop or rise
    limit: float | str
    tag: str | None = None


def mean(queries: Sequence[Query], metric: str, *, before: bool = False, shared: bool = False) -> float | None:
    """Return the weighted mean over the queries that have a metric; ``shared``: on both sides."""
    pairs = []
    for query in queries:
        then = (query.before or {}).get(metric)
        value = then if before else query.now.get(metric)
        if value is not None and (not shared or (then is not None and metric in query.now)):
            pairs.append((query.weight, value))
    total = sum(weight for weight, _ in pairs)
    return sum(weight * value for weight, value in pairs) / total if pairs else None


def gates_of(config: Row, ks: Sequence[int], tags: Sequence[str]) -> list[Gate]:
    """Return the gates on means that are judged: those of the tags if some are named, all otherwise."""
    gates = [] if tags else _gates_of_group(config, "", None, ks)
    for tag, group in (config.get("tags") or {}).items():
        if not tags or tag in tags:
            gates += _gates_of_group(group or {}, f"tags.{tag}.", tag, ks)
    return gates


def _gates_of_group(group: Row, prefix: str, tag: str | None, ks: Sequence[int]) -> list[Gate]:
    gates = []
    for section, kind in (("minimums", "minimum"), ("maximums", "maximum")):
        for key, limit in (group.get(section) or {}).items():
            gates.append(Gate(f"{prefix}{section}.{key}", _metric(key, ks), kind, limit, tag))
    for key, limit in (group.get("fail_on") or {}).items():
        if key not in ("mode", "alpha"):
            match = DROP.fullmatch(key)
            assert match is not None, key
            gates.append(Gate(f"{prefix}fail_on.{key}", _metric(match[1], ks), match[2], limit, tag))
    return [gate for gate in gates if gate.limit is not None]


def _metric(key: str, ks: Sequence[int]) -> str:
    """Return the metric that a key of the configuration names, with its cut-off."""
    name, _, cut_off = key.partition("_at_")
    if name not in AT_ANY_CUT_OFF:
        return key
    k = max(ks) if cut_off in ("", "k") else int(cut_off)
    if k not in ks:
        raise CannotJudgeError(f"{key}: {k} is not in k")
    return f"{name}_at_{k}"


def over_limit(limit: float | str, change: float, before: float, low: float, tolerance: float) -> bool:
    """Whether a change for the worse is over its limit, in points or in per cent of the baseline."""
    allowed = float(limit.rstrip("% ")) / 100 * (before - low) if isinstance(limit, str) else limit
    return change > allowed + tolerance


def mean_status(gate: Gate, queries: Sequence[Query], scales: Mapping[str, Scale], tolerance: float) -> str:
    """Return whether a limit on a mean or on its change holds."""
    members = [query for query in queries if gate.tag is None or gate.tag in query.tags]
    if gate.tag is not None and not members:
        raise CannotJudgeError(f"{gate.id}: no query has the tag")
    if gate.kind in ("drop", "rise"):
        now = mean(members, gate.metric, shared=True)
        before = mean(members, gate.metric, before=True, shared=True)
        if now is None or before is None:
            raise CannotJudgeError(f"{gate.id}: nothing to compare")
        change = before - now if gate.kind == "drop" else now - before
        low = scales[gate.metric].low if gate.metric in scales else 0.0
        if gate.kind == "rise" and isinstance(gate.limit, str) and before <= low:
            raise CannotJudgeError(f"{gate.id}: a share of nothing")
        return "fail" if over_limit(gate.limit, change, before, low, tolerance) else "pass"
    now = mean(members, gate.metric)
    if now is None or isinstance(gate.limit, str):
        raise CannotJudgeError(f"{gate.id}: no value")
    fails = now < gate.limit - tolerance if gate.kind == "minimum" else now > gate.limit + tolerance
    return "fail" if fails else "pass"


def rate(queries: Sequence[Query]) -> float | None:
    """Return the share of the queries with rules whose rules hold, by weight."""
    members = [query for query in queries if query.has_rules]
    total = sum(query.weight for query in members)
    return sum(query.weight for query in members if query.passes) / total if members else None


def rate_status(limit: float, queries: Sequence[Query], name: str, tolerance: float) -> str:
    """Return whether a limit on a pass rate holds."""
    value = rate(queries)
    if value is None:
        raise CannotJudgeError(f"{name}: no query has rules")
    return "fail" if value < limit - tolerance else "pass"


def check_tiers(config: Row, golden: Sequence[Row]) -> None:
    """Refuse tiers that do not fit the golden queries, or that gate each other in a circle."""
    tiers = config.get("tiers") or []
    names = [tier["name"] for tier in tiers]
    used = {row["tier"] for row in golden if row.get("tier") is not None}
    gates = {tier["name"]: list(tier.get("gates") or []) for tier in tiers}
    if len(set(names)) < len(names) or any(name not in gates for gated in gates.values() for name in gated):
        raise CannotJudgeError("tiers: a name twice, or a gate on an unknown tier")
    if tiers and used != set(names):
        raise CannotJudgeError("tiers: a query of no tier, or a tier without queries")
    for name in names:
        if name in _reached(gates, gates[name]):
            raise CannotJudgeError("tiers gate each other in a circle")


def _reached(gates: Mapping[str, list[str]], start: Sequence[str]) -> set[str]:
    reached: set[str] = set()
    left = list(start)
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += gates[name]
    return reached


def tier_statuses(config: Row, queries: Sequence[Query], waived: set[str], tolerance: float) -> dict[str, str]:
    """Return the status of each tier: pass, fail, waived, or skipped because another one missed its minimum."""
    tiers = config.get("tiers") or []
    gates = {tier["name"]: list(tier.get("gates") or []) for tier in tiers}
    statuses = {}
    for tier in tiers:
        name = tier["name"]
        gate = f"tiers.{name}.minimum"
        status = rate_status(tier["minimum"], [q for q in queries if q.tier == name], gate, tolerance)
        statuses[name] = "waived" if status == "fail" and gate in waived else status
    failing = [name for name, status in statuses.items() if status == "fail"]
    for name in failing:
        for gated in _reached(gates, gates[name]):
            statuses[gated] = "skipped"
    return statuses


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile by the nearest-rank method."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latency_statuses(limits: Mapping[str, Any], now: Sequence[float], before: Sequence[float] | None) -> dict[str, str]:
    """Return the status of each limit on latency."""
    statuses = {}
    for key, limit in limits.items():
        if limit is None:
            continue
        if not now or (key == "p95_increase_gt" and not before):
            raise CannotJudgeError(f"latency.{key}: no latencies")
        if key == "p95_increase_gt":
            then = percentile(before or [], 0.95)
            fails = over_limit(limit, percentile(now, 0.95) - then, then, 0.0, 0.0)
        else:
            share = {"p50_ms": 0.5, "p95_ms": 0.95, "max_ms": 1.0}[key]
            fails = percentile(now, share) > limit
        statuses[f"latency.{key}"] = "fail" if fails else "pass"
    return statuses
