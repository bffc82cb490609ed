"""A note under the verdict where labels may be missing: what nobody has judged is not relevant, or left out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.numbers import fixed, percent
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.text import shorten, visible
from ragcontract.judging.gate_report import COMPARING, GateReport
from ragcontract.reports.report import MetricReport

ALL = 0.005  # the share of unjudged documents up to which all are judged, when rounded to percent
BEST = 2  # metrics whose best values the note has
DIGITS = 2
LIMITED = {"fail", "unproven", "too_few"}
LIMIT = "minimums.judged_at_k"
COMMAND = "rag-contract unjudged"


def label_notes(
    metrics: Mapping[str, MetricReport], gates: Sequence[GateReport], k: int, *, skips: bool = False
) -> Iterator[Phrase]:
    """Yield the note, if a limit on the drop of a ranking metric does not hold for sure and not all is judged.

    ``k`` is the largest cut-off. If the configuration ``skips`` what nobody has judged, limits on ranking metrics say
    nothing of it, so there is a note as well, unless something limits how much that may be.
    """
    judged = metrics.get(f"judged_at_{k}")
    if judged is None or judged.current is None or judged.current >= 1 - ALL:
        return
    share = f"{percent(1 - judged.current, 0)} of the top {k} are documents that nobody has judged"
    if dropped := [metrics[gate.metric] for gate in gates if _may_be_labels(gate, metrics)]:
        start = f"{share}; the drop may be missing labels{_at_most(dropped)}: "
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


def _may_be_labels(gate: GateReport, metrics: Mapping[str, MetricReport]) -> bool:
    """Return whether a limit on a drop is about a metric that labels could raise, and does not hold for sure."""
    metric = metrics.get(gate.metric)
    undecided = gate.status in LIMITED or (gate.status == "pass" and gate.certainty == "undecided")
    return gate.kind in COMPARING and undecided and metric is not None and metric.if_relevant is not UNSET


def _at_most(metrics: Sequence[MetricReport]) -> str:
    """Return what the metrics would be at most, as `` (MRR@5 is 0.62, at most 0.81 if they were relevant)``."""
    named = list(dict.fromkeys((metric.label, metric.current, metric.if_relevant) for metric in metrics))[:BEST]
    said = [
        f"{shorten(visible(label), bounds.NAME)} is {fixed(now, DIGITS)}, at most {fixed(best or None, DIGITS)}"
        for label, now, best in named
    ]
    return f" ({'; '.join(said)} if they were relevant)"
