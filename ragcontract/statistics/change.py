"""The change of a metric's mean between two runs over the same queries, as tests and bounds need it."""

from collections.abc import Iterable, Mapping
from math import fsum, isfinite

from msgspec import Struct

from ragcontract.core.metric import Direction, Scale
from ragcontract.core.numbers import SAME

UNIT = Scale()


class Weights(Struct, frozen=True):
    """The statistics of the weights of all queries, changed or not: their number and sums of powers."""

    count: int
    total: float
    squares: float
    cubes: float

    @classmethod
    def of(cls, weights: Iterable[tuple[float, int]]) -> "Weights":
        """Compute the sums of weights, each with the number of queries that have it.

        Weights are at most a billion, so their cubes cannot overflow.
        """
        counted = list(weights)
        sums = [fsum(weight**power * count for weight, count in counted) for power in (1, 2, 3)]
        return cls(sum(count for _, count in counted), *sums)


class Change(Struct, frozen=True, kw_only=True):
    """The change of the weighted mean of a metric over the queries that both runs have.

    ``changed`` has the weight and the difference (now minus before) of each query whose value changed, by the query's
    number, which is the same for all metrics. ``weights`` are those of all queries. The change is ``identical`` if no
    value of the metric's family changed either.
    """

    changed: Mapping[int, tuple[float, float]]
    weights: Weights
    better: Direction = "higher"
    scale: Scale = UNIT
    identical: bool = False

    @property
    def sign(self) -> float:
        """What makes a difference positive if it is for the worse."""
        return -1.0 if self.better == "higher" else 1.0

    @property
    def span(self) -> float:
        """The size of the scale; may be infinite."""
        return self.scale.high - self.scale.low

    @property
    def whole(self) -> bool:
        """Whether every changed value moved from one end of the scale to the other."""
        return isfinite(self.span) and all(
            abs(abs(difference) - self.span) <= SAME * self.span for _, difference in self.changed.values()
        )

    @property
    def amount(self) -> float:
        """How far the mean got worse; negative if it got better."""
        return fsum(self.sign * weight * moved for weight, moved in self.changed.values()) / self.weights.total

    @property
    def losses(self) -> int:
        """The number of queries that got worse."""
        return sum(self.sign * difference > 0 for _, difference in self.changed.values())

    @property
    def wins(self) -> int:
        """The number of queries that got better."""
        return len(self.changed) - self.losses

    @property
    def ties(self) -> int:
        """The number of queries whose value is the same."""
        return self.weights.count - len(self.changed)
