"""Metrics and a rule that are not built in, as the seams for them take them; workers of a cluster import them too."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, Scale, SwitchedOn
from ragcontract.core.phrase import Name
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow, Values
from ragcontract.registry import BUILT_IN

UNASKED = "no answer"  # a tag of queries that have no part in the metrics of the answer


class Answer(Struct, frozen=True):
    """How long an answer is, and whether it ends a sentence."""

    @property
    def metrics(self) -> Sequence[Metric]:
        return (
            Metric(key="length", label="Length", better="lower", scale=Scale(0, 1_000), suggested=False),
            Metric(key="sentence", label="Sentence"),
        )

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"response"})

    @property
    def from_ids(self) -> bool:
        return False

    @property
    def switch(self) -> SwitchedOn:
        return SwitchedOn.ALWAYS

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        if UNASKED in query.tags:
            return ()
        if not isinstance(row.response, str):
            return Missing("has no response")
        return len(row.response), float(row.response.endswith("."))


class Quoted(Struct, frozen=True):
    """The share of the results whose text the answer quotes."""

    @property
    def metrics(self) -> Sequence[Metric]:
        return (Metric(key="quoted", label="Quoted"),)

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({"response", "results.text"})

    @property
    def from_ids(self) -> bool:
        return False

    @property
    def switch(self) -> SwitchedOn:
        return SwitchedOn.ALWAYS

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:  # noqa: ARG002
        found = [result.text in (row.response or "") for result in row.results if result.text]
        return (sum(found) / len(found) if found else 0.0,)


class MustSay(RowRule, frozen=True, kw_only=True, gc=False, tag="must_say"):
    """The answer must have some text in it."""

    text: str

    needs: ClassVar[frozenset[str]] = frozenset({"response", "mode"})
    on_spark: ClassVar[bool] = True

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield what the answer lacks."""
        if self.text not in (row.response or ""):
            found = (f"{row.mode or 'no mode'}",)
            yield Violation(rule="must_say", expected=("an answer with ", Name(self.text)), actual=found)


class Asked(RowRule, frozen=True, kw_only=True, gc=False, tag="asked"):
    """A rule that notes in a file about which rows it was asked."""

    file: str

    needs: ClassVar[frozenset[str]] = frozenset({"response"})
    on_spark: ClassVar[bool] = True

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002
        """Yield a violation of every row."""
        with Path(self.file).open("a") as file:
            file.write(f"{query.id} {row.response}\n")
        yield Violation(rule="asked", expected=("nothing",), actual=("something",))


def toys(_: MetricSettings) -> Iterable[Family]:
    """Provide both families."""
    return (Answer(), Quoted())


REGISTRY = replace(
    BUILT_IN,
    metrics=(*BUILT_IN.metrics, Line(home="tests.cluster.toys:toys", always=True)),
    rules=(
        *BUILT_IN.rules,
        Line(names=("must_say",), home="tests.cluster.toys:MustSay"),
        Line(names=("asked",), home="tests.cluster.toys:Asked"),
    ),
)
