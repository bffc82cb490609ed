"""Warns of numbers of a stored baseline that were computed in another way than those beside them. Pure."""

from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.core.text import shorten, visible
from ragcontract.judging.evaluated import Evaluation


def incomparable_metrics(evaluation: Evaluation) -> Iterator[str]:
    """Yield a warning for each metric that reports show beside one computed in another way, as by another judge.

    A limit on its change cannot be judged, which is a problem that is reported for the limit.
    """
    contract = evaluation.contract
    limited = {gate.quantity.key for gate in contract.gates if gate.compares}
    for side in (evaluation.run, evaluation.baseline):
        if side is None or side.stored is None:
            continue
        for metric in contract.metrics:
            if metric.key in side.incomparable - limited and side.stored.metrics.get(metric.key) is not None:
                before = side.stored.fingerprints.get(metric.key, "")
                ways = [
                    shorten(visible(way), bounds.NAME) if way else "the defaults"
                    for way in (before, metric.fingerprint)
                ]
                how = f"was computed in another way ({ways[0]}, and now {ways[1]})"
                yield f"{side.name}: {metric.label} {how}, so a change of it says nothing"
