"""Quantities that can be limited in addition to the means of metrics: pass rates, the F1 of labels, latency."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from ragcontract.core.gate import AnyPercentage, Fraction, LimitKey, Measured, Milliseconds, MoreMilliseconds, Quantity
from ragcontract.core.run import Latency
from ragcontract.statistics.confusion import macro_f1


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
