"""Warns of limits on changes that take more queries than there are to decide about them. Pure."""

from collections.abc import Iterator, Sequence

from ragcontract.contract.too_few import TooFew, too_few_queries
from ragcontract.core.gate import Gate
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.gate_report import GateReport


def too_few_warnings(evaluation: Evaluation, reports: Sequence[GateReport]) -> Iterator[str]:
    """Yield a warning for each size of limit that its queries cannot carry; ``reports`` are those of all gates."""
    gates = evaluation.contract.gates
    found = [
        TooFew(gate=gate, queries=_shared(gate, evaluation), needs=report.needs)
        for gate, report in zip(gates, reports, strict=True)
        if report.needs
    ]
    for location, message in too_few_queries(found):
        yield f"{location}: {message}"


def _shared(gate: Gate, evaluation: Evaluation) -> int:
    """Return how many queries with the gate's tag have its metric on both sides."""
    family = next(one for one in evaluation.aggregates.families if gate.quantity.key in one.keys)
    column = family.keys.index(gate.quantity.key)
    return sum(
        group.count
        for group in family.of(gate.tag)
        if group.now and group.before and None not in {group.now[column], group.before[column]}
    )
