"""Finds results that may be forbidden documents under an id in another form, and forbidden ids that are patterns.

A run may return a forbidden document under an id in another form (``secret`` and ``secret.md``), so that no rule sees
it. A forbidden id may be meant as a pattern or a list (``internal/*``), although ids are compared exactly.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery, named_in
from ragcontract.core.invisible import without_invisible
from ragcontract.core.phrase import Location
from ragcontract.core.run import RunRow
from ragcontract.core.safe_text import shorten
from ragcontract.evaluation.plan import Plan
from ragcontract.files.schema import Mismatch
from ragcontract.rules.ranks import ForbiddenDocs

if TYPE_CHECKING:
    from ragcontract.core.lookalikes import Lookalike

UNKNOWN = (
    "leaves unknown what would have been retrieved, and the query only forbids documents; export the results, or leave "
    "the row out"
)
KEY = "per_query.different_documents"
BETWEEN = re.compile(r"[,;|\n]")  # the ids of a list that is written as one text
FOLDER = ("/", "\\")


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


def forbidden_patterns(queries: Iterable[GoldenQuery], different: Collection[str]) -> dict[str, Location]:
    """Return the forbidden ids that look like patterns, and are not among the ids of ``different`` documents.

    Each has the location where it is first forbidden.
    """
    patterns: dict[str, Location] = {}
    for query in queries:
        for doc_id in query.forbidden_doc_ids:
            if _is_pattern(doc_id) and doc_id not in different:
                patterns.setdefault(doc_id, query.location)
    return patterns


def _is_pattern(doc_id: str) -> bool:
    return "*" in doc_id or doc_id.startswith("^") or is_folder(doc_id) or _is_list(doc_id)


def _is_list(doc_id: str) -> bool:
    """Return whether an id is a list of ids. Parts with blanks are probably those of a document's title."""
    several = BETWEEN.split(doc_id)
    return (doc_id[0] + doc_id[-1] == "[]") or (len(several) > 1 and all(len(part.split()) == 1 for part in several))


def is_folder(doc_id: str) -> bool:
    """Return whether an id looks like a folder, which may stand for all documents in it."""
    return doc_id.endswith(FOLDER) and "*" not in doc_id
