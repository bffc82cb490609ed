"""What all judged metrics have in common: the share of the items of a query of which a judge says yes.

The items are those of the golden row, and what the judge said is replayed from judgments files: how many there are is
no model's to say, and nothing is asked here. A further metric is a subclass in a module of its own, and its provider.
People's labels of documents, which the field calls judgments, too, are those of ``judged``.

Context recall as a judge sees it: the share of the claims of a reference that the retrieved texts support.

The idea is that of the ContextRecall of ragas, but the claims are those of the golden row.

The share of the criteria of a golden query that its answer meets, as a judge sees it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, Provider, SwitchedOn
from ragcontract.core.run import CONTEXT_FIELDS, RESPONSE_FIELDS, RunRow, Values

if TYPE_CHECKING:
    from ragcontract.core.judge_settings import Task
    from ragcontract.judgments.items import Case
    from ragcontract.judgments.judgments_file import Judgment
    from ragcontract.judgments.replay import Replay

    Found = MutableMapping[str, tuple[tuple[Judgment, ...], ...]]


class JudgedShare(ABC):
    """A judged metric. Without judgments no query has it; a limit on it says so.

    ``task`` is what is judged, and ``metric`` what it is without judgments: its fingerprint names who judged.
    """

    task: "ClassVar[Task]"
    metric: ClassVar[Metric]
    needs: ClassVar[frozenset[str]]
    from_ids = False
    switch = SwitchedOn.BY_LIMIT

    def __init__(
        self,
        k: int,
        replay: "Replay | None" = None,
        *,
        fingerprint: str = "",
        found: "Found | None" = None,
    ) -> None:
        """Store the largest cut-off and the judgments; what is ``found`` for each row of a query is noted there."""
        self.k = k
        self._replay = replay
        self._found = found
        self.metrics: Sequence[Metric] = (replace(self.metric, fingerprint=fingerprint),)

    @abstractmethod
    def case(self, query: GoldenQuery, row: RunRow) -> "Case | str | None":
        """Return what is judged; None if the query has nothing to judge, or why its texts are not known."""

    @abstractmethod
    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        """Return the texts of the items of a query, in their order."""

    def replaying(self, replay: "Replay", queries: Mapping[str, GoldenQuery], found: "Found") -> Self:
        """Return the family with judgments. Numbers of different judges, or of other cut-offs, are not compared."""
        judges = " and ".join(sorted(replay.fingerprints(self.task, queries.keys())))
        return type(self)(self.k, replay, fingerprint=f"{judges}; top {self.k}", found=found)

    def stored_fingerprint(self) -> str:
        """Return the fingerprint for a stored baseline: it names everybody who judged it, not the last judges alone."""
        (metric,) = self.metrics
        if self._replay is None or self._found is None:
            return metric.fingerprint
        said = [one for rows in self._found.values() for row in rows for one in row]
        others = {one.fingerprint for one in said if one.votes}
        others -= self._replay.fingerprints(self.task, self._found.keys())
        return " and ".join([*sorted(others), metric.fingerprint])

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the share of the items; 0 if there is nothing to judge them by."""
        if self._replay is None or not self.texts(query):
            return ()
        from ragcontract.judgments.items import known_without_a_judge

        case = self.case(query, row)
        if case is None or isinstance(case, str):
            return Missing(case or "has nothing to judge")
        if known_without_a_judge(case):
            self._note(query.id, ())
            return (0.0,)
        said = self._replay.said(case)
        if isinstance(said, str):
            return Missing(said)
        self._note(query.id, said)
        return (sum(1 for one in said if one.verdict is True) / len(said),)

    def _note(self, query_id: str, said: "tuple[Judgment, ...]") -> None:
        if self._found is not None:
            self._found[query_id] = (*self._found.get(query_id, ()), said)


def provider_of(family: Callable[[int], JudgedShare], key: str) -> Provider:
    """Return a provider of the family without judgments; of none where the score of another tool has its name."""

    def provide(settings: MetricSettings) -> Iterable[Family]:
        return [] if key in settings.declared else [family(max(settings.cutoffs))]

    return provide


class SupportedClaims(JudgedShare):
    """Claims that are supported, of all claims; none is if nothing was retrieved."""

    task = "attribution"
    metric = Metric(
        key="context_recall",
        label="Context recall (judged)",
        suggested=True,
        asks="reference_claims",
        supply="`rag-contract claims` makes them of references",
        references=("reference_claims",),
        task=task,
    )
    needs = CONTEXT_FIELDS

    def case(self, query: GoldenQuery, row: RunRow) -> "Case | str | None":
        """Return the claims, and the texts that were retrieved."""
        from ragcontract.judgments.items import attribution_case

        return attribution_case(query, row, self.k)

    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        """Return the claims."""
        return (query.answer and query.answer.reference_claims) or ()


supported_claims = provider_of(SupportedClaims, SupportedClaims.metric.key)


class CriteriaMet(JudgedShare):
    """Criteria that are met, of all criteria; none is if there is no answer, or an empty one."""

    task = "criteria"
    metric = Metric(
        key="criteria_met",
        label="Criteria met (judged)",
        suggested=True,
        asks="criteria",
        references=("criteria", "reference"),
        task=task,
    )
    needs = CONTEXT_FIELDS | RESPONSE_FIELDS

    def case(self, query: GoldenQuery, row: RunRow) -> "Case | str | None":
        """Return the criteria, the answer, and what is known of the reference and of what was retrieved."""
        from ragcontract.judgments.items import criteria_case

        return criteria_case(query, row, self.k)

    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        """Return the criteria."""
        return tuple([one.text for one in (query.answer and query.answer.criteria) or ()])


criteria_met = provider_of(CriteriaMet, CriteriaMet.metric.key)
