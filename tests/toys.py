"""A metric and a rule that the package does not have, each as a third person would add it."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.lines import Line
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, Scale, SwitchedOn
from ragcontract.core.phrase import Name
from ragcontract.core.rule import RowContext, RowRule, Violation
from ragcontract.core.run import RunRow, Values
from ragcontract.registry import BUILT_IN


class Toxicity:
    """A number that something else computed, from 0 to 5: lower is better."""

    metrics = (
        Metric(
            key="toxicity", label="Toxicity", better="lower", scale=Scale(0.0, 5.0), fingerprint="tox-1", suggested=True
        ),
    )
    needs = frozenset({"scores"})
    from_ids = False
    switch = SwitchedOn.ALWAYS

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:  # noqa: ARG002 (the seam's)
        """Return the row's score."""
        value = (row.scores or {}).get("toxicity")
        return Missing("has no score 'toxicity'") if value is None else (value,)


class Named:
    """named@k: the share of the top k that the golden query names, one way or the other."""

    needs = frozenset({"results"})
    from_ids = True
    switch = SwitchedOn.ALWAYS

    def __init__(self, k: int) -> None:
        """Look at the top k."""
        self._k = k
        self.metrics = (Metric(key=f"named_at_{k}", label=f"named@{k}", aliases=("named_at_k",), k=k, suggested=True),)

    def values(self, query: GoldenQuery, row: RunRow) -> Values:
        """Count the named documents."""
        named = {*query.relevant_doc_ids, *query.forbidden_doc_ids, *(query.relevance or {})}
        return (sum(doc_id in named for doc_id in row.doc_ids[: self._k]) / self._k,)


def toxicity(_settings: MetricSettings) -> Iterable[Family]:
    """Provide the family."""
    return [Toxicity()]


def named(settings: MetricSettings) -> Iterable[Family]:
    """Provide the family."""
    return [Named(max(settings.cutoffs))]


class MustSay(RowRule, frozen=True, kw_only=True, gc=False, tag="must_say"):
    """The answer contains a phrase."""

    needs: ClassVar[frozenset[str]] = frozenset({"response"})
    phrase: str

    def violations(self, query: GoldenQuery, row: RunRow, context: RowContext) -> Iterator[Violation]:  # noqa: ARG002 (the seam's)
        """Yield a violation where it does not."""
        if self.phrase not in (row.response or ""):
            found = (Name(row.response, said=True),) if row.response else ("no answer",)
            yield Violation(rule="must_say", expected=(Name(self.phrase), " in the answer"), actual=found)


REGISTRY = replace(
    BUILT_IN,
    metrics=(
        *BUILT_IN.metrics,
        Line(names=("toxicity",), home="tests.toys:toxicity", always=True),
        Line(home="tests.toys:named", always=True),
    ),
    rules=(*BUILT_IN.rules, Line(names=("must_say",), home="tests.toys:MustSay")),
)
