"""What a trace says was retrieved: which of its spans counts, and the results in it.

The attributes are those of OpenInference (spec at 1fe497f) and of OpenTelemetry's GenAI conventions
(open-telemetry/semantic-conventions-genai, in development).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from ragcontract.core.safe_text import shorten, visible
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.result_forms import DocumentIds, Retrieved, that_counts
from ragcontract.record.traces.spans import Attributes, Span, ancestors, at, listed_at, parsed

KIND, OPERATION = "openinference.span.kind", "gen_ai.operation.name"
RETRIEVED, RANKED = "retrieval.documents", "reranker.output_documents"
GENAI = "gen_ai.retrieval.documents"
Use = Literal["retriever", "reranker"]
SEVERAL = "several_retrievals"


class Reading(Struct, frozen=True, kw_only=True):
    """How a trace is read: which ranking counts, and what to do where that is not certain.

    ``use`` is None for a reranker's if there is one. ``retrieved`` says which of several retrievals counts. With
    ``accept_empty``, a retrieval that says nothing of documents has found none.
    """

    ids: DocumentIds
    use: Use | None = None
    retrieved: Retrieved | None = None
    accept_empty: bool = False


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
        """Whether documents may be missing: each one has attributes of its own, and some were dropped."""
        lists = (at(self.span.attributes, path) for path in (RETRIEVED, RANKED, GENAI))
        return self.span.dropped > 0 and not any(isinstance(parsed(one), list) for one in lists)


def kind_of(span: Span) -> str:
    """Return what a span stands for, in OpenInference's words; empty if that is not known."""
    found = at(span.attributes, KIND)
    if isinstance(found, str) and found:
        return found.upper()
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

    Raises CallFailed if a retrieval does not say what it found, a result names no document, or several retrievals
    would count.
    """
    by_id = {span.id: span for span in spans}
    retrievers = [span for span in spans if kind_of(span) == "RETRIEVER"]
    retrieved = _outermost([(span, _retrieved(span)) for span in retrievers], by_id)
    ranked = _outermost([(span, _ranked(span)) for span in spans if kind_of(span) == "RERANKER"], by_id)
    if reading.use == "reranker" and not ranked:
        raise CallFailed("no_documents", "the trace has no reranker with documents, and `use: reranker` asks for one")
    if reading.use is None:  # what a retriever does within itself shows in what it returns
        inside = {one.span.id for one in retrieved}
        ranked = [one for one in ranked if inside.isdisjoint(span.id for span in ancestors(one.span, by_id))]
        first = retrieved[0].span.start if retrieved else 0
        ranked = [one for one in ranked if one.span.start >= first]
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
    """Raise CallFailed if a retrieval that counts says nothing of documents, though others do.

    One that is within another or around it is the same retrieval. One that failed has found nothing.
    """
    having = {one.span.id for one in retrieved}
    around = {above.id for one in retrieved for above in ancestors(one.span, by_id)}
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
    """Return the rankings of those spans that have one and are not within another that has one, in time's order."""
    having = {span.id: _Ranking(span=span, documents=found) for span, found in spans if found is not None}
    outer = [one for one in having.values() if not any(above.id in having for above in ancestors(one.span, by_id))]
    return sorted(outer, key=lambda one: (one.span.start, one.span.end))


def _chosen(rankings: Sequence[_Ranking], reading: Reading) -> Sequence[_Document]:
    if len(rankings) > 1 and reading.retrieved is None:
        why = "say which counts, first, last or concat: with `retrieved` under `traces`, or convert --retrieved"
        raise CallFailed(SEVERAL, f"retrieved {len(rankings)} times for one question; {why}")
    lost = next((one.span for one in rankings if one.is_cut), None)
    if lost is not None:
        name, many = shorten(visible(lost.name), 80), lost.dropped
        why = "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=100000 where the application runs"
        raise CallFailed("no_documents", f"the span {name!r} lost {many:,} attributes, maybe documents; {why}")
    return that_counts([one.documents for one in rankings], reading.retrieved)


def _filled(ranked: Sequence[_Document], retrieved: Sequence[_Ranking]) -> list[_Document]:
    """Return what a reranker ranked with the metadata that only the retrievers said."""
    known = [document for one in retrieved for document in one.documents]
    by_own = {one.own: one for one in known if one.own}
    by_text = {one.text: one for one in known if one.text}
    filled = []
    for one in ranked:
        of = by_own.get(one.own or "") or by_text.get(one.text or "")
        if of is not None:
            one = _Document(  # noqa: PLW2901
                own=one.own or of.own, text=one.text or of.text, score=one.score, metadata=one.metadata or of.metadata
            )
        filled.append(one)
    return filled


def _results(documents: Iterable[_Document], reading: Reading) -> list[dict[str, Any]]:
    return [
        {
            name: value
            for name, value in (
                ("doc_id", reading.ids.of(own=one.own, metadata=one.metadata, text=one.text)),
                ("chunk_id", one.own),
                ("score", one.score),
                ("text", one.text),
                ("metadata", one.metadata or None),
            )
            if value is not None
        }
        for one in documents
    ]


def _retrieved(span: Span) -> list[_Document] | None:
    """Return what a retrieval found; None if it does not say."""
    found = listed_at(span.attributes, RETRIEVED)
    if found is not None:
        return list(_with_ids(map(_document, found), span))
    found = listed_at(span.attributes, GENAI)
    if found is not None:
        return [_genai(one) for one in found]
    output = parsed(at(span.attributes, "output.value"))
    return [] if output in ([], {"documents": []}) and span.error is None else None


def _ranked(span: Span) -> list[_Document] | None:
    found = listed_at(span.attributes, RANKED)
    return None if found is None else [_document(one) for one in found]


def _document(item: Attributes) -> _Document:
    metadata = parsed(at(item, "document.metadata"))
    return _Document(
        own=_own(at(item, "document.id")),
        text=_text(at(item, "document.content")),
        score=_score(at(item, "document.score")),
        metadata=metadata if isinstance(metadata, Mapping) else {},
    )


def _with_ids(documents: Iterable[_Document], span: Span) -> Iterator[_Document]:
    """Yield documents with the ids that LangChain's instrumentation has only in the span's output."""
    listed = list(documents)
    output = parsed(at(span.attributes, "output.value")) if not any(one.own for one in listed) else None
    said = output.get("documents") if isinstance(output, Mapping) else None
    for number, one in enumerate(listed):
        other = said[number] if isinstance(said, list) and len(said) == len(listed) else None
        if isinstance(other, Mapping) and other.get("page_content") == one.text and (own := _own(other.get("id"))):
            yield _Document(own=own, text=one.text, score=one.score, metadata=one.metadata)
        else:
            yield one


def _genai(item: Attributes) -> _Document:
    """Return a document of OpenTelemetry's, whose fields beside ``id`` and ``score`` are the application's choice."""
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
