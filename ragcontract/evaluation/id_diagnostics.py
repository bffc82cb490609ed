"""Diagnostics of document ids: the overlap of run and baseline, and forbidden ids that never match.

A run may return a forbidden document under an id in another form (``secret`` and ``secret.md``), so that no rule sees
it. A forbidden id may be meant as a pattern or a list (``internal/*``), although ids are compared exactly.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery, named_in
from ragcontract.core.ids import EVERYTHING, FirstIds, as_ids, encode, first_of, packed, together
from ragcontract.core.invisible import without_invisible
from ragcontract.core.phrase import Location
from ragcontract.core.run import QueryScore, RunRow
from ragcontract.core.safe_text import shorten
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import JudgedShares, SharedColumn, ValuesByQuery
from ragcontract.files.schema import Mismatch
from ragcontract.rules.ranks import ForbiddenDocs
from ragcontract.runs.baseline_file import ComparedQuery, StoredHead

if TYPE_CHECKING:
    from ragcontract.core.lookalikes import Lookalike

UNKNOWN = (
    "leaves unknown what would have been retrieved, and the query only forbids documents; export the results, or leave "
    "the row out"
)
KEY = "per_query.different_documents"
BETWEEN = re.compile(r"[,;|\n]")  # the ids of a list that is written as one text
FOLDER = ("/", "\\")


class Diagnostics:
    """The first ids and the pools of a baseline, and the overlap of a run with them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._by_document = plan.ranking.by_document
        self._first_ids = FirstIds(plan.k, by_document=self._by_document)
        self._pools: dict[str, bytes] = {}  # of queries whose pool in a stored baseline is not their first ids
        self._family = plan.overlap
        self._overlap = SharedColumn((1.0,) * len(self._family.metrics) if self._family else ())

    def note_stored(self, query_id: str, stored: ComparedQuery, head: StoredHead | None) -> None:
        """Note the judged pool of a stored query if it differs from the first ids of its rows at today's cut-off."""
        k = max(head.k) if head else self._plan.k
        if stored.pool is not None:
            self._pools[query_id] = packed([as_ids(stored.pool)])
        elif k != self._plan.k:
            rows = [as_ids(doc_ids) for doc_ids in (stored.doc_ids, *stored.repeats)]
            self._pools[query_id] = together(
                packed(first_of(doc_ids, k, by_document=self._by_document)) for doc_ids in rows
            )

    def note(self, retrieved: Sequence[tuple[GoldenQuery, Sequence[str]]]) -> list[bytes | None]:
        """Note the document ids of rows of either side; return the packed pool of each row's query, for its score.

        The first ids of a baseline are judged, and so are all results of a row that has the same first ids. Of millions
        of rows, most are like that, so nothing else is called for them.
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
        query_pools: list[bytes | None] = []
        for query, doc_ids in retrieved:
            packed_ids = before.get(query.id)
            if packed_ids is None:
                query_pools.append(None)
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
            query_pools.append(EVERYTHING if is_same and shares_ids else pools[query.id])
        return query_pools

    def _add(self, query_id: str, doc_ids: Sequence[str], before: bytes) -> None:
        if self._family is not None:
            self._overlap.add(query_id, self._family.against(doc_ids, before))

    def first_ids(self) -> dict[str, bytes]:
        return self._first_ids.result()

    def pools(self, first_ids: dict[str, bytes]) -> dict[str, bytes]:
        """Return the pools of a baseline with these first ids; the same object if they do not differ."""
        return first_ids | self._pools if self._pools else first_ids

    def columns(self, scores: dict[str, QueryScore]) -> tuple[ValuesByQuery, ...]:
        return columns_of(self._plan, scores, self._overlap)


def columns_of(plan: Plan, scores: dict[str, QueryScore], overlap: ValuesByQuery) -> tuple[ValuesByQuery, ...]:
    """Return the values of the plan's diagnostic families: the overlap, and what is stored with the scores."""
    return tuple(overlap if family is plan.overlap else JudgedShares(scores) for family in plan.diagnostics)


class ForbiddenForms:
    """Finds results of a query that may be its forbidden documents under an id in another form.

    Two ids stand for different documents if the config says so, or if the golden file does: it wants the returned id
    for the same query, or it wants both ids. If the ids differ in a number at the end, it is enough that the golden
    file wants the returned id for any query.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._by_document = plan.ranking.by_document
        self._within = plan.settings.forbidden_within
        self._different = plan.settings.different_documents

    @staticmethod
    def of(plan: Plan) -> "ForbiddenForms | None":
        """Return the search for a plan; None if the plan forbids nothing."""
        if ForbiddenDocs not in plan.rank_rules or not any(query.forbidden_doc_ids for query in plan.golden.values()):
            return None
        return ForbiddenForms(plan)

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return named_in(self._plan.golden.values()) | self._plan.wanted_elsewhere

    def unknown(self, query: GoldenQuery, row: RunRow) -> Iterator[Mismatch]:
        """Yield the fault of a row with an error whose query only forbids documents: nobody knows what it retrieved."""
        if query.only_forbids and not row.results and row.error is not None:
            yield Mismatch(("error",), UNKNOWN)

    def faults(self, query: GoldenQuery, doc_ids: Sequence[str]) -> Iterator[Mismatch]:
        """Yield a fault for each result of a row that may be a forbidden document."""
        from ragcontract.core.lookalikes import lookalikes  # with Unicode's data, which few contracts need

        top = list(dict.fromkeys(doc_ids)) if self._by_document else doc_ids
        for lookalike in lookalikes(query.forbidden_doc_ids, top[: self._within]):
            if not self._are_different(lookalike, query):
                yield Mismatch(("results", doc_ids.index(lookalike.actual), "doc_id"), _question(lookalike))

    def _are_different(self, lookalike: "Lookalike", query: GoldenQuery) -> bool:
        if lookalike.actual in self._different or lookalike.forbidden in self._different:
            return True
        if lookalike.identical:
            return False
        if lookalike.actual in query.relevant_doc_ids:
            return True
        return lookalike.actual in self._wanted and (lookalike.numbered or lookalike.forbidden in self._wanted)


def _question(lookalike: "Lookalike") -> str:
    returned, forbidden = _shown(lookalike.actual), _shown(lookalike.forbidden)
    return (
        f"{returned} looks like {forbidden}, which is forbidden here: is this the forbidden document? Write its id in "
        f"the contract as in the run; if they are different documents, add {returned} to {KEY} in the config"
    )


def _shown(doc_id: str) -> str:
    """Return an id in quotes, with escapes for invisible characters."""
    text = shorten(doc_id, bounds.VALUE_TEXT)
    return repr(text) if without_invisible(text) == text else ascii(text)


class PatternIds:
    """The forbidden ids that look like patterns and occur nowhere.

    An id that ends in ``/`` is not a pattern if ids of documents end like that, too.
    """

    def __init__(self, plan: Plan) -> None:
        own = plan.settings.different_documents
        self.never: dict[str, Location] = {}  # where each is first forbidden
        for query in plan.golden.values():
            for doc_id in query.forbidden_doc_ids:
                if _is_pattern(doc_id) and doc_id not in own:
                    self.never.setdefault(doc_id, query.location)
        if self.never:
            self.note([sorted(named_in(plan.golden.values()) | plan.wanted_elsewhere)])

    def note(self, all_ids: Iterable[Sequence[str]]) -> None:
        for doc_ids in all_ids:
            for doc_id in self.never.keys() & set(doc_ids):
                del self.never[doc_id]
            if any(doc_id.endswith(FOLDER) for doc_id in doc_ids):
                self.never = {doc_id: at for doc_id, at in self.never.items() if not _is_folder(doc_id)}


def _is_pattern(doc_id: str) -> bool:
    return "*" in doc_id or doc_id.startswith("^") or _is_folder(doc_id) or _is_list(doc_id)


def _is_list(doc_id: str) -> bool:
    """Return whether an id is a list of ids. Parts with blanks are probably those of a document's title."""
    several = BETWEEN.split(doc_id)
    return (doc_id[0] + doc_id[-1] == "[]") or (len(several) > 1 and all(len(part.split()) == 1 for part in several))


def _is_folder(doc_id: str) -> bool:
    return doc_id.endswith(FOLDER) and "*" not in doc_id
