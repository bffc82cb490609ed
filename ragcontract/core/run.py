"""Records of a run: its rows, the ranks and values that are computed from them, its latency, its files."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from operator import attrgetter
from typing import Annotated, Any, ClassVar, TypeAlias, cast

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.core.ids import Id, Tag, as_ids

VERSION_FIELDS = (
    "embedding_model",
    "index_version",
    "chunking_version",
    "retriever_version",
    "llm_model",
    "prompt_version",
)
versions_in = attrgetter(*VERSION_FIELDS)  # the versions in a row, in this order
SCORED_BY = "scored_by"  # of scores files
COMPARED_VERSIONS = (*VERSION_FIELDS, SCORED_BY)
# Fields that every check reads. Other fields are decoded only if a metric or a rule of the contract needs them.
ALWAYS = frozenset({"query_id", "results", "latency_ms", "error", *VERSION_FIELDS})
RESULT_ALWAYS = frozenset({"doc_id", "score", "chunk_id", "metadata"})
# The fields that a judge reads: what was retrieved, and what was answered, which messages may contradict.
CONTEXT_FIELDS = frozenset({"retrieved_contexts", "results.text"})
RESPONSE_FIELDS = frozenset({"response", "error", "messages"})
# The fields that reports show of a broken query, if metrics or rules read any of them.
SAID = frozenset(
    {
        "response",
        "error",
        "mode",
        "label",
        "refusal",
        "finish_reason",
        "tool_calls",
        "messages",
        "retrieved_contexts",
        "results.text",
    }
)
_ABOUT_RESULTS = "What was retrieved, best first; may be absent if the golden row wants and forbids no documents."

Json: TypeAlias = dict[str, Any]
CallJson = Annotated[Json, Meta(title='an object such as {"name": "get_order", "arguments": {"id": "7"}}')]
MessageJson = Annotated[Json, Meta(title='an object such as {"role": "user", "content": "Hello"}')]
AnswerText = Annotated[str, Meta(max_length=bounds.ANSWER, title=f"text of at most {bounds.ANSWER:,} characters")]

# For messages about values that are none; values themselves are parsed, not matched.
_TIME = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?"
    r"([Zz]|[+-]([01]\d|2[0-3]):?[0-5]\d)$(?!\n)"
)
Moment: TypeAlias = Annotated[
    datetime, Meta(tz=True, title="a time as 2026-01-31T12:00:00Z", extra_json_schema={"pattern": _TIME})
]


class Skipped(Struct, frozen=True, gc=False):
    """An object whose fields are skipped when decoding; rows may contain megabytes of text."""


_ABSENT: list["Result"] = []


def no_results() -> list["Result"]:
    """Return the results of a row without that field, which :func:`lacks_results` distinguishes from an empty list."""
    return _ABSENT


def lacks_results(row: "RunRow") -> bool:
    """Return whether the row has no field ``results``, which is only allowed if the query names no documents."""
    return row.results is _ABSENT


# The names that other tools have for fields of a row.
_NAMES_ELSEWHERE = {
    "response": (
        *("answer", "actual_output", "completion", "generated_answer", "generated_text", "output"),
        *("final_answer", "generation", "reply"),
    ),
    "retrieved_contexts": ("context", "contexts", "retrieval_context"),
    "tool_calls": ("tools", "tools_called", "function_call"),
    "mode": ("actual_mode",),
    "finish_reason": ("stop_reason", "finishReason", "stopReason", "done_reason"),
}
OTHER_NAMES = {name: field for field, names in _NAMES_ELSEWHERE.items() for name in names}
_VAGUE_NAMES = {
    "text": "response",
    "content": "response",
    "documents": "results",
    "source_documents": "results",
    "retrieved_documents": "results",
    "retrieved_doc_ids": "results",
    "calls": "tool_calls",
    "actions": "tool_calls",
    "function_calls": "tool_calls",
    "tool_uses": "tool_calls",
}


# These records hold all fields that an application can export. Readers decode the `row_type` with the fields that are
# needed. There may be millions of rows, and none is part of a reference cycle, so gc=False saves garbage collection.
class Result(Struct, frozen=True, kw_only=True, gc=False):
    """One retrieved item."""

    doc_id: Annotated[Id, Meta(description="The document.")]
    score: Annotated[float | None, Meta(description="The retriever's score; it never reorders the results.")] = None
    chunk_id: Annotated[Id | None, Meta(description="The chunk, where chunks are retrieved.")] = None
    metadata: Annotated[Skipped | None, Meta(description="Anything; not read.")] = None
    text: Annotated[str | None, Meta(description="The text of the result.")] = None


class ListedResult(Struct, frozen=True, kw_only=True, gc=False):
    """One result as reports list it for a broken query."""

    doc_id: str
    score: float | None = None
    chunk_id: str | None = None


class RunRow(Struct, frozen=True, kw_only=True, gc=False):
    """A line of the run file. The order of ``results`` is the ranking."""

    unparsed: ClassVar[frozenset[str]] = frozenset()  # see :func:`row_type`
    unread_notes: ClassVar[Callable[[Json], Iterator[str]] | None] = None
    # Names that other tools have for fields, each with our field and what to do.
    other_names: ClassVar[dict[str, tuple[str, str]]] = {
        name: (field, f"did you mean {field!r}?") for name, field in (OTHER_NAMES | _VAGUE_NAMES).items()
    }
    query_id: Annotated[Id, Meta(description="The id of a golden query.")]
    results: Annotated[list[Result], Meta(description=_ABOUT_RESULTS)] = msgspec.field(default_factory=no_results)
    latency_ms: Annotated[
        Annotated[float, Meta(ge=0, le=bounds.MILLISECONDS, title="a number from 0 to a billion")] | None,
        Meta(description="How long the retrieval took, in milliseconds."),
    ] = None
    embedding_model: Annotated[Id | None, Meta(description="The embedding model and its version.")] = None
    index_version: Annotated[Id | None, Meta(description="The version of the index.")] = None
    chunking_version: Annotated[Id | None, Meta(description="The version of the chunking.")] = None
    retriever_version: Annotated[Id | None, Meta(description="The version of the retriever.")] = None
    llm_model: Annotated[Id | None, Meta(description="The language model and its version.")] = None
    prompt_version: Annotated[Id | None, Meta(description="The version of the prompt.")] = None
    query: Annotated[
        Annotated[str, Meta(max_length=bounds.QUESTION, title=f"text of at most {bounds.QUESTION:,} characters")]
        | None,
        Meta(description="The question; read by `label` and `init --from-run` only."),
    ] = None
    response: Annotated[
        AnswerText | UnsetType | None, Meta(description="What the application answered; null if it did not.")
    ] = UNSET
    error: Annotated[AnswerText | None, Meta(description="Why there is no answer.")] = None
    error_detail: Annotated[Json | None, Meta(description="What else is known of the error; read by no rule.")] = None
    context_chars: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="How many characters of context the model got; read by no rule."),
    ] = None
    retrieved_contexts: Annotated[list[str] | None, Meta(description="The texts that the model saw.")] = None
    tool_calls: Annotated[list[CallJson] | None, Meta(description="The tools that were called.")] = None
    messages: Annotated[list[MessageJson] | None, Meta(description="A conversation of several turns.")] = None
    mode: Annotated[str | None, Meta(description="How the application answered.")] = None
    label: Annotated[Tag | None, Meta(description="The class that the application chose.")] = None
    refusal: Annotated[str | None, Meta(description="The model's refusal.")] = None
    finish_reason: Annotated[str | None, Meta(description="Why the model stopped.")] = None
    scores: Annotated[
        dict[str, float | None] | None, Meta(description="Numbers that other tools computed, by name.")
    ] = None
    checks: Annotated[dict[str, bool | Json] | None, Meta(description="Checks that something else made.")] = None

    @property
    def doc_ids(self) -> list[str]:
        """The ids of the retrieved documents, best first."""
        return as_ids([result.doc_id for result in self.results])


def has_failed(check: object) -> bool:
    """Return whether a check of a row, which may be any value, did not pass; one with an error was not made."""
    return check is False or (isinstance(check, dict) and (check.get("passed") is False or bool(check.get("error"))))


def unread_notes(row: Json, read: frozenset[str]) -> Iterator[str]:
    """Yield messages about the checks of a decoded row that failed, and its scores, unless these fields are read."""
    checks, scores = (None if name in read else row.get(name) for name in ("checks", "scores"))
    failed = [name for name, check in checks.items() if has_failed(check)] if isinstance(checks, dict) else []
    if failed:
        yield f"checks has {', '.join(map(repr, failed[: bounds.NAMES]))}, which failed, and no rule `check` reads it"
    if scores and isinstance(scores, dict):
        names = ", ".join(map(repr, [*scores][: bounds.NAMES]))
        yield f"scores has {names}, which no metric reads; declare it under metrics in ragcontract.yml"


def mode_of(row: RunRow) -> str | None:
    """Return the mode of a row. It is None if the application failed, even if the row says that it abstained."""
    return None if row.error is not None else row.mode


@lru_cache(maxsize=64)
def row_type(
    needs: frozenset[str] = frozenset(),
    *,
    unparsed: frozenset[str] = frozenset(),
    results_required: bool = True,
    is_judged: bool = False,
) -> type[RunRow]:
    """Return a record type with the fields that every check reads and those in ``needs``, and no others.

    ``needs`` names fields of a row, such as ``response``, and of a result, such as ``results.text``. Reading any other
    field raises AttributeError, so a metric that does not declare a field fails in its first test. Only a contract with
    queries that name no documents accepts rows without ``results``. ``unparsed`` fields remain as they are in the file,
    as ``msgspec.Raw``. Nothing is checked in them, and they take no longer than fields that are skipped. With
    ``is_judged``, ``unread_notes`` reports failed checks of the first rows if ``checks`` is not read, and their scores
    if ``scores`` is not. ``error`` is always read, because it explains why a row has no results. It may be any value if
    nothing needs it.
    """
    of_result = {name.removeprefix("results.") for name in needs | unparsed if "." in name}
    raw = {name.removeprefix("results."): Raw | UnsetType for name in unparsed}
    result = _narrow(Result, RESULT_ALWAYS | of_result, raw)
    results = Annotated[list[result], Meta(description=_ABOUT_RESULTS)]  # type: ignore[valid-type]
    types = {**raw, "results": results} if "error" in needs else {**raw, "results": results, "error": Any}
    made = _narrow(RunRow, ALWAYS | needs | unparsed, types, results_required=results_required)
    made.unparsed = unparsed  # type: ignore[attr-defined]
    made.unread_notes = partial(unread_notes, read=needs) if is_judged else None  # type: ignore[attr-defined]
    return cast("type[RunRow]", made)


def _narrow(
    record: type[Struct], names: Iterable[str], replaced: dict[str, Any], *, results_required: bool = True
) -> type[Struct]:
    included = set(names)
    fields: list[Any] = []
    for field in msgspec.structs.fields(record):
        if field.name not in included:
            continue
        kind = replaced.get(field.name, record.__annotations__[field.name])
        if field.required or (results_required and field.name == "results"):
            fields.append((field.name, kind))
        elif field.name == "results":
            fields.append((field.name, kind, msgspec.field(default_factory=no_results)))
        else:
            fields.append((field.name, kind, UNSET if field.name in replaced and kind is not Any else field.default))
    namespace: dict[str, Any] = {"__doc__": record.__doc__}
    if record is RunRow:
        namespace["doc_ids"] = RunRow.doc_ids
    return msgspec.defstruct(record.__name__, fields, namespace=namespace, frozen=True, kw_only=True, gc=False)


class Latency(Struct, frozen=True, kw_only=True):
    """Retrieval latency in milliseconds over the ``rows`` that report one; percentiles by nearest rank."""

    rows: Annotated[int, Meta(ge=1)]
    p50_ms: Annotated[float, Meta(ge=0)]
    p95_ms: Annotated[float, Meta(ge=0)]
    max_ms: Annotated[float, Meta(ge=0)]


class SourceFile(Struct, frozen=True, kw_only=True):
    """An input file and the SHA-256 of its bytes on disk.

    ``path`` may be a pattern that stands for several files, whose digest is empty.
    """

    path: str
    sha256: str


Ranks: TypeAlias = tuple[int | None, ...]
Values: TypeAlias = tuple[float, ...]  # a number per metric of a family; empty if they do not apply to the query
Means: TypeAlias = dict[str, float | None]
# The number of rows by expected and actual class; the latter is None for a row without one.
Confusion: TypeAlias = Mapping[tuple[str, str | None], int]
RanksById: TypeAlias = Mapping[str, int | None]


class QueryScore(Struct, frozen=True, kw_only=True, gc=False):
    """The ranks and ranking metrics of one run row, or of all rows of a query together.

    A score contains no ids, so all queries with the same ranks share one object, which saves memory.
    """

    # The 1-based rank of each relevant (forbidden) document of the golden query, in its order and at any depth. None
    # stands for a document that was not retrieved.
    ranks: Ranks
    forbidden_ranks: Ranks
    values: Values  # a number per metric, in the order of the requested metrics; empty for an unanswerable query
    # The best rank of a relevant document (1 for an unanswerable query) if all of them are in the top k and no
    # forbidden document was retrieved, otherwise 0. Unless it is 0, only ``must_rank_at_most`` can be violated.
    clean_rank: int = 0
    judged: Values = ()  # the share of judged results at each cut-off
    if_relevant: Values = ()  # the best that ``values`` can be, whatever unjudged results are; empty if all are judged
    repeats: tuple["QueryScore", ...] = ()  # the scores of the single rows, if a query has several


def ranks_by_id(doc_ids: Sequence[str], ranks: Sequence[int | None]) -> dict[str, int | None]:
    """Return the rank of each document, in the order of ``doc_ids``."""
    return dict(zip(doc_ids, ranks, strict=True))
