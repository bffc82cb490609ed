"""Define the spans of a trace, and find its results: which of its retrievals counts, and the documents in it.

The attributes are those of OpenInference (spec at 1fe497f) and of OpenTelemetry's GenAI conventions
(open-telemetry/semantic-conventions-genai, in development). They are flat, as on the wire, or nested, as some tools
write them.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.json_text import check_nesting
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.result_forms import DocumentIds, Retrieved, that_counts

Attributes = Mapping[str, Any]
REDACTED = "__REDACTED__"  # what OpenInference has in place of a value that it hides


class SpanError(ValueError):
    """Something is not a span, or is too large to be read as one; the message says what was expected."""


class Span(Struct, frozen=True, kw_only=True):
    """What is read of a span. Ids are hexadecimal."""

    trace: str
    id: str
    parent: str = ""  # empty if it has none
    name: str = ""
    start: int = 0  # ns
    end: int = 0  # ns
    error: str | None = None  # the message if the span failed
    dropped: int = 0  # how many attributes the sender left out, because there were too many
    attributes: Attributes = {}


def at(attributes: Attributes, path: str) -> Any:
    """Return the attribute ``a.b.c``, however it is split into keys; None if it is missing or hidden."""
    if path in attributes:
        return None if attributes[path] == REDACTED else attributes[path]
    head, dot, rest = path.partition(".")
    while dot:
        if isinstance(inner := attributes.get(head), Mapping) and (value := at(inner, rest)) is not None:
            return value
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def text_at(attributes: Attributes, *paths: str) -> str | None:
    """Return the first of several attributes that is a text and not empty."""
    return next((value for path in paths if isinstance(value := at(attributes, path), str) and value), None)


def listed_at(attributes: Attributes, path: str) -> list[Attributes] | None:
    """Return the objects that an attribute lists; None if there is no such attribute.

    They may be a list, a list as JSON, or flat keys such as ``path.0.name``. Raises SpanError if there are too many.
    """
    items = parsed(at(attributes, path))
    if not isinstance(items, Sequence) or isinstance(items, str):
        items = _flat(attributes, path)
    elif len(items) > bounds.RETURNED:
        raise SpanError(f"{path}: lists more than {bounds.RETURNED:,} items")
    return None if items is None else [item for item in items if isinstance(item, Mapping)]


def _flat(attributes: Attributes, path: str) -> list[Attributes] | None:
    items: dict[int, dict[str, Any]] = {}
    start = f"{path}."
    for name, value in attributes.items():
        if name.startswith(start):
            number, _, rest = name[len(start) :].partition(".")
            if rest and number.isascii() and number.isdecimal() and len(number) <= len(str(bounds.RETURNED)):
                items.setdefault(int(number), {})[rest] = value
    if len(items) > bounds.RETURNED:
        raise SpanError(f"{path}: lists more than {bounds.RETURNED:,} items")
    return [items[number] for number in sorted(items)] if items else None


def parsed(value: Any) -> Any:
    """Return the list or the object that a text is as JSON; other values as they are."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"[", "{"}:
        return value
    try:
        data = value.encode()
        check_nesting(data)
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):  # among them texts that only begin like JSON
        return value


def ancestors(span: Span, by_id: Mapping[str, Span]) -> Iterator[Span]:
    """Yield the spans around a span, from the inside out; stop at a circle, which hostile traces may have."""
    seen = {span.id}
    while (parent := by_id.get(span.parent)) is not None and parent.id not in seen:
        seen.add(parent.id)
        yield parent
        span = parent


KIND, OPERATION = "openinference.span.kind", "gen_ai.operation.name"
RETRIEVED, RANKED = "retrieval.documents", "reranker.output_documents"
GENAI = "gen_ai.retrieval.documents"
Use = Literal["retriever", "reranker"]
SEVERAL = "several_retrievals"


class Reading(Struct, frozen=True, kw_only=True):
    """How a trace is read."""

    ids: DocumentIds
    use: Use | None = None  # whose ranking counts; None for the reranker's if there is one
    retrieved: Retrieved | None = None  # which of several retrievals counts
    accept_empty: bool = False  # whether a retrieval without documents in its span has found none


class _Document(Struct, frozen=True, kw_only=True):
    own: str | None = None
    text: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = {}


class _Ranking(Struct, frozen=True, kw_only=True):
    span: Span
    documents: Sequence[_Document]

    @property
    def is_cut(self) -> bool:
        """Whether documents may be missing: attributes were dropped, and each document has its own."""
        lists = (at(self.span.attributes, path) for path in (RETRIEVED, RANKED, GENAI))
        return self.span.dropped > 0 and not any(isinstance(parsed(listed), list) for listed in lists)


def kind_of(span: Span) -> str:
    """Return the kind of a span in OpenInference's words, such as ``RETRIEVER``; empty if it is not known."""
    kind = at(span.attributes, KIND)
    if isinstance(kind, str) and kind:
        return kind.upper()
    operation = at(span.attributes, OPERATION)
    if isinstance(operation, str) and operation in _OPERATIONS:
        return _OPERATIONS[operation]
    return "LLM" if at(span.attributes, "llm.request.type") in {"chat", "completion"} else ""  # OpenLLMetry


_OPERATIONS = {
    "retrieval": "RETRIEVER",
    "embeddings": "EMBEDDING",
    "chat": "LLM",
    "text_completion": "LLM",
    "generate_content": "LLM",
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "invoke_workflow": "CHAIN",
}


def results_of_spans(spans: Sequence[Span], reading: Reading) -> list[dict[str, Any]] | None:
    """Return the results of the retrieval that counts, best first; None if nothing was retrieved.

    Raises CallFailed if the span of a retrieval has no documents, a result names no document, or several retrievals
    could count.
    """
    by_id = {span.id: span for span in spans}
    retrievers = [span for span in spans if kind_of(span) == "RETRIEVER"]
    retrieved = _outermost([(span, _retrieved(span)) for span in retrievers], by_id)
    ranked = _outermost([(span, _ranked(span)) for span in spans if kind_of(span) == "RERANKER"], by_id)
    if reading.use == "reranker" and not ranked:
        raise CallFailed("no_documents", "the trace has no reranker with documents, and `use: reranker` asks for one")
    if reading.use is None:  # a retriever's documents include the work of the rerankers inside it
        inside = {ranking.span.id for ranking in retrieved}
        ranked = [
            ranking for ranking in ranked if inside.isdisjoint(span.id for span in ancestors(ranking.span, by_id))
        ]
        first = retrieved[0].span.start if retrieved else 0
        ranked = [ranking for ranking in ranked if ranking.span.start >= first]
    if ranked and reading.use != "retriever":
        # Rerankers in a row refine one retrieval; with several retrievals, each may have had its own.
        counted = ranked if len(retrieved) > 1 else ranked[-1:]
        return _results(_filled(_chosen(counted, reading), retrieved), reading)
    if retrieved:
        if not reading.accept_empty:
            _refuse_silent(retrievers, retrieved, reading, by_id)
        if documents := _chosen(retrieved, reading):
            return _results(documents, reading)
    if failed := next((span for span in retrievers if span.error is not None), None):
        raise _silent(failed)
    if retrievers and not retrieved and not reading.accept_empty:
        raise _silent(retrievers[0])
    return [] if retrievers else None


def _refuse_silent(
    retrievers: Iterable[Span], retrieved: Sequence[_Ranking], reading: Reading, by_id: Mapping[str, Span]
) -> None:
    """Raise CallFailed if the span of a retrieval that counts has no documents, although others have.

    A retrieval within another, or around it, is the same retrieval. One that failed has found nothing.
    """
    having = {ranking.span.id for ranking in retrieved}
    around = {above.id for ranking in retrieved for above in ancestors(ranking.span, by_id)}
    for span in retrievers:
        within = {above.id for above in ancestors(span, by_id)}
        if span.error is not None or span.id in having | around or within & having:
            continue
        is_before = span.start < retrieved[0].span.start
        is_after = span.start > retrieved[-1].span.start
        if reading.retrieved not in {"first", "last"} or (is_before if reading.retrieved == "first" else is_after):
            raise _silent(span)


def _silent(span: Span) -> CallFailed:
    name = shorten(visible(span.name), 80)
    if span.error is not None:
        return CallFailed("no_documents", f"the retrieval span {name!r} failed: {shorten(visible(span.error), 200)}")
    why = "have it record them; in record.yml, `empty_results: accept` takes that for none found"
    return CallFailed("no_documents", f"the retrieval span {name!r} says nothing of documents; {why}")


def _outermost(spans: Iterable[tuple[Span, Sequence[_Document] | None]], by_id: Mapping[str, Span]) -> list[_Ranking]:
    """Return the rankings in order of time, without those within the span of another ranking."""
    having = {span.id: _Ranking(span=span, documents=documents) for span, documents in spans if documents is not None}
    outer = [
        ranking
        for ranking in having.values()
        if not any(above.id in having for above in ancestors(ranking.span, by_id))
    ]
    return sorted(outer, key=lambda ranking: (ranking.span.start, ranking.span.end))


def _chosen(rankings: Sequence[_Ranking], reading: Reading) -> Sequence[_Document]:
    if len(rankings) > 1 and reading.retrieved is None:
        why = "say which counts, first, last or concat: with `retrieved` under `traces`, or convert --retrieved"
        raise CallFailed(SEVERAL, f"retrieved {len(rankings)} times for one question; {why}")
    lost = next((ranking.span for ranking in rankings if ranking.is_cut), None)
    if lost is not None:
        name, many = shorten(visible(lost.name), 80), lost.dropped
        why = "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=100000 where the application runs"
        raise CallFailed("no_documents", f"the span {name!r} lost {many:,} attributes, maybe documents; {why}")
    return that_counts([ranking.documents for ranking in rankings], reading.retrieved)


def _filled(ranked: Sequence[_Document], retrieved: Sequence[_Ranking]) -> list[_Document]:
    """Return a reranker's documents, completed with what only the spans of the retrievers have."""
    known = [document for ranking in retrieved for document in ranking.documents]
    by_own = {document.own: document for document in known if document.own}
    by_text = {document.text: document for document in known if document.text}
    filled = []
    for document in ranked:
        same = by_own.get(document.own or "") or by_text.get(document.text or "")
        if same is not None:
            own, text = document.own or same.own, document.text or same.text
            document = replace(document, own=own, text=text, metadata=document.metadata or same.metadata)  # noqa: PLW2901
        filled.append(document)
    return filled


def _results(documents: Iterable[_Document], reading: Reading) -> list[dict[str, Any]]:
    return [
        {
            name: value
            for name, value in (
                ("doc_id", reading.ids.of(own=document.own, metadata=document.metadata, text=document.text)),
                ("chunk_id", document.own),
                ("score", document.score),
                ("text", document.text),
                ("metadata", document.metadata or None),
            )
            if value is not None
        }
        for document in documents
    ]


def _retrieved(span: Span) -> list[_Document] | None:
    """Return the documents in the span of a retrieval; None if it has none."""
    items = listed_at(span.attributes, RETRIEVED)
    if items is not None:
        return list(_with_ids(map(_document, items), span))
    items = listed_at(span.attributes, GENAI)
    if items is not None:
        return [_genai(item) for item in items]
    output = parsed(at(span.attributes, "output.value"))
    return [] if output in ([], {"documents": []}) and span.error is None else None


def _ranked(span: Span) -> list[_Document] | None:
    items = listed_at(span.attributes, RANKED)
    return None if items is None else [_document(item) for item in items]


def _document(item: Attributes) -> _Document:
    metadata = parsed(at(item, "document.metadata"))
    return _Document(
        own=_own(at(item, "document.id")),
        text=_text(at(item, "document.content")),
        score=_score(at(item, "document.score")),
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _with_ids(documents: Iterable[_Document], span: Span) -> Iterator[_Document]:
    """Yield documents with their ids, which LangChain's instrumentation writes only into the span's output."""
    listed = list(documents)
    output = parsed(at(span.attributes, "output.value")) if not any(document.own for document in listed) else None
    from_output = output.get("documents") if isinstance(output, Mapping) else None
    for number, document in enumerate(listed):
        other = from_output[number] if isinstance(from_output, list) and len(from_output) == len(listed) else None
        if isinstance(other, Mapping) and other.get("page_content") == document.text and (own := _own(other.get("id"))):
            yield replace(document, own=own)
        else:
            yield document


def _genai(item: Attributes) -> _Document:
    """Return a document in OpenTelemetry's form; its fields beside ``id`` and ``score`` are up to the application."""
    further = {name: value for name, value in item.items() if name not in {"id", "score", "content", "metadata"}}
    metadata = parsed(item.get("metadata"))
    return _Document(
        own=_own(item.get("id")),
        text=_text(item.get("content")) or _text(item.get("text")),
        score=_score(item.get("score")),
        metadata={**further, **(metadata if isinstance(metadata, Mapping) else {})},
    )


def _own(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) and value != "" else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _score(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) else None
