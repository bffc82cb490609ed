"""A note under the verdict where a drop may be missing labels: what nobody has judged counts as not relevant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.numbers import SAME, fixed, percent
from ragcontract.core.phrase import Name, Phrase
from ragcontract.core.text import shorten, visible
from ragcontract.judging.gate_report import COMPARING, NOT_HELD, GateReport
from ragcontract.reports.report import MetricReport

ALL = 0.005  # the share of unjudged documents up to which all are judged, when rounded to percent
BEST = 2  # metrics whose best values the note has
DIGITS = 2
COMMAND = "rag-contract unjudged"


def label_notes(metrics: Mapping[str, MetricReport], gates: Iterable[GateReport], k: int) -> Iterator[Phrase]:
    """Yield the note, if a limit on the drop of a ranking metric does not hold for sure and not all is judged.

    ``k`` is the largest cut-off.
    """
    judged = metrics.get(f"judged_at_{k}")
    open_gates = [gate for gate in gates if _may_be_labels(gate, metrics)]
    dropped = [metrics[gate.metric] for gate in open_gates]
    if judged is None or judged.current is None or judged.current >= 1 - ALL or not dropped:
        return
    start = f"{percent(1 - judged.current, 0)} of the top {k} are documents that nobody has judged; "
    fell = any(gate.observed > SAME for gate in open_gates)  # mode: noninferiority may fail without a drop
    start += "the drop may be missing labels" if fell else "labels may be missing"
    yield (f"{start}{_at_most(dropped)}: ", Name(COMMAND), " lists what to judge first")


def _may_be_labels(gate: GateReport, metrics: Mapping[str, MetricReport]) -> bool:
    """Return whether a limit on a drop is about a metric that labels could raise, and does not hold for sure.

    A limit that holds is only worth a note if the metric fell.
    """
    metric = metrics.get(gate.metric)
    fell = gate.observed > SAME
    undecided = gate.status in NOT_HELD or (fell and gate.status == "pass" and gate.certainty == "undecided")
    return gate.kind in COMPARING and undecided and metric is not None and metric.if_relevant is not UNSET


def _at_most(metrics: Sequence[MetricReport]) -> str:
    """Return what the metrics would be at most, as `` (MRR@5 is 0.62, at most 0.81 if they were relevant)``."""
    named = list(dict.fromkeys((metric.label, metric.current, metric.if_relevant) for metric in metrics))[:BEST]
    said = [
        f"{shorten(visible(label), bounds.NAME)} is {fixed(now, DIGITS)}, at most {fixed(best or None, DIGITS)}"
        for label, now, best in named
    ]
    return f" ({'; '.join(said)} if they were relevant)"
