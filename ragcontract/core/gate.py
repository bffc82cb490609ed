"""Gate interface: a limit on a quantity that has a label, a unit and a direction.

Each metric and each latency percentile is a quantity. A limit key is a key in ``ragcontract.yml`` that limits a
quantity; a gate is a limit key with a value.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import SAME
from ragcontract.core.run import Confusion, Latency

Fraction = Annotated[float, Meta(ge=0, le=1, title="a fraction from 0 to 1, as 0.10")]
Percentage = Annotated[
    str, Meta(pattern=r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?) ?%$(?!\n)", title='a percentage of the baseline, as "10%"')
]
_PERCENTAGE = rf"^[0-9]{{1,{bounds.PERCENT_DIGITS}}}(\.[0-9]{{1,{bounds.PERCENT_DECIMALS}}})? ?%$(?!\n)"
AnyPercentage = Annotated[str, Meta(pattern=_PERCENTAGE, title='a percentage of the baseline, as "20%"')]
Milliseconds = Annotated[
    float, Meta(gt=0, le=bounds.MILLISECONDS, title="a number of milliseconds above 0, at most a billion")
]
MoreMilliseconds = Annotated[
    float, Meta(ge=0, le=bounds.MILLISECONDS, title="a number of milliseconds of at least 0, at most a billion")
]

Kind = Literal["minimum", "maximum", "drop", "rise"]
Unit = Literal["points", "ms"]
FailMode = Literal["strict", "significant", "noninferiority"]


class Measured(Protocol):
    """Measurements of a run or a baseline other than its metrics."""

    @property
    def latency(self) -> Latency | None:
        """The latencies, or None if no row has one."""

    @property
    def labels(self) -> Confusion:
        """The rows by expected and actual label; empty if no label is expected."""


class Quantity(Struct, frozen=True, kw_only=True):
    """Something that can be limited.

    The value of a metric is its mean over all queries, or over those with a tag. Any other quantity is read from a side
    by calling ``read``; with ``of_rules``, it is the share of the queries whose rules hold. With ``of_change``, the
    value itself compares the run with a baseline. Limits in percent count from ``zero``, the lowest value of its scale.
    ``absent`` and ``absent_before`` are the messages for a run or a baseline without a value, and say how to fix that.
    """

    key: str
    label: str
    unit: Unit = "points"
    better: Direction = "higher"
    read: Callable[[Measured], float | None] | None = None
    of_rules: bool = False
    of_change: bool = False
    zero: float = 0.0
    absent: str = ""
    absent_before: str = ""


class LimitKey(Struct, frozen=True, kw_only=True):
    """A configuration key that limits a quantity: its section and name, the quantity, and the type of its value.

    A key with ``by_tag`` may also appear under ``tags``.
    """

    section: str
    name: str
    kind: Kind
    quantity: Quantity
    type: Any
    by_tag: bool = True


class Gate(Struct, frozen=True, kw_only=True):
    """A limit set in the configuration at ``location``; a ``relative`` limit is a fraction of the baseline value.

    That is counted from the lowest value of its scale.
    ``tag`` or ``tier`` restricts the gate to the queries that have it; None means all queries.
    """

    id: str
    location: str
    quantity: Quantity
    kind: Kind
    limit: float
    relative: bool = False
    tag: str | None = None
    tier: str | None = None

    @property
    def compares(self) -> bool:
        """Whether the gate limits a change."""
        return self.kind in {"drop", "rise"}

    @property
    def needs_baseline(self) -> bool:
        """Whether the gate needs a baseline: it limits a change, or something that itself compares."""
        return self.compares or self.quantity.of_change


def every_run_keeps(kind: Kind, limit: float, scale: Scale, *, relative: bool = False) -> bool:
    """Return whether the worst value, or the largest change, is within a limit, so that it never fails."""
    if kind == "minimum":
        return limit - scale.low <= SAME
    if kind == "maximum":
        return scale.high - limit <= SAME
    if relative:
        return kind == "drop" and limit >= 1 - SAME
    return limit >= scale.high - scale.low - SAME
