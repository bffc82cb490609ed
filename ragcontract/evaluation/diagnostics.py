"""What is collected beside the metrics of rows: the ids that a baseline brings, and what of them a run has."""

from collections.abc import Sequence

from ragcontract.core.first_ids import EVERYTHING, FirstIds, encode, first_of, packed, together
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import as_ids
from ragcontract.core.scores import QueryScore
from ragcontract.evaluation.columns import JudgedShares, SharedColumn, ValuesByQuery
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
        self._family = plan.overlap
        self._overlap = SharedColumn((1.0,) * len(self._family.metrics) if self._family else ())

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

    def note(self, retrieved: Sequence[tuple[GoldenQuery, Sequence[str]]]) -> list[bytes | None]:
        """Note the document ids of rows, of either side; return the packed pool of each one's query, for its score.

        What a baseline has first is judged, and so are all results of a row that has the same first ids. There may be
        millions of rows, most of them such ones, so nothing else is called for these.
        """
        if self._plan.is_baseline:
            self._first_ids.note(retrieved)
            own = self._pools
            return [own.get(query.id, EVERYTHING) for query, _ in retrieved] if own else [EVERYTHING] * len(retrieved)
        before, pools = self._plan.first_ids, self._plan.pools
        if not before:
            return [None] * len(retrieved)
        k, by_document, same, add = self._plan.k, self._by_document, self._overlap.same, self._add
        shares_ids = pools is before
        found: list[bytes | None] = []
        for query, doc_ids in retrieved:
            packed_ids = before.get(query.id)
            if packed_ids is None:
                found.append(None)
                continue
            ids = first_of(doc_ids, k, by_document=by_document)
            try:
                is_same = encode([ids]) == packed_ids
            except UnicodeEncodeError:
                is_same = packed([ids]) == packed_ids
            if is_same and ids:
                same(query.id)
            else:
                add(query.id, doc_ids, packed_ids)
            found.append(EVERYTHING if is_same and shares_ids else pools[query.id])
        return found

    def _add(self, query_id: str, doc_ids: Sequence[str], before: bytes) -> None:
        if self._family is not None:
            self._overlap.add(query_id, self._family.against(doc_ids, before))

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
    return tuple(overlap if family is plan.overlap else JudgedShares(scores) for family in plan.diagnostics)
