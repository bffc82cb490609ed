"""The seam for gates: a limit on a quantity, which has a label, a unit and a direction.

Each metric is a quantity, and so is each latency percentile. A limit key is one key of ``ragcontract.yml`` that limits
a quantity; a gate is a limit key with a value.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct

from ragcontract.core.ids import MAX_RANK
from ragcontract.core.metric import Direction
from ragcontract.core.run import Latency

Fraction = Annotated[float, Meta(ge=0, le=1, title="a fraction from 0 to 1, as 0.10")]
Percentage = Annotated[
    str, Meta(pattern=r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?) ?%$(?!\n)", title='a percentage of the baseline, as "10%"')
]
AnyPercentage = Annotated[
    str, Meta(pattern=r"^[0-9]{1,5}(\.[0-9]{1,9})? ?%$(?!\n)", title='a percentage of the baseline, as "20%"')
]
Milliseconds = Annotated[float, Meta(gt=0, le=MAX_RANK, title="a number of milliseconds above 0, at most a billion")]
MoreMilliseconds = Annotated[
    float, Meta(ge=0, le=MAX_RANK, title="a number of milliseconds of at least 0, at most a billion")
]

Kind = Literal["minimum", "maximum", "drop", "rise"]
Unit = Literal["points", "ms"]


class Measured(Protocol):
    """What a side was measured to be, apart from its metrics."""

    @property
    def latency(self) -> Latency | None:
        """The latencies, None where no row has one."""


class Quantity(Struct, frozen=True, kw_only=True):
    """What can be limited.

    A metric's value is its mean, of all queries or of those with a tag. Any other quantity is ``read`` from a side;
    ``absent`` and ``absent_before`` then say why the run or the baseline has none, and what to do about it.
    """

    key: str
    label: str
    unit: Unit = "points"
    better: Direction = "higher"
    read: Callable[[Measured], float | None] | None = None
    absent: str = ""
    absent_before: str = ""


class LimitKey(Struct, frozen=True, kw_only=True):
    """A key of the configuration that limits a quantity: its section and name, what it limits, the type of its value.

    A key that is ``by_tag`` may also stand under ``tags``.
    """

    section: str
    name: str
    kind: Kind
    quantity: Quantity
    type: Any
    by_tag: bool = True


class Gate(Struct, frozen=True, kw_only=True):
    """A limit that the configuration asks for, in ``location``; a ``relative`` one is a part of the baseline's value.

    ``tag`` is the tag whose queries it is about, None for all.
    """

    id: str
    location: str
    quantity: Quantity
    kind: Kind
    limit: float
    relative: bool = False
    tag: str | None = None

    @property
    def compares(self) -> bool:
        """Whether it needs a baseline."""
        return self.kind in {"drop", "rise"}
