"""The result of a gate, as it stands in report.json."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from ragcontract.core.gate import Kind, Unit

GateKind = Literal[
    "drop",
    "relative_drop",
    "rise",
    "relative_rise",
    "minimum",
    "maximum",
    "latency",
    "latency_increase",
    "relative_latency_increase",
]
GateStatus = Literal["pass", "fail", "unproven", "too_few", "waived", "skipped"]
Status = Literal["pass", "fail", "unproven", "too_few", "waived", "skipped", "none"]
WORST_FIRST: tuple[Status, ...] = ("fail", "too_few", "unproven", "waived", "skipped", "pass")
# Over its limit without failing the check, because the change is not shown to be real.
NOT_PROVEN: frozenset[GateStatus] = frozenset({"unproven", "too_few"})
NOT_HELD: frozenset[GateStatus] = NOT_PROVEN | {"fail"}
Certainty = Literal["within", "beyond", "undecided"]
# The names of limits in report.json: (absolute, relative).
NAMES: dict[tuple[Unit, Kind], tuple[GateKind, GateKind]] = {
    ("points", "minimum"): ("minimum", "minimum"),
    ("points", "maximum"): ("maximum", "maximum"),
    ("points", "drop"): ("drop", "relative_drop"),
    ("points", "rise"): ("rise", "relative_rise"),
    ("ms", "maximum"): ("latency", "latency"),
    ("ms", "rise"): ("latency_increase", "relative_latency_increase"),
}
COMPARING: frozenset[GateKind] = frozenset(
    name for (_, kind), both in NAMES.items() if kind in {"drop", "rise"} for name in both
)


class GateReport(Struct, frozen=True, kw_only=True):
    """The result of one gate.

    ``limit`` and ``observed`` are in points of the metric (for most metrics from 0 to 1), or in milliseconds for
    ``latency`` and ``latency_increase``. For relative limits they are fractions of the baseline's value, counted from
    the lowest value of the scale: 10 % is 0.1.
    The observed drop or increase is negative if the metric got better; a relative one can exceed 1. For a limit on
    latency, ``metric`` is a name such as ``latency_p95_ms``, which is not among the report's metrics.

    ``location`` is where the limit is defined, for example ``ragcontract.yml:4``. ``tag`` or ``tier`` is that whose
    queries it applies to, null or left out for all queries. A limit on a tier is ``skipped`` if a tier that gates it
    missed its own: ``skipped`` says which. ``label`` and ``unit`` are those of the limited quantity, ``now`` and
    ``before`` its values over these queries.

    The other fields are of limits on the change of a metric, and left out for all others. ``bounds`` are the one-sided
    95 % bounds of the change, in the same unit as ``observed``: it is at least the first and at most the second.
    ``certainty`` says on which side of the limit it is: ``within`` if it is at most the limit for sure, ``beyond`` if
    it is more than the limit for sure, otherwise ``undecided``. ``p_value`` is that of a change for the worse, adjusted
    over all such limits, and ``alpha`` the threshold that it must not exceed to be significant. With ``mode:
    significant``, a change over its limit is ``unproven`` if it is not significant, and ``too_few`` if so few queries
    changed that no change of them could be; neither fails the check. ``needs`` is how many queries it takes to decide
    about the limit, if that is more than there are.
    """

    id: str
    location: str
    metric: str
    kind: GateKind
    limit: float
    observed: float
    status: GateStatus
    message: str
    tag: str | None = None
    tier: str | UnsetType = UNSET
    waived: str | None = None
    skipped: str | UnsetType = UNSET
    p_value: float | None = None
    label: str = ""
    unit: Unit = "points"
    now: float | None = None
    before: float | None = None
    bounds: tuple[float, float] | UnsetType = UNSET
    certainty: Certainty | UnsetType = UNSET
    alpha: float | UnsetType = UNSET
    needs: int | UnsetType = UNSET

    @property
    def of(self) -> str | None:
        """The tag or the tier whose queries the gate is about; None for all queries."""
        return self.tier or self.tag


def worst(gates: Sequence[GateReport]) -> Status:
    """Return the status of a metric with these gates: the worst of theirs, or ``none`` without gates."""
    statuses: list[Status] = [gate.status for gate in gates]
    return next((status for status in WORST_FIRST if status in statuses), "none")
