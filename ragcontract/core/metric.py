"""The metric interface: a family computes several metrics of a row together.

All other code (configuration, gates, tags, suggestions, reports) works with single metrics. To add a family, add a
module with a class and a provider, and register the provider in ``ragcontract.registry``.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from math import isfinite
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.config_sections import AnswerSettings, Task
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.phrase import Message, Place, private
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
        """The value from which limits in percent count: the lowest one, or 0 on a scale without one."""
        return self.low if isfinite(self.low) else 0.0

    def fault(self, score: float) -> str | None:
        """Return the message about a score outside the scale, such as NaN; None if the score is within."""
        if self.low <= score <= self.high:
            return None
        shown = f"{repr(score).removesuffix('.0')}; say its scale under metrics in ragcontract.yml"
        return Message.quoting(f"expected a number from {self.low:g} to {self.high:g}, found ", private(shown))


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
    """A number per query whose weighted mean can be limited."""

    key: str  # the name in files: ``recall_at_5``
    label: str  # the display name: ``Recall@5``
    better: Direction = "higher"
    scale: Scale = Scale()
    aliases: tuple[str, ...] = ()  # further names in the configuration; suggestions and drop limits use the first one
    k: int | None = None  # the cut-off, if there is one
    suggested: bool = False  # ``rag-contract suggest`` proposes limits for it
    # It describes the labels or the change, not the quality of the application. It can have a minimum, but its drops
    # have neither a limit nor a test of significance.
    diagnostic: bool = False
    needs_baseline: bool = False  # it compares the run with the baseline, which itself has no value
    asks: str = ""  # what a golden query needs for the metric, if more than the field that switches it on
    supply: str = "add it"  # how a golden query gets that
    # Golden fields that the value depends on beside that field. Where one has changed, a stored value is not compared.
    references: tuple[str, ...] = ()
    task: Task | None = (
        None  # the judge's task whose judgments it is computed from; if any, only its mean can be limited
    )
    fingerprint: str = ""  # a baseline with another one computed its values in another way; they are not compared

    @property
    def worst(self) -> float:
        """The value of a query without any result."""
        return self.scale.low if self.better == "higher" else self.scale.high


def loss(better: Direction, before: float, after: float) -> float:
    """Return how much worse a metric became; negative if it became better."""
    return before - after if better == "higher" else after - before


def at_cutoff(metric: Metric, k: int, largest: int) -> Metric:
    """Return a metric of the top ``k``; at the largest cut-off, it is also named without a number."""
    aliases = (f"{metric.key}_at_k",) if k == largest else ()
    return replace(metric, key=f"{metric.key}_at_{k}", label=f"{metric.label}@{k}", aliases=aliases, k=k)


class SwitchedOn(Enum):
    """What switches on a family that no golden field switches on."""

    ALWAYS = "always"
    BY_BASELINE = "by baseline"
    BY_LIMIT = "by limit"


class Family(Protocol):
    """Metrics that are computed together and apply to the same queries.

    A family is computed if a golden row has the field ``switch``, or if the configuration or a rule names one of its
    metrics.
    """

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics, in the same order as the values."""

    @property
    def needs(self) -> frozenset[str]:
        """The fields of the run row to read, such as ``response`` or ``results.text``; others may not be decoded."""

    @property
    def from_ids(self) -> bool:
        """Whether a stored baseline's metrics are computed again from its document ids. If not, its values are used."""

    @property
    def switch(self) -> str | SwitchedOn:
        """The golden field that switches the family on, or what does so instead."""

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing | Invalid:
        """Return the values for a query; an empty tuple if the metrics do not apply to it."""


class OneMetric(Struct, frozen=True, kw_only=True):
    """A family of one metric, which is a function of a query and a row."""

    metrics: tuple[Metric]
    needs: frozenset[str]
    switch: str | SwitchedOn
    value: Callable[[GoldenQuery, RunRow], float | Missing | Invalid | None]  # None if the metric does not apply
    from_ids: bool = False

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing | Invalid:
        value = self.value(query, row)
        if value is None:
            return ()
        return value if isinstance(value, Missing | Invalid) else (value,)


class Complaint(Struct, frozen=True, kw_only=True):
    """What is wrong with a contract for a family."""

    message: str
    location: Place = ""  # of the golden field that is wrong: ``golden.jsonl:17: reference_contexts[0]``
    option: tuple[str, ...] = ()  # the path of the wrong option: ``("metrics", "context_recall_text", "measure")``
    warns: bool = False  # the contract can be used nonetheless


@runtime_checkable
class Demanding(Protocol):
    """A family that cannot be computed for every contract, or that warns of its options."""

    def complaints(self, queries: Iterable[GoldenQuery]) -> Iterable[Complaint]:
        """Return what is wrong with the golden queries and the options."""


class MetricSettings(Struct, frozen=True, kw_only=True):
    """The settings of metrics in the configuration."""

    cutoffs: tuple[int, ...]  # largest first
    rank_by: RankBy = "results"
    gain: Gain = "linear"
    unjudged: Unjudged = "count"
    declared: Mapping[str, Struct] = {}  # the entries of the section ``metrics``, by metric
    answers: AnswerSettings = AnswerSettings()


Provider: TypeAlias = Callable[[MetricSettings], Iterable[Family]]
