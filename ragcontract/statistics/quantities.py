"""Quantities that limits may be on besides the means of metrics: pass rates, the F1 of labels, and latency.

The F1 of labels is a measure of a confusion matrix. It counts rows, so a query with several rows counts several times,
and weights have no effect. Precision, recall and F1 are those of scikit-learn with ``zero_division=0``.
"""

from collections.abc import Callable, Iterable
from math import fsum
from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.gate import AnyPercentage, Fraction, LimitKey, Measured, Milliseconds, MoreMilliseconds, Quantity
from ragcontract.core.run import Confusion, Latency


class ClassMeasures(Struct, frozen=True, kw_only=True):
    """How well one class was found, each from 0 to 1; 0 where there is nothing to divide by."""

    precision: float
    recall: float
    f1: float


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
LABELS = (
    LimitKey(
        section="minimums",
        name="label_macro_f1",
        kind="minimum",
        quantity=LABEL_MACRO_F1,
        type=Annotated[Fraction, Meta(description="The mean of the F1 of all classes, over all queries.")],
        by_tag=False,
    ),
)
