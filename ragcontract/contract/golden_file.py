"""``golden.jsonl``: the questions, and what must be retrieved for them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from ragcontract.core.ids import Id, Rank, as_id, unique_ids
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.problems import Diagnostics
from ragcontract.files.rows import rows_of
from ragcontract.model import GoldenQuery, SourceFile

Text = Annotated[str, Meta(min_length=1)]
RELEVANT_GRADE = 1
PLACEHOLDER = "TODO"  # what `rag-contract init` writes for documents that somebody has yet to name

# Wide enough for anyone, and narrow enough that no sum overflows and no product vanishes.
Weight = Annotated[float, Meta(ge=1e-9, le=1e9, title="a number from 1e-9 to a billion")]
Grade = Annotated[float, Meta(ge=0, le=1e9, title="a number of at least 0, at most a billion")]


class GoldenRow(Struct, frozen=True, kw_only=True):
    """A line of the golden file."""

    id: Annotated[Id, Meta(description="Stable id of the query; runs refer to it.")]
    query: Annotated[Text, Meta(description="The question.")]
    relevant_doc_ids: Annotated[
        list[Id] | None,
        Meta(description="The documents that must be found. Empty: nothing answers the question."),
    ] = None
    must_rank_at_most: Annotated[
        Rank | None, Meta(description="At least one relevant document must be at this rank or better.")
    ] = None
    must_include_any: Annotated[
        bool | None, Meta(description="One relevant document in the top k is enough, instead of all.")
    ] = None
    forbidden_doc_ids: Annotated[list[Id] | None, Meta(description="Documents that must not be retrieved.")] = None
    weight: Annotated[Weight | None, Meta(description="Importance of the query in the means; 1 by default.")] = None
    tags: Annotated[list[Text] | None, Meta(description="Labels to report metrics by.")] = None
    severity: Annotated[
        Literal["error", "warn"] | None, Meta(description="With warn, its broken rules are shown and do not fail.")
    ] = None
    metadata: Annotated[dict[str, Any] | None, Meta(description="Anything; not looked at.")] = None
    relevance: Annotated[
        dict[Text, Grade] | None,
        Meta(description="Grades of documents; with it, relevant_doc_ids may be left out: those of grade 1 or more."),
    ] = None

    schema_extra: ClassVar[dict[str, Any]] = {
        "anyOf": [
            {"required": ["relevant_doc_ids"], "properties": {"relevant_doc_ids": {"type": "array"}}},
            {"required": ["relevance"], "properties": {"relevance": {"type": "object"}}},
        ]
    }


class Golden(Struct, frozen=True, kw_only=True):
    """The golden set, by query id in the file's order.

    ``metadata`` is where the first row with metadata stands, which are not held; None where no row has any.
    """

    queries: dict[str, GoldenQuery]
    files: list[SourceFile]
    metadata: str | None = None


def read_golden(paths: Sequence[str], diagnostics: Diagnostics, progress: Progress = no_progress) -> Golden:
    """Read the golden files as one set; ids must be unique over all of them."""
    lines = rows_of(paths, GoldenRow, diagnostics, progress=progress)
    queries: dict[str, GoldenQuery] = {}
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}  # tags: many queries have the same
    metadata = None
    for rows in lines.batches():
        for number, row in enumerate(rows, lines.number):
            location = f"{lines.path}:{number}"
            if row.metadata and metadata is None:
                metadata = location
            query = _query(row, location, shared, diagnostics)
            if query is None:
                continue
            if query.id in queries:
                first = queries[query.id].location
                diagnostics.problem(f"{location}: id", f"{query.id!r} stands here again; it is first in {first}")
            else:
                queries[query.id] = query
    for warning in contract_warnings(queries.values()):
        diagnostics.warning(warning)
    return Golden(queries=queries, files=lines.files, metadata=metadata)


def contract_warnings(queries: Iterable[GoldenQuery]) -> Iterator[str]:
    """Yield a warning for what is surely not meant, and can be judged all the same: it fails."""
    unnamed = []
    for query in queries:
        if query.forbidden_doc_ids and (both := both_relevant_and_forbidden(query)):
            yield f"{query.location}: {both[0]!r} is both relevant and forbidden, so the query can never pass"
        if PLACEHOLDER in query.relevant_doc_ids:
            unnamed.append(query)
    if unnamed:
        others = f" (and {len(unnamed) - 1} more such rows)" if len(unnamed) > 1 else ""
        advice = "write the ids of the documents that answer the question, or [] if nothing does"
        yield f"{unnamed[0].location}: {PLACEHOLDER!r} still stands for relevant documents{others}; {advice}"


def both_relevant_and_forbidden(query: GoldenQuery) -> list[str]:
    """Return the documents that a query wants and forbids at once."""
    return sorted(set(query.relevant_doc_ids) & set(query.forbidden_doc_ids))


def _query(
    row: GoldenRow, location: str, shared: dict[tuple[str, ...], tuple[str, ...]], diagnostics: Diagnostics
) -> GoldenQuery | None:
    tags = tuple(dict.fromkeys(row.tags)) if row.tags else ()
    relevant = _relevant(row, location, diagnostics)
    if relevant is None:
        return None
    if row.must_rank_at_most is not None and not relevant:
        diagnostics.problem(f"{location}: must_rank_at_most", "needs at least one relevant document to rank")
    return GoldenQuery(
        id=as_id(row.id),
        query=row.query,
        relevant_doc_ids=relevant,
        location=location,
        must_rank_at_most=row.must_rank_at_most,
        must_include_any=bool(row.must_include_any),
        forbidden_doc_ids=unique_ids(row.forbidden_doc_ids),
        weight=1.0 if row.weight is None else row.weight,
        tags=shared.setdefault(tags, tags),
        relevance=row.relevance,
        severity=row.severity or "error",
    )


def _relevant(row: GoldenRow, location: str, diagnostics: Diagnostics) -> tuple[str, ...] | None:
    if row.relevance is None:
        if row.relevant_doc_ids is None:
            diagnostics.problem(
                f"{location}: relevant_doc_ids",
                "is missing; give the documents to be found, or [] if nothing answers it",
            )
            return None
        return unique_ids(row.relevant_doc_ids)
    graded = tuple([doc_id for doc_id, grade in row.relevance.items() if grade >= RELEVANT_GRADE])
    listed = graded if row.relevant_doc_ids is None else unique_ids(row.relevant_doc_ids)
    if unequal := sorted(set(listed) ^ set(graded)):
        side = "only in relevant_doc_ids" if unequal[0] in listed else "of grade 1 or more only in relevance"
        diagnostics.problem(f"{location}: relevance", f"disagrees with relevant_doc_ids: {unequal[0]!r} is {side}")
        return None
    return listed
