"""Context recall as a judge sees it: the fraction of the claims of a reference that the retrieved texts support.

The claims are those of the golden row, and what the judge said is replayed from judgments files: the number of claims
is no model's, and nothing is asked here. The idea is that of the ContextRecall of ragas.
"""

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Family, Metric, MetricSettings, Missing, SwitchedOn
from ragcontract.core.run import RunRow
from ragcontract.core.scores import Values

if TYPE_CHECKING:
    from ragcontract.runs.judgments import Judgment
    from ragcontract.runs.replaying import Replay

KEY = "context_recall"


def judged_recall(settings: MetricSettings) -> Iterable[Family]:
    """Return the family, without judgments yet; none where another tool's score has the name, as ragas' has."""
    return [] if KEY in settings.declared else [JudgedRecall(max(settings.cutoffs))]


class JudgedRecall:
    """Claims that are supported, of all claims. Without judgments no query has the metric; a limit says so."""

    needs = frozenset({"retrieved_contexts", "results.text"})
    from_ids = False
    switch = SwitchedOn.BY_LIMIT

    def __init__(
        self,
        k: int,
        replay: "Replay | None" = None,
        *,
        fingerprint: str = "",
        found: "MutableMapping[str, tuple[Judgment, ...]] | None" = None,
    ) -> None:
        """Store the largest cut-off and the judgments; what is ``found`` for each query is noted there."""
        self.k = k
        self._replay = replay
        self._found = found
        self.metrics: Sequence[Metric] = (
            Metric(
                key=KEY,
                label="Context recall (judged)",
                suggested=True,
                asks="reference_claims",
                task="attribution",
                fingerprint=fingerprint,
            ),
        )

    def replaying(
        self, replay: "Replay", queries: Mapping[str, GoldenQuery], found: "MutableMapping[str, tuple[Judgment, ...]]"
    ) -> "JudgedRecall":
        """Return the family with judgments. Numbers of different judges, or of other cut-offs, are not compared.

        A baseline is evaluated before a run, so what is found for a query is that of the run in the end.
        """
        judges = " and ".join(sorted(replay.fingerprints("attribution", queries.keys())))
        return JudgedRecall(self.k, replay, fingerprint=f"{judges}; top {self.k}", found=found)

    def values(self, query: GoldenQuery, row: RunRow) -> Values | Missing:
        """Return the fraction of the claims that are supported; 0 if nothing was retrieved."""
        if self._replay is None or query.answer is None or not query.answer.reference_claims:
            return ()
        from ragcontract.runs.judged_cases import attribution_case

        case = attribution_case(query, row, self.k)
        if case is None or isinstance(case, str):
            return Missing(case or "has no claims")
        if not any(text.strip() for text in case.contexts):
            self._note(query.id, ())
            return (0.0,)
        said = self._replay.said(case)
        if isinstance(said, str):
            return Missing(said)
        self._note(query.id, said)
        return (sum(1 for one in said if one.verdict is True) / len(said),)

    def _note(self, query_id: str, said: "tuple[Judgment, ...]") -> None:
        if self._found is not None:
            self._found[query_id] = said
