"""The verdict on everything that was scored: every gate, every rule of every query."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragcontract.core.errors import InputError
from ragcontract.core.text import encodable
from ragcontract.evaluation.scored import Scored
from ragcontract.judging import gates as limits
from ragcontract.judging import latency
from ragcontract.judging.gates import Gate, NoiseVerdict
from ragcontract.judging.repeats import broken_in_any
from ragcontract.model import GateReport, Noise, QueryStatus, Verdict, Violation
from ragcontract.rules.ranks import suspects
from ragcontract.statistics.aggregate import Comparison, Group, compare, noise_of
from ragcontract.statistics.significance import SMALLEST_SAMPLED, fewest_changed, holm


class Judgement(Struct, frozen=True, kw_only=True):
    """The means and the noise of their changes by metric key, the gates asked for, the broken rules by query id.

    ``only_warn`` are the ids of queries whose broken rules do not fail.
    """

    means: dict[str, Comparison]
    noise: dict[str, Noise]
    gates: list[GateReport]
    violations: dict[str, list[Violation]]
    only_warn: frozenset[str] = frozenset()

    @property
    def verdict(self) -> Verdict:
        """Fail if anything is broken."""
        broken = any(gate.status == "fail" for gate in self.gates) or "fail" in map(self.status, self.violations)
        return "fail" if broken else "pass"

    def status(self, query_id: str) -> QueryStatus:
        """Return what becomes of a query."""
        violations = self.violations.get(query_id)
        if not violations:
            return "pass"
        if all(violation.waived is not None for violation in violations):
            return "waived"
        return "warn" if query_id in self.only_warn else "fail"


def judge(scored: Scored, warnings: Sequence[str] = ()) -> Judgement:
    """Judge; raises :class:`InputError`, with the ``warnings``, where a gate that was asked for cannot be evaluated."""
    config = scored.config.config
    groups: dict[str | None, list[Group]] = {None: scored.groups}
    groups |= {tag: [kind for kind in scored.groups if tag in kind.tags] for tag in config.tags}
    compared = {tag: compare(group, scored.metrics) for tag, group in groups.items()}
    gates = list(limits.gates_of(config, scored.metrics))
    observed = {gate.id: limits.observe(gate, compared[gate.tag][gate.metric.key]) for gate in gates}
    places = {gate.id: encodable(f"{scored.config.files[0].path}:{scored.config.lines[gate.id]}") for gate in gates}
    unjudged = [
        f"{places[gate.id]}: "
        + limits.why_not(gate, has_baseline=scored.baseline is not None, has_queries=bool(groups[gate.tag]))
        for gate in gates
        if observed[gate.id] is None
    ]
    has_baseline = scored.baseline is not None
    before = scored.baseline.latency if scored.baseline else None
    on_latency, unjudged_latency = latency.judge(scored.config, scored.run.latency, before, has_baseline=has_baseline)
    unjudged += unjudged_latency
    if unjudged:
        raise InputError(unjudged, warnings=warnings)
    noise = _noise(gates, groups, scored) if config.fail_on.mode == "significant" else {}
    violations = {
        query.id: broken
        for query in suspects(scored.golden.queries.values(), scored.run.scores, scored.k)
        if (broken := broken_in_any(query, scored.run.scores[query.id], scored.k, config.per_query))
    }
    return Judgement(
        means=compared[None],
        noise=noise_of(scored.groups, scored.metrics),
        gates=[
            limits.judge(gate, seen, places[gate.id], noise=noise.get(gate.id))
            for gate in gates
            if (seen := observed[gate.id]) is not None
        ]
        + on_latency,
        violations=violations,
        only_warn=frozenset(query_id for query_id in violations if scored.golden.queries[query_id].severity == "warn"),
    )


def _noise(
    gates: Sequence[Gate], groups: Mapping[str | None, Sequence[Group]], scored: Scored
) -> dict[str, NoiseVerdict]:
    """Test all limits on drops together: with Holm's correction, many limits raise no more false alarms than one."""
    drops = [gate for gate in gates if gate.compares]
    if not drops:
        return {}
    alpha = scored.config.config.fail_on.alpha
    fewest = fewest_changed(alpha, len(drops))
    # Where so many limits are set that no sampled p-value could be small enough, the clearest drop of all must count.
    too_coarse = SMALLEST_SAMPLED if alpha / len(drops) < SMALLEST_SAMPLED else 0.0
    by_tag = {tag: noise_of(group, scored.metrics) for tag, group in groups.items()}
    p_values = {
        gate.id: noise.p_value
        for gate in drops
        if (noise := by_tag[gate.tag].get(gate.metric.key))
        and noise.p_value is not None
        and noise.wins + noise.losses >= fewest
    }
    significant = holm({gate_id: p for gate_id, p in p_values.items() if p > too_coarse}, alpha)
    return {
        gate.id: NoiseVerdict(p_value=p_values.get(gate.id), counts=significant.get(gate.id, True)) for gate in drops
    }


def without_judging(scored: Scored) -> Judgement:
    """Return the means alone: no gates, no rules."""
    groups, metrics = scored.groups, scored.metrics
    return Judgement(means=compare(groups, metrics), noise=noise_of(groups, metrics), gates=[], violations={})
