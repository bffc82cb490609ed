"""Quantities that limits may be on besides the means of metrics: pass rates, measures of labels, and latency.

Precision, recall and F1 are measures of a confusion matrix: of one label, or the F1 of all. They count rows, so a query
with several rows counts several times, and weights have no effect. They are those of scikit-learn with
``zero_division=0``.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from math import fsum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.gate import (
    AnyPercentage,
    Fraction,
    LimitKey,
    Measured,
    Milliseconds,
    MoreMilliseconds,
    Percentage,
    Quantity,
)
from ragcontract.core.ids import Tag
from ragcontract.core.run import Confusion, Latency
from ragcontract.core.safe_text import visible


class ClassMeasures(Struct, frozen=True, kw_only=True):
    """How well one class was found, each from 0 to 1; 0 where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


def summed(confusions: Iterable[Confusion]) -> Confusion:
    """Return the sum of confusion matrices."""
    total: Counter[tuple[str, str | None]] = Counter()
    for confusion in confusions:
        total.update(confusion)
    return total


def accuracy(confusion: Confusion) -> float | None:
    """Return the share of rows whose class is the expected one; None without rows."""
    total = sum(confusion.values())
    return sum(n for (expected, actual), n in confusion.items() if expected == actual) / total if total else None


def classes(confusion: Confusion) -> list[str]:
    """Return all classes that were expected or chosen, in order of their names."""
    return sorted({name for pair in confusion for name in pair if name is not None})


def measures(confusion: Confusion, names: Iterable[str]) -> dict[str, ClassMeasures]:
    """Return the measures of each class; F1 is 2 · right / (expected + actual)."""
    expected, actual, right = dict[str, int](), dict[str, int](), dict[str, int]()
    for (wanted, chosen), number in confusion.items():
        expected[wanted] = expected.get(wanted, 0) + number
        if chosen is not None:
            actual[chosen] = actual.get(chosen, 0) + number
            right[chosen] = right.get(chosen, 0) + number * (chosen == wanted)
    return {
        name: ClassMeasures(
            precision=_share(right.get(name, 0), actual.get(name, 0)),
            recall=_share(right.get(name, 0), expected.get(name, 0)),
            f1=_share(2 * right.get(name, 0), expected.get(name, 0) + actual.get(name, 0)),
        )
        for name in names
    }


def macro_f1(confusion: Confusion) -> float | None:
    """Return the mean of the F1 of all classes that were expected or chosen, each counting once; None without rows."""
    of_classes = measures(confusion, classes(confusion))
    return fsum(measure.f1 for measure in of_classes.values()) / len(of_classes) if of_classes else None


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _latency(field: str, label: str, value: Callable[[Latency], float]) -> Quantity:
    def read(side: Measured) -> float | None:
        return None if side.latency is None else value(side.latency)

    return Quantity(
        key=f"latency_{field}",
        label=label,
        unit="ms",
        better="lower",
        read=read,
        absent="no row of the run has latency_ms; export it, or leave the limit out",
        absent_before=(
            "the baseline has no latency; recreate it with `rag-contract baseline --force` from a run with latency_ms"
        ),
    )


P50 = _latency("p50_ms", "p50 latency", lambda latency: latency.p50_ms)
P95 = _latency("p95_ms", "p95 latency", lambda latency: latency.p95_ms)
MAX = _latency("max_ms", "max latency", lambda latency: latency.max_ms)


def _most(name: str, quantity: Quantity, description: str) -> LimitKey:
    kind = Annotated[Milliseconds, Meta(description=description)]
    return LimitKey(section="latency", name=name, kind="maximum", quantity=quantity, type=kind, by_tag=False)


LATENCY = (
    _most("p50_ms", P50, "The most that the median may be."),
    _most("p95_ms", P95, "The most that the 95th percentile may be."),
    LimitKey(
        section="latency",
        name="p95_increase_gt",
        kind="rise",
        quantity=P95,
        type=Annotated[
            MoreMilliseconds | AnyPercentage,
            Meta(description="How far the 95th percentile may exceed the baseline's."),
        ],
        by_tag=False,
    ),
    _most("max_ms", MAX, "The most that the slowest row may have taken."),
)

PASS_RATE = Quantity(key="pass_rate", label="Pass rate", of_rules=True)
TIER_PASS_RATE = Quantity(key="tier_pass_rate", label="Tier pass rate", of_rules=True)
PASS_RATES = (
    LimitKey(
        section="minimums",
        name="pass_rate",
        kind="minimum",
        quantity=PASS_RATE,
        type=Annotated[Fraction, Meta(description="The share of the queries with rules whose rules must hold.")],
    ),
)

LABEL_MACRO_F1 = Quantity(
    key="label_macro_f1",
    label="Label macro F1",
    read=lambda side: macro_f1(side.labels),
    absent="no golden query has expected_label; add it, or leave the limit out",
)
MEASURES: tuple[Literal["precision", "recall", "f1"], ...] = ("precision", "recall", "f1")
_WORDS = {"precision": "precision", "recall": "recall", "f1": "F1"}
_OF_CLASS = {
    "precision": "of the rows with the label, those that expect it",
    "recall": "of the rows that expect the label, those that have it",
    "f1": "the harmonic mean of both",
}
_LIMITS = Meta(
    min_length=1, max_length=bounds.LABEL_LIMITS, title="limits by label, as {cancel: 0.9}"
)  # each becomes a gate


def _of_class(measure: Literal["precision", "recall", "f1"], name: str) -> Quantity:
    """Return a measure of one label; None without rows, or for a recall that no row expects."""

    def read(confusion: Confusion) -> float | None:
        is_expected = any(expected == name for expected, _ in confusion)
        return getattr(measures(confusion, [name])[name], measure) if is_expected else None

    return Quantity(
        key=f"label_{measure}.{name}",
        label=f"Label {_WORDS[measure]} of {visible(name)}",
        read=lambda side: read(side.labels),
        of_class=name,
        of_labels=read,
        absent="no row of the run is of a query that expects this label",
        absent_before=(
            "the baseline has no labels of queries that expect this one; recreate it from its run, with "
            "`rag-contract baseline --force`"
        ),
    )


def _limits_of(measure: Literal["precision", "recall", "f1"]) -> Iterable[LimitKey]:
    """Yield the minimum and the drop limit of a measure, each with limits by label."""
    name, quantity = f"label_{measure}", Quantity(key=f"label_{measure}", label=f"Label {_WORDS[measure]}")
    of_class = partial(_of_class, measure)
    minimum = Meta(description=f"The least {_WORDS[measure]} by label: {_OF_CLASS[measure]}.")
    drop = Meta(description=f"How far the {_WORDS[measure]} of a label may fall below the baseline's, by label.")
    yield LimitKey(
        section="minimums",
        name=name,
        kind="minimum",
        quantity=quantity,
        type=Annotated[dict[Tag, Fraction], _LIMITS, minimum],
        by_tag=False,
        by_class=of_class,
    )
    yield LimitKey(
        section="fail_on",
        name=f"{name}_drop_gt",
        kind="drop",
        quantity=quantity,
        type=Annotated[dict[Tag, Fraction | Percentage], _LIMITS, drop],
        by_tag=False,
        by_class=of_class,
    )


LABELS = (
    LimitKey(
        section="minimums",
        name="label_macro_f1",
        kind="minimum",
        quantity=LABEL_MACRO_F1,
        type=Annotated[Fraction, Meta(description="The mean of the F1 of all classes, over all queries.")],
        by_tag=False,
    ),
    *(key for measure in MEASURES for key in _limits_of(measure)),
)
