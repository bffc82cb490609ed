"""The golden query record used everywhere after the golden file is read."""

from typing import Literal

from msgspec import Struct

Severity = Literal["error", "warn"]


class GoldenQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A question and its expectations, with defaults filled in and ids as text.

    ``location`` is the file and line of the row, such as ``golden.jsonl:17``. A query without relevant documents is
    unanswerable. ``rules`` holds the entries of the row's ``rules`` field; rules configured by other fields read those
    fields directly.
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
        """Whether the query has relevant documents and therefore counts in the means of ranking metrics."""
        return bool(self.relevant_doc_ids)
