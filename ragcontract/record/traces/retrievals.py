"""Define the spans of a trace, and find its results: which of its retrievals counts, and the documents in it.

The attributes are those of OpenInference (spec at 1fe497f) and of OpenTelemetry's GenAI conventions
(open-telemetry/semantic-conventions-genai, in development). They are flat, as on the wire, or nested, as some tools
write them.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.json_text import check_nesting
from ragcontract.record.interface import CallFailed
from ragcontract.record.returned.result_forms import DocumentIds, Retrieved

Attributes = Mapping[str, Any]
REDACTED = "__REDACTED__"  # what OpenInference has in place of a value that it hides


class SpanError(ValueError):
    """Something is not a span, or is too large to be read as one; the message says what was expected."""


class Span(Struct, frozen=True, kw_only=True):
    """The parts of a span that are read. Ids are hexadecimal."""

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
    """Return the objects that an attribute lists; None if the attribute is missing.

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


def _around(ids: Iterable[str], by_id: Mapping[str, Span]) -> set[str]:
    """Return the ids of the spans around some."""
    around: set[str] = set()
    for span_id in ids:
        for above in ancestors(by_id[span_id], by_id):
            if above.id in around:
                break
            around.add(above.id)
    return around


def _within(ids: Container[str], spans: Iterable[Span], by_id: Mapping[str, Span]) -> set[str]:
    """Return the ids of those spans, and of some around them, that are within one with one of these ids.

    It looks at each span once: hostile traces are deep.
    """
    is_within: dict[str, bool] = {}
    for span in spans:
        path, above = list[Span](), by_id.get(span.id)
        while above is not None and above.id not in is_within:
            is_within[above.id] = False  # stops at a circle, too
            path.append(above)
            above = by_id.get(above.parent)
        inside = above is not None and (is_within[above.id] or above.id in ids)
        for below in reversed(path):
            is_within[below.id] = inside
            inside = inside or below.id in ids
    return {span_id for span_id, inside in is_within.items() if inside}


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
    documents: Sequence[_Document] | None  # None if the span says nothing of them

    @property
    def is_reranker(self) -> bool:
        return kind_of(self.span) == "RERANKER"

    @property
    def has_failed(self) -> bool:
        return self.span.error is not None

    @property
    def found_nothing(self) -> bool:
        """True if the retrieval failed and has no documents. False for a reranker."""
        return self.has_failed and not self.documents and not self.is_reranker

    @property
    def is_cut(self) -> bool:
        """True if documents may be missing: attributes were dropped, and each document has its own."""
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

    Raises CallFailed if the span of a retrieval or of a reranker that may count has no documents or failed, a result
    names no document, or several retrievals could count.
    """
    by_id = {span.id: span for span in spans}
    retrieved = _rankings(spans, "RETRIEVER", _retrieved, by_id)
    ranked = _rankings(spans, "RERANKER", _ranked, by_id)
    if reading.use == "reranker" and not ranked:
        raise CallFailed("no_documents", "the trace has no reranker with documents, and `use: reranker` asks for one")
    counted = _counted(retrieved, list(_filled(ranked, retrieved)), reading, by_id)
    if not counted:
        return None
    documents = _chosen([ranking for ranking in counted if not ranking.found_nothing], reading)
    failed = next((ranking for ranking in counted if ranking.found_nothing), None)
    if failed is not None and not documents:
        raise _silent(failed)
    return _results(documents, reading)


def _rankings(
    spans: Sequence[Span], kind: str, documents_in: Callable[[Span], list[_Document] | None], by_id: Mapping[str, Span]
) -> list[_Ranking]:
    """Return the rankings of spans of a kind in order of time; of nested ones, the outermost that has documents.

    Without documents are those neither within nor around one that has some. Such a span within another one is left out,
    too, unless it failed.
    """
    rankings = [_Ranking(span=span, documents=documents_in(span)) for span in spans if kind_of(span) == kind]
    having = {ranking.span.id for ranking in rankings if ranking.documents is not None}
    silent = {ranking.span.id for ranking in rankings if not ranking.has_failed} - having
    around = _around(having, by_id)
    within, within_silent = (_within(ids, [ranking.span for ranking in rankings], by_id) for ids in (having, silent))
    left_out = within | (around - having) | (within_silent & silent)
    outermost = [ranking for ranking in rankings if ranking.span.id not in left_out]
    return sorted(outermost, key=lambda ranking: (ranking.span.start, ranking.span.end))


def _counted(
    retrieved: list[_Ranking], ranked: list[_Ranking], reading: Reading, by_id: Mapping[str, Span]
) -> list[_Ranking]:
    """Return the rankings of which one, or all together, may count.

    A reranker has the ranking of the retrievals before it and within it. A retrieval after the last one is another.
    """
    later: list[_Ranking] = []
    if reading.use is None:
        having = [ranking for ranking in retrieved if ranking.documents is not None]
        first = next((ranking.span.start for ranking in retrieved if not ranking.has_failed), 0)
        around = _around([ranking.span.id for ranking in retrieved], by_id)
        # The documents of a retriever include the work of the rerankers inside it.
        ranked = [
            ranking
            for ranking in _not_within(ranked, having, by_id)
            if ranking.span.start >= first or ranking.span.id in around
        ]
        last = ranked[-1].span.start if ranked else 0
        later = [ranking for ranking in _not_within(retrieved, ranked, by_id) if ranking.span.start > last]
    if not ranked or reading.use == "retriever":
        return retrieved
    # Rerankers in a row refine one retrieval; with several retrievals, each may have had its own.
    after = {ranking.span.id for ranking in later}
    before = [ranking for ranking in retrieved if not (ranking.found_nothing or ranking.span.id in after)]
    return [*(ranked if len(before) > 1 else ranked[-1:]), *later]


def _not_within(rankings: Sequence[_Ranking], others: Sequence[_Ranking], by_id: Mapping[str, Span]) -> list[_Ranking]:
    within = _within({other.span.id for other in others}, [ranking.span for ranking in rankings], by_id)
    return [ranking for ranking in rankings if ranking.span.id not in within]


def _silent(ranking: _Ranking) -> CallFailed:
    """Return the failure of a retrieval or a reranker without documents, or with an error."""
    span, name = ranking.span, repr(shorten(visible(ranking.span.name), 80))
    what = f"the {'reranker' if ranking.is_reranker else 'retrieval'} span {name}"
    otherwise = (
        "; or take the retriever's: `use: retriever` under `traces`, or convert --use retriever"
        if ranking.is_reranker
        else ""
    )
    if span.error is not None:
        return CallFailed("no_documents", f"{what} failed: {shorten(visible(span.error), 200)}{otherwise}")
    if ranking.is_cut:
        return _lost(span)
    why = "have it record them; in record.yml, `empty_results: accept` takes that for none found"
    return CallFailed("no_documents", f"{what} says nothing of documents; {why}{otherwise}")


def _lost(span: Span) -> CallFailed:
    why = "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=100000 where the application runs"
    name = shorten(visible(span.name), 80)
    return CallFailed("no_documents", f"the span {name!r} lost {span.dropped:,} attributes, maybe documents; {why}")


def _chosen(rankings: Sequence[_Ranking], reading: Reading) -> Sequence[_Document]:
    """Return the documents of the ranking that counts, or of all together; empty without a ranking."""
    spoken = list(filter(None, map(_accepted, rankings))) if reading.accept_empty else rankings
    if not spoken:
        return []
    choice = {"first": spoken[:1], "last": spoken[-1:]}.get(reading.retrieved or "", spoken)
    if silent := next((ranking for ranking in choice if ranking.documents is None or ranking.has_failed), None):
        raise _silent(silent)
    if len(spoken) > 1 and reading.retrieved is None:
        why = "say which counts, first, last or concat: with `retrieved` under `traces`, or convert --retrieved"
        raise CallFailed(SEVERAL, f"retrieved {len(spoken)} times for one question; {why}")
    if lost := next((ranking.span for ranking in spoken if ranking.documents is not None and ranking.is_cut), None):
        raise _lost(lost)
    return [document for ranking in choice for document in ranking.documents or ()]


def _accepted(ranking: _Ranking) -> _Ranking | None:
    """Return a reranker that says nothing of documents as one that found none; None for such a retrieval."""
    if ranking.documents is not None or ranking.has_failed or ranking.is_cut:
        return ranking
    return replace(ranking, documents=[]) if ranking.is_reranker else None


def _filled(ranked: Iterable[_Ranking], retrieved: Iterable[_Ranking]) -> Iterator[_Ranking]:
    """Yield rerankers' rankings, with documents completed with what only the spans of the retrievers have."""
    known = [document for ranking in retrieved for document in ranking.documents or ()]
    by_own = {document.own: document for document in known if document.own}
    by_text = {document.text: document for document in known if document.text}

    def filled(document: _Document) -> _Document:
        same = by_own.get(document.own or "") or by_text.get(document.text or "")
        if same is None:
            return document
        own, text = document.own or same.own, document.text or same.text
        return replace(document, own=own, text=text, metadata=document.metadata or same.metadata)

    for ranking in ranked:
        documents = ranking.documents
        yield ranking if documents is None else replace(ranking, documents=list(map(filled, documents)))


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
