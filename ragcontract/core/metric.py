"""The seam for metrics: a family computes the metrics that one look at a row gives.

Everything else (configuration, gates, tags, suggestions, reports) sees single metrics. Adding a family is a module with
a class and a provider, and a line in ``ragcontract.registry``.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.run import RunRow
from ragcontract.core.scores import Values

Direction = Literal["higher", "lower"]
RankBy = Literal["results", "documents"]
Gain = Literal["linear", "exponential"]


class Scale(Struct, frozen=True):
    """The least and the greatest value that a metric can have."""

    low: float = 0.0
    high: float = 1.0


class Missing(Struct, frozen=True):
    """A value that should be in the row and is not; ``why`` completes "query 'q1' …", as ``has no response``."""

    why: str


class Metric(Struct, frozen=True, kw_only=True):
    """A number for each query, whose weighted mean can be limited.

    ``key`` names it in files (``recall_at_5``), ``label`` for people (``Recall@5``). ``aliases`` are further names in
    the configuration; the first one is what suggestions and drop limits call it. ``k`` is its cut-off, if it has one.
    ``suggested`` says whether ``rag-contract suggest`` proposes limits for it. A change since a baseline is refused
    where the baseline's ``fingerprint`` differs: something else computed its numbers.
    """

    key: str
    label: str
    better: Direction = "higher"
    scale: Scale = Scale()
    aliases: tuple[str, ...] = ()
    k: int | None = None
    suggested: bool = True
    fingerprint: str = ""

    @property
    def worst(self) -> float:
        """The value of a query for which nothing was done."""
        return self.scale.low if self.better == "higher" else self.scale.high


class Family(Protocol):
    """Metrics that are computed together, and that the same queries have.

    ``needs`` names the fields of the run row that it reads; others may not be decoded. Where ``from_ids`` is true, a
    stored baseline's document ids are enough to compute the metrics again; otherwise its stored numbers are compared.
    """

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics, in the order of the values."""

    @property
    def needs(self) -> frozenset[str]:
        """Fields of the run row, as ``response`` or ``results.text``."""

    @property
    def from_ids(self) -> bool:
        """Whether document ids are all it takes."""

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return a query's values, none where it has no part in these metrics."""


class MetricSettings(Struct, frozen=True, kw_only=True):
    """What the configuration says about metrics: the cut-offs, largest first, and how ranks and grades count."""

    cutoffs: tuple[int, ...]
    rank_by: RankBy = "results"
    gain: Gain = "linear"


Provider: TypeAlias = Callable[[MetricSettings], Iterable[Family]]
