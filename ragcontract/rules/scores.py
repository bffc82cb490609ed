"""The rules on the value of a metric for one query, and on the mean of several metrics."""

from collections.abc import Iterator
from math import fsum
from typing import Annotated, ClassVar

from msgspec import Meta

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Direction, Metric, Scale
from ragcontract.core.numbers import SAME, as_written, digits_beside, fixed
from ragcontract.core.phrase import FieldPath, Message
from ragcontract.core.rule import RowContext, RowRule, Violation, names_of
from ragcontract.core.run import RunRow

MetricName = Annotated[
    str,
    Meta(min_length=1, max_length=bounds.KEY, title=f"a metric by its key, text of 1 to {bounds.KEY} characters"),
]
Fraction = Annotated[
    float, Meta(gt=SAME, le=1, title="a fraction above 0, which every value reaches, and at most 1, as 0.7")
]


class ScoreRule(RowRule, frozen=True, kw_only=True, gc=False):
    """A rule on metrics of the row; ``better`` is the direction that they must have, None for any."""

    needs_metrics: ClassVar[bool] = True
    better: ClassVar[Direction | None] = None

    @property
    def read(self) -> tuple[str, ...]:
        """The keys of the metrics that the rule reads."""
        raise NotImplementedError

    def path_of(self, number: int) -> FieldPath:  # noqa: ARG002 (used by subclasses)
        """Return the path within the rule, as ``("metric",)``, of a metric that it reads; empty if none names it."""
        return ()

    def faults_with(self, metric: Metric) -> Iterator[tuple[FieldPath, str]]:  # noqa: ARG002 (used by subclasses)
        """Yield why a metric is unfit for the rule, as a path within the rule and a message."""
        yield from ()

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:  # noqa: ARG002 (the seam's)
        """Return the metrics that the row has no value of."""
        known = [key for key in self.read if key in context.settings.metrics]  # unknown ones are faults of the contract
        absent = [key for key in known if key not in context.metrics]
        rest = f", which {names_of(type(self))[0]} needs"
        return Message.quoting(f"has no {' and no '.join(absent)}", rest) if absent else None


class OneScoreRule(ScoreRule, frozen=True, kw_only=True, gc=False):
    """A rule on one metric, which is at least its ``limit`` if higher is better, and at most that otherwise."""

    limit_field: ClassVar[str] = "value"  # the field that has the limit

    @property
    def limit(self) -> float:
        """The number that the value is compared with, in the metric's own unit."""
        return float(getattr(self, self.limit_field))

    def faults_with(self, metric: Metric) -> Iterator[tuple[FieldPath, str]]:
        """Yield that the other direction is better, or that the limit is off the metric's scale or at its worst end."""
        scale = f"{metric.scale.low:g} to {metric.scale.high:g}, the scale of {metric.key}"
        if self.better != metric.better:
            other = names_of(MaxScore if metric.better == "lower" else MinScore)[0]
            yield self.path_of(0), f"of {metric.key}, {metric.better} is better: write {other}"
        elif not metric.scale.low <= self.limit <= metric.scale.high:
            yield (self.limit_field,), f"expected a number from {scale}, found {self.limit:g}"
        elif abs(self.limit - metric.worst) <= SAME:
            beyond, holds = ("above", "at least") if self.better == "higher" else ("below", "at most")
            never = f"every value from {scale}, is {holds} that, so the rule can never be broken"
            yield (self.limit_field,), f"expected a number {beyond} {metric.worst:g}, found {self.limit:g}: {never}"

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002 (the seam's)
        """Yield a violation if the value is beyond its limit, unrounded and with a tolerance of 1e-9."""
        (key,) = self.read
        least, value = self.better == "higher", context.metrics.get(key)
        if value is None:  # only for a query without a row, which is evaluated as if the row were empty
            measured = "no value"
        elif (self.limit - value if least else value - self.limit) > SAME:
            measured = fixed(value, digits_beside(value, self.limit))
        else:
            return
        expected = f"{key} of {'at least' if least else 'at most'} {as_written(self.limit)}"
        yield self.broken((expected,), (measured,), metrics=self.read)


class NamedScoreRule(OneScoreRule, frozen=True, kw_only=True, gc=False):
    """A rule that names its metric."""

    metric: MetricName
    value: float

    @property
    def read(self) -> tuple[str, ...]:
        return (self.metric,)

    def path_of(self, number: int) -> FieldPath:  # noqa: ARG002 (there is one)
        return ("metric",)


class MinScore(NamedScoreRule, frozen=True, kw_only=True, gc=False, tag="min_score"):
    """A metric of which higher is better has at least this value, in the metric's own unit."""

    better: ClassVar[Direction | None] = "higher"


class MaxScore(NamedScoreRule, frozen=True, kw_only=True, gc=False, tag="max_score"):
    """A metric of which lower is better has at most this value, in the metric's own unit."""

    better: ClassVar[Direction | None] = "lower"


class MaxHallucinationRisk(OneScoreRule, frozen=True, kw_only=True, gc=False, tag="max_hallucination_risk"):
    """The metric ``faithfulness`` has at least the ``threshold``: another name of ``min_score``."""

    better: ClassVar[Direction | None] = "higher"
    limit_field: ClassVar[str] = "threshold"
    threshold: Fraction = 0.7

    @property
    def read(self) -> tuple[str, ...]:
        return ("faithfulness",)

    def faults_with(self, metric: Metric) -> Iterator[tuple[FieldPath, str]]:
        """Yield what is wrong with the threshold. It is a fraction, so the metric must have the scale from 0 to 1."""
        if metric.better == self.better and metric.scale != Scale():
            scale = f"{metric.scale.low:g} to {metric.scale.high:g}"
            yield (self.limit_field,), f"is a fraction, but the scale of {metric.key} is {scale}: write min_score"
        else:
            yield from super().faults_with(metric)


class CompositeMinimum(ScoreRule, frozen=True, kw_only=True, gc=False, tag="composite"):
    """The mean of several metrics, each mapped from its scale to 0…1 with 1 for the best value, reaches a minimum.

    It has no part in a query to which none of the metrics applies. A query that has only some of them cannot be judged.
    """

    minimum: Fraction
    metrics: Annotated[tuple[MetricName, ...], Meta(min_length=1)]

    @property
    def read(self) -> tuple[str, ...]:
        return self.metrics

    def path_of(self, number: int) -> FieldPath:
        return ("metrics", number)

    def lacking(self, query: GoldenQuery, row: RunRow, context: RowContext) -> str | None:
        """Return the metrics that the row has no value of; None if it has none at all."""
        if not any(key in context.metrics for key in self.metrics):
            return None
        return super().lacking(query, row, context)

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002 (the seam's)
        known = [key for key in self.metrics if key in context.metrics]
        if not known:
            return
        mean = fsum(quality(context.settings.metrics[key], context.metrics[key]) for key in known) / len(known)
        if self.minimum - mean > SAME:
            digits = digits_beside(mean, self.minimum)
            values = ", ".join(f"{context.settings.metrics[key].label} {context.metrics[key]:.4g}" for key in known)
            expected = f"a mean of {' and '.join(known)} of at least {as_written(self.minimum)}"
            yield self.broken((expected,), (f"{fixed(mean, digits)} ({values})",), metrics=tuple(known))


def quality(metric: Metric, value: float) -> float:
    """Return a value from 0 (the worst of the metric's scale) to 1 (the best)."""
    low, high = metric.scale.low, metric.scale.high
    share = (value - low) / (high - low)
    return share if metric.better == "higher" else 1 - share
