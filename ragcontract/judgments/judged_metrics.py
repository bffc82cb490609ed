"""Judged metrics: the share of a query's items for which the judge says yes.

The items are those of the golden row, so that no model decides how many there are. The judgments are replayed from
judgments files; nothing is asked here. A further metric is a subclass and its provider.

* Context recall: the share of the claims of a reference that the retrieved texts support. The idea is that of the
  ContextRecall of ragas, but the claims are those of the golden row.
* Criteria met: the share of the criteria of a golden query that its answer meets.

These are not the shares of judged results (``judged_at_k``), where people's labels of documents are called judgments.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, Provider, SwitchedOn
from ragcontract.core.run import CONTEXT_FIELDS, RESPONSE_FIELDS, RunRow, Values
from ragcontract.judgments.items import JudgeCase, attribution_case, criteria_case, known_without_a_judge

if TYPE_CHECKING:
    from ragcontract.core.config_sections import Task
    from ragcontract.judgments.judgments_file import Judgment
    from ragcontract.judgments.replay import Replay


class JudgedValues(tuple[float, ...]):  # noqa: SLOT001 (a tuple with further fields cannot have slots)
    """The values of a judged metric for a row, with the judgments that they are computed from."""

    judgments: "tuple[Judgment, ...]"

    def __new__(cls, share: float, judgments: "tuple[Judgment, ...]" = ()) -> Self:
        """Return the share of the items for which the judge says yes."""
        made = super().__new__(cls, (share,))
        made.judgments = judgments
        return made


class JudgedShare(ABC):
    """A judged metric. Without judgments, no query has it, and a limit on it is a problem."""

    task: "ClassVar[Task]"
    metric: ClassVar[Metric]  # without judgments; with them, its fingerprint names the judges
    needs: ClassVar[frozenset[str]]
    # Makes what is judged; None if the query has nothing to judge; or why its texts are not known.
    case_of: "ClassVar[staticmethod[[GoldenQuery, RunRow, int], JudgeCase | str | None]]"
    from_ids = False
    switch = SwitchedOn.BY_LIMIT

    def __init__(self, k: int, replay: "Replay | None" = None, query_ids: Collection[str] = ()) -> None:
        """Make the family; with judgments on queries, numbers of different judges or cut-offs are not compared."""
        self.k = k  # the largest cut-off
        self._replay = replay
        judges = " and ".join(sorted(replay.fingerprints(self.task, query_ids))) if replay else ""
        self.metrics: Sequence[Metric] = (replace(self.metric, fingerprint=f"{judges}; top {k}" if replay else ""),)

    @abstractmethod
    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        """Return the texts of the items of a query, in their order."""

    def stored_fingerprint(self, judges: Collection[str], query_ids: Collection[str]) -> str:
        """Return the fingerprint for a stored baseline, which names all judges of these queries, not only the last."""
        (metric,) = self.metrics
        others = set(judges) - self._replay.fingerprints(self.task, query_ids) if self._replay else ()
        return " and ".join([*sorted(others), metric.fingerprint])

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the share of the items for which the judge says yes; 0 if there is nothing to judge them by."""
        if self._replay is None or (case := self.case_of(query, row, self.k)) is None:
            return ()
        if isinstance(case, str):
            return Missing(case)
        if known_without_a_judge(case):
            return JudgedValues(0.0)
        judgments = self._replay.judgments(case)
        if isinstance(judgments, str):
            return Missing(judgments)
        return JudgedValues(sum(1 for judgment in judgments if judgment.verdict is True) / len(judgments), judgments)


def provider_of(family: Callable[[int], JudgedShare], key: str) -> Provider:
    """Return a provider of the family without judgments; it provides none if a declared score has the metric's name."""

    def provide(settings: MetricSettings) -> Iterable[Family]:
        return [] if key in settings.declared else [family(max(settings.cutoffs))]

    return provide


class SupportedClaims(JudgedShare):
    """The share of claims that are supported; 0 if nothing was retrieved."""

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
    case_of = staticmethod(attribution_case)

    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        return (query.answer and query.answer.reference_claims) or ()


supported_claims = provider_of(SupportedClaims, SupportedClaims.metric.key)


class CriteriaMet(JudgedShare):
    """The share of criteria that are met; 0 if there is no answer, or an empty one."""

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
    case_of = staticmethod(criteria_case)

    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        return tuple([criterion.text for criterion in (query.answer and query.answer.criteria) or ()])


criteria_met = provider_of(CriteriaMet, CriteriaMet.metric.key)
