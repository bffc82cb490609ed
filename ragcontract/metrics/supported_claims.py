"""Context recall as a judge sees it: the share of the claims of a reference that the retrieved texts support.

The idea is that of the ContextRecall of ragas, but the claims are those of the golden row.
"""

from typing import TYPE_CHECKING

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.run import CONTEXT_FIELDS, RunRow
from ragcontract.metrics.judged_share import JudgedShare, provider_of

if TYPE_CHECKING:
    from ragcontract.runs.judged_texts import Case


class SupportedClaims(JudgedShare):
    """Claims that are supported, of all claims; none is if nothing was retrieved."""

    task = "attribution"
    metric = Metric(
        key="context_recall",
        label="Context recall (judged)",
        suggested=True,
        asks="reference_claims",
        supply="`rag-contract claims` makes them of references",
        task=task,
    )
    needs = CONTEXT_FIELDS

    def case(self, query: GoldenQuery, row: RunRow) -> "Case | str | None":
        """Return the claims, and the texts that were retrieved."""
        from ragcontract.runs.judged_cases import attribution_case

        return attribution_case(query, row, self.k)

    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        """Return the claims."""
        return (query.answer and query.answer.reference_claims) or ()


supported_claims = provider_of(SupportedClaims, SupportedClaims.metric.key)
