"""The golden query record used everywhere after the golden file is read."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Literal

from msgspec import Struct

from ragcontract.core.phrase import Location

Severity = Literal["error", "warn"]
Mode = Literal["trustworthy", "disputed", "abstain"]
PLACEHOLDER = (
    "TODO"  # what `rag-contract init` writes in place of relevant documents, or of what an answer must contain
)

FEWEST_LABELLED = 10  # queries; with fewer, reports do not say what further labels could change
RELEVANT_GRADE = 1  # the grade from which a document is relevant, unless `relevance_level` in the config says another


class Criterion(Struct, frozen=True, kw_only=True, gc=False):
    """A criterion for an answer, in words that a judge reads. The ``id`` is unique among the criteria of a query."""

    id: str
    text: str


class ExpectedAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """The expected answer of a golden query, apart from its rules; None is a field that the row does not have."""

    reference: str | None = None  # a good answer
    reference_claims: tuple[str, ...] | None = None  # the statements of the good answer
    reference_contexts: tuple[str, ...] | None = None  # the texts that must be retrieved
    reference_tool_calls: tuple[Struct, ...] | None = None  # the calls that must be made; if empty, there must be none
    expected_mode: Mode | None = None
    expected_label: str | None = None
    criteria: tuple[Criterion, ...] | None = None  # a judge says whether the answer meets them
    turns: tuple[str, ...] | None = None  # what the user says in each turn of a conversation
    tier: str | None = None
    as_evaluated: str | None = None  # the benchmark whose own matching applies to the row


class GoldenQuery(Struct, frozen=True, kw_only=True, gc=False):
    """A question and its expectations, with defaults filled in and ids as text."""

    id: str
    query: str
    relevant_doc_ids: tuple[str, ...]  # a query without any is unanswerable
    location: Location  # the file and line of the row, such as ``golden.jsonl:17``
    must_rank_at_most: int | None = None
    must_include_any: bool | None = None  # None: as per_query.must_include in the configuration says
    forbidden_doc_ids: tuple[str, ...] = ()
    weight: float = 1.0
    tags: tuple[str, ...] = ()
    relevance: dict[str, float] | None = None
    severity: Severity = "error"
    # The entries of the row's ``rules``, and the rules made from fields about the answer (``answer_must_include``).
    # Rules about documents read their fields directly.
    rules: tuple[Struct, ...] = ()
    answer: ExpectedAnswer | None = None  # None for a row about documents only
    names_documents: bool = True  # false for a row without ``relevant_doc_ids``, of which only forbidden ones count

    def wants_any(self, by_default: bool) -> bool:  # noqa: FBT001
        """Return whether one relevant document is enough; ``by_default`` is what the configuration says."""
        return by_default if self.must_include_any is None else self.must_include_any

    @property
    def turns(self) -> int:
        """How many turns the conversation has; 0 if the query is not a conversation."""
        return len(self.answer.turns or ()) if self.answer else 0

    @property
    def needs_results(self) -> bool:
        """True if the query wants or forbids documents, so that a row must say what was retrieved."""
        return self.names_documents or bool(self.forbidden_doc_ids)

    @property
    def answerable(self) -> bool:
        """True if the query has relevant documents. Only such queries count in the means of ranking metrics."""
        return bool(self.relevant_doc_ids)

    @property
    def is_unlabelled(self) -> bool:
        """True if the row names the placeholder and no other document that answers the query."""
        return self.relevant_doc_ids == (PLACEHOLDER,) and (self.relevance or {}).keys() <= {PLACEHOLDER}

    @property
    def only_forbids(self) -> bool:
        """True if the query only forbids documents: it wants none, and has no rules."""
        return bool(self.forbidden_doc_ids) and not self.relevant_doc_ids and not self.rules


def named_in(queries: Iterable[GoldenQuery]) -> frozenset[str]:
    """Return the documents that golden queries want or grade."""
    return frozenset(chain.from_iterable((*query.relevant_doc_ids, *(query.relevance or ())) for query in queries))


def graded_from(level: float, relevance: Mapping[str, float]) -> tuple[str, ...]:
    """Return the documents with at least that grade; a placeholder counts with any grade."""
    return tuple([doc_id for doc_id, grade in relevance.items() if grade >= level or doc_id == PLACEHOLDER])
