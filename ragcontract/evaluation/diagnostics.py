"""What is collected beside the metrics of rows: the ids that a baseline brings, and what of them a run has."""

from collections.abc import Callable, Iterable, Sequence

from ragcontract.core.first_ids import EVERYTHING, FirstIds, first_of, packed, together
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_ids
from ragcontract.core.scores import QueryScore
from ragcontract.evaluation.columns import OfScores, SharedColumn, ValuesByQuery
from ragcontract.evaluation.plan import Plan
from ragcontract.runs.stored import ComparedQuery, StoredHead


class Diagnostics:
    """The first ids and the pools of a baseline, and the overlap of a run with them."""

    def __init__(self, plan: Plan) -> None:
        """Collect nothing yet."""
        self._plan = plan
        self._by_document = plan.ranking.by_document
        self._first_ids = FirstIds(plan.k, by_document=self._by_document)
        self._pools: dict[str, bytes] = {}  # where a stored baseline has another one than its first ids
        self._overlap = SharedColumn()
        # The packed pool of a query: of a run, that of its baseline; what a baseline has first is judged.
        self.pool: Callable[[str], bytes | None] = self._own_pool if plan.is_baseline else plan.pools.get

    def note_stored(self, query_id: str, stored: ComparedQuery, head: StoredHead | None) -> None:
        """Note the judged pool of a stored query, if that is not what its rows have first at today's cut-off."""
        k = max(head.k) if head else self._plan.k
        if stored.pool is not None:
            self._pools[query_id] = packed([as_ids(stored.pool)])
        elif k != self._plan.k:
            rows = [as_ids(doc_ids) for doc_ids in (stored.doc_ids, *stored.repeats)]
            self._pools[query_id] = together(
                packed(first_of(doc_ids, k, by_document=self._by_document)) for doc_ids in rows
            )

    def note(self, retrieved: Iterable[tuple[GoldenQuery, Sequence[str]]]) -> None:
        """Note the document ids of rows, of either side."""
        if self._plan.is_baseline:
            for query, doc_ids in retrieved:
                self._first_ids.note(query.id, doc_ids)
        elif (family := self._plan.overlap) is not None:
            before, add = self._plan.first_ids, self._overlap.add
            for query, doc_ids in retrieved:
                if query.id in before:
                    add(query.id, family.against(doc_ids, before[query.id]))

    def _own_pool(self, query_id: str) -> bytes:
        return self._pools.get(query_id, EVERYTHING)

    def first_ids(self) -> dict[str, bytes]:
        """Return the packed first ids of a baseline's rows."""
        return self._first_ids.result()

    def pools(self, first_ids: dict[str, bytes]) -> dict[str, bytes]:
        """Return the pools of a baseline with these first ids: the same object, if they do not differ."""
        return first_ids | self._pools if self._pools else first_ids

    def columns(self, scores: dict[str, QueryScore]) -> tuple[ValuesByQuery, ...]:
        """Return the values of the plan's diagnostic families."""
        return columns_of(self._plan, scores, self._overlap)


def columns_of(plan: Plan, scores: dict[str, QueryScore], overlap: ValuesByQuery) -> tuple[ValuesByQuery, ...]:
    """Return the values of the plan's diagnostic families: the overlap, and what is stored with the scores."""
    return tuple(overlap if family is plan.overlap else OfScores(scores) for family in plan.diagnostics)
