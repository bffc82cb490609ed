"""Scores, which another tool computed for each query and the configuration declares under ``metrics``."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import Tag
from ragcontract.core.metric import Direction, Family, Invalid, Metric, MetricSettings, Missing, Scale, SwitchedOn
from ragcontract.core.run import RunRow, Values

_End = Annotated[
    float, Meta(ge=-bounds.SCORE, le=bounds.SCORE, title=f"a number from -{bounds.SCORE:,} to {bounds.SCORE:,}")
]


class DeclaredScore(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A score that another tool computes and that run rows or scores files carry."""

    source: Literal["scores"] = msgspec.field(name="from")
    scale: Annotated[
        tuple[_End, _End],
        Meta(
            title="the lowest and the highest value, as [1, 5]",
            description="The lowest and the highest value; from 0 to 1 by default.",
        ),
    ] = (0.0, 1.0)
    better: Annotated[Direction, Meta(description="Which way is better.")] = "higher"
    tags: Annotated[
        list[Tag], Meta(description="Only the queries with one of these tags have the score; all by default.")
    ] = []


def scores(settings: MetricSettings) -> Iterable[Family]:
    """Return one family for each declared score, because each may apply to different queries."""
    declared = settings.declared.items()
    return [Score(name, entry) for name, entry in declared if isinstance(entry, DeclaredScore)]


class Score:
    """A score under its own name, in its own unit."""

    needs = frozenset({"scores"})
    from_ids = False
    switch = SwitchedOn.ALWAYS

    def __init__(self, name: str, declared: DeclaredScore) -> None:
        low, high = declared.scale
        self._name, self._scale = name, Scale(low, high)
        self._tags = frozenset(declared.tags)
        self.metrics: Sequence[Metric] = (
            Metric(
                key=name,
                label=name,
                better=declared.better,
                scale=self._scale,
                suggested=True,
                fingerprint=fingerprint(self._scale, declared.better),
            ),
        )

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing | Invalid:
        """Return the score of the row; null is missing."""
        if self._tags and self._tags.isdisjoint(query.tags):
            return ()
        value = (row.scores or {}).get(self._name)
        if value is None:
            return Missing(f"has no score {self._name!r}", self._name)
        why = self._scale.fault(value)
        return Invalid(f"scores.{self._name}", why) if why else (value,)


def fingerprint(scale: Scale, better: Direction) -> str:
    """Return a text that two runs must share for their numbers to be compared; empty for the default."""
    if (scale, better) == (Scale(), "higher"):
        return ""
    return f"from {scale.low!r} to {scale.high!r}, {better} is better"
