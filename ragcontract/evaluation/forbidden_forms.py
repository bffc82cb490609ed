"""Finds forbidden documents that a run may return in another form, so that no rule sees them: ``secret.md``."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery, named_in
from ragcontract.core.run import RunRow
from ragcontract.core.text import shorten
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


class ForbiddenForms:
    """Compares what a run returns for a query with what is forbidden there, as deep as it is forbidden.

    Two ids stand for different documents if the config says so, or the golden file: it wants the one that was returned
    for the same query, or it wants both. Of two that differ in a number at the end, it is enough that it wants the one
    that was returned for any query.
    """

    def __init__(self, plan: Plan) -> None:
        """Compare with the golden queries of a plan."""
        self._plan = plan
        self._by_document = plan.ranking.by_document
        self._within = plan.settings.forbidden_within
        self._different = plan.settings.different_documents

    @staticmethod
    def of(plan: Plan) -> "ForbiddenForms | None":
        """Return what compares the rows of a run; None where nothing is forbidden."""
        if ForbiddenDocs not in plan.rank_rules or not any(one.forbidden_doc_ids for one in plan.golden.values()):
            return None
        return ForbiddenForms(plan)

    @cached_property
    def _wanted(self) -> frozenset[str]:
        return named_in(self._plan.golden.values()) | self._plan.wanted_elsewhere

    def unknown(self, query: GoldenQuery, row: RunRow) -> Iterator[Mismatch]:
        """Yield that nobody knows what would have been retrieved, for a query of which nothing else is wanted."""
        if query.only_forbids and not row.results and row.error is not None:
            yield Mismatch(("error",), UNKNOWN)

    def faults(self, query: GoldenQuery, doc_ids: Sequence[str]) -> Iterator[Mismatch]:
        """Yield what is wrong with the results of a row: each document that may be a forbidden one."""
        from ragcontract.core.lookalikes import lookalikes  # with Unicode's data, which few contracts need

        top = list(dict.fromkeys(doc_ids)) if self._by_document else doc_ids
        for one in lookalikes(query.forbidden_doc_ids, top[: self._within]):
            if not self._are_different(one, query):
                yield Mismatch(("results", doc_ids.index(one.found), "doc_id"), _question(one))

    def _are_different(self, one: "Lookalike", query: GoldenQuery) -> bool:
        if one.found in self._different or one.forbidden in self._different:
            return True
        if one.identical:
            return False
        if one.found in query.relevant_doc_ids:
            return True
        return one.found in self._wanted and (one.numbered or one.forbidden in self._wanted)


def _question(one: "Lookalike") -> str:
    found, forbidden = _shown(one.found), _shown(one.forbidden)
    return (
        f"{found} looks like {forbidden}, which is forbidden here: is this the forbidden document? Write its id in the "
        f"contract as in the run; if they are different documents, add {found} to {KEY} in the config"
    )


def _shown(doc_id: str) -> str:
    """Return an id in quotes, with what nobody sees as escapes."""
    from ragcontract.core.invisible import without_invisible

    text = shorten(doc_id, bounds.VALUE_TEXT)
    return repr(text) if without_invisible(text) == text else ascii(text)
