"""The verdict on everything that was scored: every gate, every rule of every query."""

from collections.abc import Sequence

from msgspec import Struct

from ragcontract.errors import InputError
from ragcontract.judging import gates as limits
from ragcontract.judging.rules import broken_rules
from ragcontract.model import GateReport, Verdict, Violation
from ragcontract.scoring.aggregate import Comparison
from ragcontract.scoring.scored import Scored, compare
from ragcontract.text import encodable


class Judgement(Struct, frozen=True, kw_only=True):
    """The means by metric key, the gates that were asked for, and the broken rules by query id."""

    means: dict[str, Comparison]
    gates: list[GateReport]
    violations: dict[str, list[Violation]]

    @property
    def verdict(self) -> Verdict:
        """Fail if anything is broken."""
        return "fail" if self.violations or any(gate.status == "fail" for gate in self.gates) else "pass"


def judge(scored: Scored, warnings: Sequence[str] = ()) -> Judgement:
    """Judge; raises :class:`InputError`, with the ``warnings``, where a gate that was asked for cannot be evaluated."""
    compared = compare(scored, scored.golden.queries.values())
    config = scored.config.config
    gates: list[GateReport] = []
    unjudged: list[str] = []
    for gate in limits.gates_of(config.fail_on, config.minimums, scored.metrics):
        place = encodable(f"{scored.config.files[0].path}:{scored.config.lines[gate.id]}")
        observed = limits.observe(gate, compared[gate.metric.key])
        if observed is None:
            unjudged.append(f"{place}: {limits.why_not(gate, has_baseline=scored.baseline is not None)}")
        else:
            gates.append(limits.judge(gate, observed, place))
    if unjudged:
        raise InputError(unjudged, warnings=warnings)
    k = scored.k
    broken = {
        query.id: violations
        for query in scored.golden.queries.values()
        if (violations := broken_rules(query, scored.run.scores[query.id], k, config.per_query))
    }
    return Judgement(means=compared, gates=gates, violations=broken)


def without_judging(scored: Scored) -> Judgement:
    """Return the means alone: no gates, no rules."""
    return Judgement(means=compare(scored, scored.golden.queries.values()), gates=[], violations={})
