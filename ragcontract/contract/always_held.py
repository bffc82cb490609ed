"""Limits that every run keeps to, such as a minimum of 0: ``lint`` notes them. Pure."""

from collections.abc import Iterator

from ragcontract.contract.resolve import Contract
from ragcontract.core.gate import Gate
from ragcontract.core.metric import Scale
from ragcontract.core.numbers import SAME, as_written, percent_as_written


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
    if scale is None:
        return False
    if gate.kind == "minimum":
        return gate.limit - scale.low <= SAME
    if gate.kind == "maximum":
        return scale.high - gate.limit <= SAME
    if gate.relative:
        return gate.kind == "drop" and gate.limit >= 1 - SAME
    return gate.limit >= scale.high - scale.low - SAME
