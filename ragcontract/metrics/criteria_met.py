"""The share of the criteria of a golden query that its answer meets, as a judge sees it."""

from typing import TYPE_CHECKING

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.metric import Metric
from ragcontract.core.run import CONTEXT_FIELDS, RESPONSE_FIELDS, RunRow
from ragcontract.metrics.judged_share import JudgedShare, provider_of

if TYPE_CHECKING:
    from ragcontract.runs.judged_texts import Case


class CriteriaMet(JudgedShare):
    """Criteria that are met, of all criteria; none is if there is no answer, or an empty one."""

    task = "criteria"
    metric = Metric(key="criteria_met", label="Criteria met (judged)", suggested=True, asks="criteria", task=task)
    needs = CONTEXT_FIELDS | RESPONSE_FIELDS

    def case(self, query: GoldenQuery, row: RunRow) -> "Case | str | None":
        """Return the criteria, the answer, and what is known of the reference and of what was retrieved."""
        from ragcontract.runs.judged_cases import criteria_case

        return criteria_case(query, row, self.k)

    def texts(self, query: GoldenQuery) -> tuple[str, ...]:
        """Return the criteria."""
        return tuple([one.text for one in (query.answer and query.answer.criteria) or ()])


criteria_met = provider_of(CriteriaMet, CriteriaMet.metric.key)
