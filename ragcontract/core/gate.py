"""The gate interface: limits on quantities.

Each metric and each latency percentile is a quantity, with a label, a unit and a direction. A limit key is a key in
``ragcontract.yml`` that limits a quantity. A gate is a limit key with a value.
"""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import MOST_FOR_TABLES, SAME, as_written, decimals, digits_beside, milliseconds, percent
from ragcontract.core.phrase import Place
from ragcontract.core.run import Confusion, Latency

Fraction = Annotated[float, Meta(ge=0, le=1, title="a fraction from 0 to 1, as 0.10")]
_PERCENTAGE_TO_100 = r"^(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?) ?%$(?!\n)"
Percentage = Annotated[str, Meta(pattern=_PERCENTAGE_TO_100, title='a percentage of the baseline, as "10%"')]
_PERCENTAGE = rf"^[0-9]{{1,{bounds.PERCENT_DIGITS}}}(\.[0-9]{{1,{bounds.PERCENT_DECIMALS}}})? ?%$(?!\n)"
AnyPercentage = Annotated[str, Meta(pattern=_PERCENTAGE, title='a percentage of the baseline, as "20%"')]
Milliseconds = Annotated[
    float, Meta(gt=0, le=bounds.MILLISECONDS, title="a number of milliseconds above 0, at most a billion")
]
MoreMilliseconds = Annotated[
    float, Meta(ge=0, le=bounds.MILLISECONDS, title="a number of milliseconds of at least 0, at most a billion")
]

LevelPercentage = Annotated[str, Meta(pattern=_PERCENTAGE_TO_100, title='a percentage of the level, as "5%"')]

Kind = Literal["minimum", "maximum", "drop", "rise", "level_drop", "level_rise"]
COMPARING: frozenset[Kind] = frozenset({"drop", "rise"})  # the limits on changes from the baseline
OF_LEVEL: frozenset[Kind] = frozenset({"level_drop", "level_rise"})  # those from the best level of recorded runs
FALLING: frozenset[Kind] = frozenset({"drop", "level_drop"})  # what they limit is a fall
NOUNS: dict[Kind, str] = {
    "minimum": "minimum",
    "maximum": "maximum",
    "drop": "drop",
    "rise": "increase",
    "level_drop": "drop below the best level",
    "level_rise": "rise above the best level",
}
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

    The value of a metric is its mean over all queries, or over those with a tag.
    """

    key: str
    label: str
    unit: Unit = "points"
    better: Direction = "higher"
    read: Callable[[Measured], float | None] | None = None  # reads the value of a quantity that is not a metric
    of_rules: bool = False  # the value is the share of the queries whose rules hold
    of_change: bool = False  # the value itself compares the run with a baseline
    of_class: str | None = None  # the label whose measure it is; it is read from ``labels``
    of_labels: Callable[[Confusion], float | None] | None = None  # reads the measure of that label
    zero: float = 0.0  # the lowest value of the scale, from which limits in percent count
    absent: str = ""  # the message for a run without a value, which says how to fix that
    absent_before: str = ""  # the same for a baseline


class LimitKey(Struct, frozen=True, kw_only=True):
    """A configuration key that limits a quantity."""

    section: str
    name: str
    kind: Kind
    quantity: Quantity
    type: Any  # of the limit's value
    by_tag: bool = True  # the key may also appear under ``tags``
    by_class: Callable[[str], Quantity] | None = None  # the key has limits by label; returns what a label's is on


class Gate(Struct, frozen=True, kw_only=True):
    """A limit that the configuration sets at ``location``."""

    id: str
    location: Place
    quantity: Quantity
    kind: Kind
    limit: float
    # The limit is a fraction of the baseline's value, or of the level, counted from the lowest value of the scale.
    relative: bool = False
    tag: str | None = None  # if not None, only the queries with this tag count
    tier: str | None = None  # if not None, only the queries of this tier count

    @property
    def compares(self) -> bool:
        return self.kind in COMPARING

    @property
    def needs_baseline(self) -> bool:
        """Whether the gate needs a baseline, because it or its quantity compares."""
        return self.compares or self.quantity.of_change


def written(limit: float, unit: Unit = "points", *, relative: bool = False) -> str:
    """Return a limit as it was written, with its unit: ``0.10``, ``179.5 ms``, ``12.5%``."""
    if relative:
        return percent(limit, decimals(limit * 100))
    return milliseconds(limit, decimals(limit)) if unit == "ms" else as_written(limit)


def allowed_change(limit: float, before: float, scale: Scale, *, relative: bool) -> float:
    """Return how much a metric may change from the value ``before``."""
    return limit * abs(before - scale.zero) if relative else limit


def digits_beside_limit(amount: float, limit: float) -> int:
    """Return the decimals that show on which side of an absolute limit an amount is, and the limit as it was written.

    They are at most as many as tables have, unless the amount needs more.
    """
    return max(digits_beside(amount, limit), min(decimals(limit), MOST_FOR_TABLES))


def every_run_keeps(kind: Kind, limit: float, scale: Scale, *, relative: bool = False) -> bool:
    """Return whether a limit can never fail, because the worst value or the largest change is within it."""
    if kind == "minimum":
        return limit - scale.low <= SAME
    if kind == "maximum":
        return scale.high - limit <= SAME
    if relative:
        return kind in FALLING and limit >= 1 - SAME
    return limit >= scale.high - scale.low - SAME
