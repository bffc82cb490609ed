"""Limits that every run keeps to, such as a minimum of 0: ``lint`` notes them. Pure."""

from collections.abc import Iterator

from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import Gate, every_run_keeps
from ragcontract.core.metric import Scale
from ragcontract.core.numbers import as_written, percent_as_written


def always_held(contract: Contract) -> Iterator[tuple[str, str]]:
    """Yield the location of each limit that every run keeps to, and a sentence about it."""
    for gate in contract.gates:
        if holds_always(gate, contract):
            limit = percent_as_written(gate.limit) if gate.relative else as_written(gate.limit)
            yield (
                gate.location,
                f"{gate.id}: every run keeps to {limit}, so it never fails; tighten it, or leave it out",
            )


def holds_always(gate: Gate, contract: Contract) -> bool:
    """Return whether the worst value, or the largest change, is within a limit."""
    scales = {metric.key: metric.scale for metric in contract.metrics}
    scale = Scale() if gate.quantity.of_rules else scales.get(gate.quantity.key)
    return scale is not None and every_run_keeps(gate.kind, gate.limit, scale, relative=gate.relative)
