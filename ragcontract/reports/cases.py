"""What was answered to each query, broken or not, for formats that list all of it."""

from collections.abc import Iterable, Iterator

from msgspec import Struct, UnsetType
from msgspec.structs import replace

from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_id
from ragcontract.core.rule import Violation
from ragcontract.core.run import Json, RunRow, row_type
from ragcontract.core.text import encodable
from ragcontract.judging.decision import Decision
from ragcontract.judging.evaluated import Evaluation
from ragcontract.judging.policy import QueryStatus
from ragcontract.rules.containing import Contains
from ragcontract.runs.past import digest

ANSWERED: type[RunRow] = row_type(
    frozenset({"response", "error", "error_detail", "context_chars"}), results_required=False
)


class RankedResult(Struct, frozen=True, kw_only=True, gc=False):
    """A result with its 1-based rank, its document, and the retriever's score if there is one."""

    rank: int
    doc_id: str
    score: float | None


class Case(Struct, frozen=True, kw_only=True, gc=False):
    """A golden query and the first row of the run for it; ``answered`` is None if that says nothing of an answer.

    ``wanted`` are the texts that the answer must contain, of which ``missing`` are not there. ``violations``
    has waived and known ones too.
    """

    query: GoldenQuery
    status: QueryStatus
    violations: tuple[Violation, ...]
    wanted: tuple[str, ...]
    missing: tuple[str, ...]
    results: tuple[RankedResult, ...] = ()
    answered: bool | None = None
    response: str | None = None
    error: str | None = None
    error_detail: Json | None = None
    context_chars: int | None = None

    @property
    def location(self) -> str:
        """Where the golden query is defined, as ``golden.jsonl:17``."""
        return encodable(self.query.location)


def cases(evaluation: Evaluation, decision: Decision, rows: Iterable[RunRow]) -> Iterator[Case]:
    """Yield a case for each golden query: those with a row in the order of the run, then those without one.

    Rows of other queries, and further rows of a query, are left out. ``rows`` are of the type ``ANSWERED``.
    """
    waiting = dict(evaluation.contract.queries)
    for row in rows:
        query = waiting.pop(as_id(row.query_id), None)
        if query is not None:
            yield _case(query, decision, row, evaluation.contract.k)
    for query in waiting.values():
        yield _case(query, decision, None, 0)


def _case(query: GoldenQuery, decision: Decision, row: RunRow | None, k: int) -> Case:
    violations = decision.violations.get(query.id, ())
    rules = [rule for rule in query.rules if isinstance(rule, Contains)]
    causes = {cause for one in violations for cause in one.causes}
    wanted = [(rule, text) for rule in rules for text in rule.texts]
    made = Case(
        query=query,
        status=decision.status(query),
        violations=tuple(violations),
        wanted=tuple([text for _, text in wanted]),
        missing=tuple([text for rule, text in wanted if digest([rule, text]) in causes]),
    )
    return replace(made, answered=False) if row is None else _with_row(made, row, k)


def _with_row(case: Case, row: RunRow, k: int) -> Case:
    response = None if isinstance(row.response, UnsetType) else row.response
    exported = not isinstance(row.response, UnsetType) or row.error is not None
    return replace(
        case,
        results=tuple(
            [
                RankedResult(rank=rank, doc_id=as_id(result.doc_id), score=result.score)
                for rank, result in enumerate(row.results[:k], 1)
            ]
        ),
        answered=(response is not None and row.error is None) if exported else None,
        response=response,
        error=row.error,
        error_detail=row.error_detail,
        context_chars=row.context_chars,
    )
