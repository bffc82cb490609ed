"""Metric interface: a family computes several metrics of a row together.

All other code (configuration, gates, tags, suggestions, reports) works with single metrics. To add a family, add a
module with a class and a provider, and register the provider in ``ragcontract.registry``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from math import isfinite
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ragcontract.core.answer_settings import AnswerSettings
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.run import RunRow, Values

Direction = Literal["higher", "lower"]
RankBy = Literal["results", "documents"]
Gain = Literal["linear", "exponential"]
Unjudged = Literal["count", "skip"]


class Scale(Struct, frozen=True):
    """The minimum and maximum value of a metric."""

    low: float = 0.0
    high: float = 1.0

    @property
    def zero(self) -> float:
        """Where limits in percent count from: the lowest value; 0 on a scale without one."""
        return self.low if isfinite(self.low) else 0.0

    def fault(self, value: float) -> str | None:
        """Return the message on a score outside the scale, also for NaN; None if it is within."""
        if self.low <= value <= self.high:
            return None
        expected = f"expected a number from {self.low:g} to {self.high:g}, found {repr(value).removesuffix('.0')}"
        return f"{expected}; say its scale under metrics in ragcontract.yml"


class Missing(Struct, frozen=True):
    """A required value is missing from the row; ``why`` completes "query 'q1' …", for example ``has no response``.

    With ``metric``, the key of the only metric of the family, the queries that lack it are reported together, and
    ``missing_scores: zero`` counts its worst value for them.
    """

    why: str
    metric: str = ""


class Invalid(Struct, frozen=True):
    """A ``field`` of the row has a value that cannot be used; ``why`` says what was expected, found, and what to do."""

    field: str
    why: str


class Metric(Struct, frozen=True, kw_only=True):
    """A number per query whose weighted mean can be limited.

    ``key`` is its name in files (``recall_at_5``), ``label`` its display name (``Recall@5``). ``aliases`` are further
    names in the configuration; suggestions and drop limits use the first one. ``k`` is the cut-off, if there is one.
    ``suggested`` says whether ``rag-contract suggest`` proposes limits for it. A ``diagnostic`` metric describes the
    labels or the change, not how good the application is: it has a minimum, but no limit on drops, and no test of them.
    One that ``needs_baseline`` compares a run with it, so that the baseline itself has no value. ``asks`` is what a
    golden query has that the metric applies to, where that is more than the field that switches it on, and ``supply``
    how it gets that. ``references`` are the golden fields that its value depends on beside that field: where one has
    changed, a stored value is not compared. One with a ``task`` is what a judge said at it, and only its mean can be
    limited. If the ``fingerprint`` of the baseline differs, its values were computed in another way and are not
    compared.
    """

    key: str
    label: str
    better: Direction = "higher"
    scale: Scale = Scale()
    aliases: tuple[str, ...] = ()
    k: int | None = None
    suggested: bool = False
    diagnostic: bool = False
    needs_baseline: bool = False
    asks: str = ""
    supply: str = "add it"
    references: tuple[str, ...] = ()
    task: str = ""
    fingerprint: str = ""

    @property
    def worst(self) -> float:
        """The value of a query without any result."""
        return self.scale.low if self.better == "higher" else self.scale.high


class SwitchedOn(Enum):
    """What switches a family on where no golden field does: nothing has to, a baseline, or a limit on its metrics."""

    ALWAYS = "always"
    BY_BASELINE = "by baseline"
    BY_LIMIT = "by limit"


class Family(Protocol):
    """Metrics that are computed together and apply to the same queries.

    ``needs`` names the fields of the run row that the family reads; other fields may not be decoded. If ``from_ids`` is
    true, the metrics are recomputed from the document ids of a stored baseline; otherwise its stored values are used.
    A family is computed if a golden row has the field ``switch``, or if the configuration or a rule names one of its
    metrics.
    """

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics, in the same order as the values."""

    @property
    def needs(self) -> frozenset[str]:
        """Fields of the run row, such as ``response`` or ``results.text``."""

    @property
    def from_ids(self) -> bool:
        """Whether the metrics can be computed from document ids alone."""

    @property
    def switch(self) -> str | SwitchedOn:
        """The golden field that switches the family on, or what does so in its place."""

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing | Invalid:
        """Return the values for a query; an empty tuple if the metrics do not apply to it."""


class Complaint(Struct, frozen=True, kw_only=True):
    """What is wrong with a contract for a family; with ``warns``, the contract can be used nonetheless.

    It is about the golden field at ``location`` (``golden.jsonl:17: reference_contexts[0]``), or about an ``option``,
    named by its path in the configuration: ``("metrics", "context_recall_text", "measure")``.
    """

    message: str
    location: str = ""
    option: tuple[str, ...] = ()
    warns: bool = False


@runtime_checkable
class Demanding(Protocol):
    """A family that cannot be computed for every contract, or that warns of its options."""

    def complaints(self, queries: Iterable[GoldenQuery]) -> Iterable[Complaint]:
        """Return what is wrong with the golden queries and the options."""


class MetricSettings(Struct, frozen=True, kw_only=True):
    """Metric settings from the configuration: the cut-offs, largest first, and how ranks, grades and answers count.

    ``declared`` are the entries of its section ``metrics``, by metric.
    """

    cutoffs: tuple[int, ...]
    rank_by: RankBy = "results"
    gain: Gain = "linear"
    unjudged: Unjudged = "count"
    declared: Mapping[str, Struct] = {}
    answers: AnswerSettings = AnswerSettings()


Provider: TypeAlias = Callable[[MetricSettings], Iterable[Family]]
