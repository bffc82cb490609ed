"""A golden query as everything but its reader sees it."""

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warn"]


class GoldenQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A question and what must hold for it, with defaults filled in and ids as text.

    ``location`` is where the row stands, as ``golden.jsonl:17``. A query without relevant documents is unanswerable.
    ``rules`` are the entries of the row's field of that name; what other fields ask for, each rule reads from them.
    """

    id: str
    query: str
    relevant_doc_ids: tuple[str, ...]
    location: str
    must_rank_at_most: int | None = None
    must_include_any: bool = False
    forbidden_doc_ids: tuple[str, ...] = ()
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    relevance: dict[str, float] | None = None
    severity: Severity = "error"
    rules: tuple[Struct, ...] = ()

    @property
    def answerable(self) -> bool:
        """Whether the query has relevant documents, and therefore counts in the means of ranking metrics."""
        return bool(self.relevant_doc_ids)
