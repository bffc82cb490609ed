"""What every report for people has in common: the headline and the metric table."""

import math
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ragcontract.core.numbers import (
    SAME,
    count,
    decimals,
    digits_for,
    digits_that_add_up,
    fixed,
    percent,
    signed,
)
from ragcontract.judging.gates import worst
from ragcontract.judging.words import Quote, told
from ragcontract.model import GateReport, MetricReport, Report, Status, TagReport
from ragcontract.reports.rank_changes import cutoff, not_compared


class Row(Struct, frozen=True, kw_only=True):
    """One metric, written out. ``current`` is over all queries; the others over the shared ones.

    ``tag`` is None for the mean over all queries. ``metric`` has the numbers, None for a latency; ``gates`` are the
    limits on it. ``p_value`` is that of a drop: of a tag's mean, adjusted over all tags.
    """

    label: str
    tag: str | None
    metric: MetricReport | None = None
    gates: Sequence[GateReport] = ()
    p_value: float | None = None
    baseline: str
    current: str
    current_shared: str
    change: str
    limits: str
    status: Status

    @property
    def compared(self) -> bool:
        """Whether there is a value to compare with."""
        return self.baseline != "-"


def rows(report: Report) -> Iterator[Row]:
    """Write the metrics, each with as many decimals as keep a broken limit and a real change visible.

    First those over all queries, then those of tags that have a limit, the worst first.
    """
    largest = at_largest_k(report)
    for key, metric in report.metrics.items():
        gates = [gate for gate in report.gates if gate.metric == key and gate.tag is None]
        if gates or key in largest:  # report.json has the other cut-offs
            yield _row(metric, gates, None, metric.noise.p_value if metric.noise else None)
    tagged: dict[tuple[str, str], list[GateReport]] = {}
    for gate in sorted(report.gates, key=lambda gate: (gate.status != "fail", _room(gate))):
        if gate.tag is not None:
            tagged.setdefault((gate.tag, gate.metric), []).append(gate)
    for (tag, key), gates in tagged.items():
        yield _row(_metric_of(tag, key, gates, report), gates, tag, report.tags[tag].p_values.get(key))


def at_largest_k(report: Report) -> dict[str, MetricReport]:
    """Return the metrics at the largest cut-off."""
    k = max(report.k)
    return {key: metric for key, metric in report.metrics.items() if cutoff(key) == k}


def tags_worst_first(report: Report) -> list[tuple[str, TagReport]]:
    """Order tags by the worst change of any metric at the largest cut-off; what changed alike, by the first one now.

    A tag that has no value, as none of its queries is answerable, comes last of those.
    """
    keys = list(at_largest_k(report))

    def location(item: tuple[str, TagReport]) -> tuple[float, float]:
        changes = tag_changes(item[1])
        worst_change = min((changes[key] for key in keys if key in changes), default=0.0)
        now = item[1].metrics.get(keys[0])
        return 0.0 if abs(worst_change) <= SAME else worst_change, math.inf if now is None else now

    return sorted(report.tags.items(), key=location)


def tag_changes(tag: TagReport) -> dict[str, float]:
    """Return by how much each metric of a tag changed, where both sides have it."""
    now, before = tag.metrics_shared or {}, tag.baseline_metrics or {}
    return {
        key: value - old for key, value in now.items() if value is not None and (old := before.get(key)) is not None
    }


def _room(gate: GateReport) -> float:
    """Return how far a gate is from its limit, negative where it is beyond it."""
    return gate.observed - gate.limit if gate.kind == "minimum" else gate.limit - gate.observed


def _metric_of(tag: str, key: str, gates: list[GateReport], report: Report) -> MetricReport:
    found = report.tags[tag]
    shared, before = (found.metrics_shared or {}).get(key), (found.baseline_metrics or {}).get(key)
    return MetricReport(
        label=report.metrics[key].label,
        current=found.metrics[key],
        current_shared=shared,
        baseline=before,
        delta=None if shared is None or before is None else shared - before,
        status=worst(gates),
    )


def _row(metric: MetricReport, gates: list[GateReport], tag: str | None, p_value: float | None) -> Row:
    digits = _digits(metric, gates)
    return Row(
        label=metric.label,
        tag=tag,
        metric=metric,
        gates=gates,
        p_value=p_value,
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
    shared = ", ".join(f"{row.label} {row.current_shared}" for row in rows(report) if row.tag is None)
    end = f"; the run's means over those: {shared}" if differs else ""
    return (
        f"Changes are taken over the {count(baseline.shared, 'query')} that both sides have ({', '.join(apart)}){end}."
    )


def headline(report: Report, quote: Quote = str) -> str:
    """Say in one line what the verdict rests on; ``quote`` is for names."""
    broken_gates = [gate for gate in report.gates if gate.status == "fail"]
    broken = sum(query.status == "fail" for query in report.queries)
    queries = count(report.inputs.golden.queries, "query")
    if report.verdict == "pass":
        gates = f" and {count(len(report.gates), 'gate')}" if report.gates else "; no gates are set"
        return f"nothing broken in {queries}{gates}{tolerated_words(report)}"
    reasons = []
    if broken_gates:
        more = f" (and {count(len(broken_gates) - 1, 'more gate')} broken)" if len(broken_gates) > 1 else ""
        reasons.append(told(broken_gates[0], quote) + more)
    if broken:
        reasons.append(f"{broken:,} of {queries} broken")
    return "; ".join(reasons) + tolerated_words(report)


def tolerated_words(report: Report) -> str:
    """Count what is broken and does not fail: waived, or only to be warned of."""
    statuses = [query.status for query in report.queries]
    waived = statuses.count("waived") + sum(gate.status == "waived" for gate in report.gates)
    parts = [f"{size:,} {word}" for size, word in ((waived, "waived"), (statuses.count("warn"), "to warn")) if size]
    return f" ({', '.join(parts)})" if parts else ""
