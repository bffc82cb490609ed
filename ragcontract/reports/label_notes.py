"""A note under the verdict where labels may be missing: what nobody has judged is not relevant, or left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET, UnsetType

from ragcontract.core import bounds
from ragcontract.core.numbers import SAME, fixed, percent
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.text import clipped
from ragcontract.judging.gate_report import COMPARING, NOT_HELD, GateReport
from ragcontract.reports.report import MetricReport

ALL = 0.005  # the share of unjudged documents up to which all are judged, when rounded to percent
BEST = 2  # metrics whose best values the note has
DIGITS = 2
LIMIT = "minimums.judged_at_k"
COMMAND = "rag-contract unjudged"


def label_notes(
    metrics: Mapping[str, MetricReport], gates: Sequence[GateReport], k: int, *, skips: bool = False
) -> Iterator[Phrase]:
    """Yield the note, if a limit on the drop of a ranking metric does not hold for sure and labels could raise it.

    It is about the drops over their limits, else about those that may be. Where relevant documents could not bring any
    of them within its limit, the note is about a part of the drop. ``k`` is the largest cut-off. If the configuration
    ``skips`` what nobody has judged, limits on ranking metrics say nothing of it, so there is a note as well, unless
    something limits how much that may be.
    """
    judged = metrics.get(f"judged_at_{k}")
    if judged is None or judged.current is None or judged.current >= 1 - ALL:
        return
    share = f"{percent(1 - judged.current, 0)} of the top {k} are documents that nobody has judged"
    unsure = [gate for gate in gates if _is_unsure(gate)]
    over = [gate for gate in unsure if gate.status in NOT_HELD]
    if dropped := [gate for gate in over or unsure if _could_rise(metrics.get(gate.metric))]:
        part = "" if any(_is_enough(gate, metrics[gate.metric]) for gate in dropped) else "part of "
        of_all = [metrics[gate.metric] for gate in dropped if gate.tag is None]
        start = f"{share}; {part}the drop may be missing labels{_at_most(of_all)}: "
        yield (start, Name(COMMAND), " lists what to judge first")
    elif skips and _without_limit(metrics, gates):
        left_out = f"{share}, and ranking metrics leave them out (unjudged: skip); limit "
        yield (left_out, Name(LIMIT), ", or judge them: ", Name(COMMAND), " lists them")


def _without_limit(metrics: Mapping[str, MetricReport], gates: Iterable[GateReport]) -> bool:
    """Return whether a ranking metric has a limit that leaves documents out, and nothing limits their share."""
    limited = {gate.metric: metrics[gate.metric] for gate in gates if gate.metric in metrics}
    return not any(key.startswith("judged_at_") for key in limited) and any(
        metric.k is not None and metric.diagnostic is UNSET and metric.if_relevant is UNSET
        for metric in limited.values()
    )


def _is_unsure(gate: GateReport) -> bool:
    """Return whether a gate limits a change, the change is for the worse, and it is not within the limit for sure."""
    undecided = gate.status in NOT_HELD or (gate.status == "pass" and gate.certainty == "undecided")
    return gate.kind in COMPARING and undecided and gate.observed > SAME


def _could_rise(metric: MetricReport | None) -> bool:
    """Return whether labels could raise a metric by what is shown."""
    return metric is not None and _gain(metric) > 0 and fixed(_best(metric), DIGITS) != fixed(metric.current, DIGITS)


def _is_enough(gate: GateReport, metric: MetricReport) -> bool:
    """Return whether the metric is within its limit in the best case; True for a tag, whose best case is unknown."""
    gain = _gain(metric)
    if gate.kind.startswith("relative"):
        gain /= (metric.baseline or 0.0) - metric.scale.low or 1.0
    return gate.tag is not None or gate.observed - gain <= gate.limit + SAME


def _gain(metric: MetricReport) -> float:
    """Return how much higher the metric could be; 0 where everything is judged."""
    return (_best(metric) or 0.0) - (metric.current or 0.0)


def _best(metric: MetricReport) -> float | None:
    return metric.current if isinstance(metric.if_relevant, UnsetType) else metric.if_relevant


def _at_most(metrics: Sequence[MetricReport]) -> str:
    """Return what the metrics would be at most, as `` (MRR@5 is 0.62, at most 0.81 if they were relevant)``."""
    named = list(dict.fromkeys((metric.label, metric.current, _best(metric)) for metric in metrics))[:BEST]
    if not named:
        return ""
    said = [
        f"{clipped(label, bounds.NAME)} is {fixed(now, DIGITS)}, at most {fixed(best, DIGITS)}"
        for label, now, best in named
    ]
    return f" ({'; '.join(said)} if they were relevant)"
