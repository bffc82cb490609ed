"""One trace as one response: what was retrieved and answered, with which tools and which models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.record.interface import Response
from ragcontract.record.traces.model_messages import messages_of
from ragcontract.record.traces.retrievals import Reading, kind_of, results_of_spans
from ragcontract.record.traces.spans import Span, ancestors, at, parsed, text_at
from ragcontract.record.traces.traced_calls import tool_calls_of

ANSWERING = {"CHAIN", "AGENT", "LLM"}
ANSWERS = ("answer", "result", "output", "response", "content", "text")
QUESTIONS = ("input", "query", "question", "message", "user_input", "query_str")
OWN = ("assistant", "ai", "AIMessage", "AIMessageChunk")  # roles and types of a model's messages
QUERY_ID = "rag_contract.query_id"


class Trace(Struct, frozen=True, kw_only=True):
    """The spans of one trace, in the order of their starts."""

    spans: Sequence[Span]

    @property
    def outermost(self) -> list[Span]:
        """The spans that are within no other one of those that are there."""
        known = {span.id for span in self.spans}
        return [span for span in self.spans if span.parent not in known]

    @property
    def ms(self) -> float | None:
        """How long the first of the outermost spans took, in milliseconds; None if it does not say."""
        first = next(iter(self.outermost), None)
        took = first.end - first.start if first is not None and first.start else 0
        return took / 1e6 if 0 < took <= bounds.MILLISECONDS * 1_000_000 else None


def trace_of(spans: Sequence[Span]) -> Trace:
    """Return spans as a trace; a span that came twice is one."""
    return Trace(spans=sorted({span.id: span for span in spans}.values(), key=lambda span: (span.start, -span.end)))


def response_of_trace(trace: Trace, reading: Reading) -> Response:
    """Return the response; raises CallFailed if what was retrieved cannot be said, SpanError if it is too much."""
    failed = next((span.error for span in trace.outermost if span.error is not None), None)
    answer = _answer(trace)
    return Response(
        results=results_of_spans(trace.spans, reading),
        response=answer if failed is None else None,
        error=failed,
        tool_calls=tool_calls_of(trace.spans),
        llm_model=_last(trace, "LLM", "gen_ai.response.model", "llm.model_name", "gen_ai.request.model"),
    )


def embedding_model(trace: Trace) -> str | None:
    """Return the model that embedded the question; None if that is not said."""
    return _last(trace, "EMBEDDING", "embedding.model_name", "gen_ai.response.model", "gen_ai.request.model")


def query_id_of(trace: Trace) -> str | None:
    """Return the id of the golden query that an application or its baggage named; None if there is none."""
    for span in trace.spans:
        metadata = parsed(at(span.attributes, "metadata"))
        for found in (at(span.attributes, QUERY_ID), metadata.get(QUERY_ID) if isinstance(metadata, Mapping) else None):
            if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
                return str(found)
    return None


def questions_of(trace: Trace) -> Iterator[str]:
    """Yield what may be the question of a trace, trimmed; the likeliest first."""
    retrieving = [span for span in trace.spans if kind_of(span) in {"RETRIEVER", "RERANKER"}]
    for span in [*trace.spans[:1], *trace.outermost, *retrieving, *trace.spans]:
        for path in ("gen_ai.retrieval.query.text", "reranker.query", "input.value"):
            if (text := _in(at(span.attributes, path), QUESTIONS)) and text.strip():
                yield text.strip()


def _last(trace: Trace, kind: str, *paths: str) -> str | None:
    """Return an attribute of the last span of a kind that has it; ``unknown`` is what frameworks say of none."""
    found = [text_at(span.attributes, *paths) for span in trace.spans if kind_of(span) == kind]
    return next((one for one in reversed(found) if one and one != "unknown"), None)


def _answer(trace: Trace) -> str | UnsetType:
    """Return the answer that the last of the outermost spans says, otherwise that of the last model within it.

    An application may first rewrite the question: what an earlier span says is never taken for the answer.
    """
    by_id = {span.id: span for span in trace.spans}
    answering = [span for span in trace.spans if kind_of(span) in ANSWERING]
    having = {span.id for span in answering}
    outer = [span for span in answering if having.isdisjoint(above.id for above in ancestors(span, by_id))]
    if not outer:
        return UNSET
    text = _said(outer[-1])
    if text is None:
        models = [span for span in answering if kind_of(span) == "LLM" and outer[-1] in ancestors(span, by_id)]
        text = _said(models[-1]) if models else None
    return UNSET if text is None else text


def _said(span: Span) -> str | None:
    """Return what a span answers: the texts of all messages, or its output; None if it is not there as a whole."""
    messages = messages_of(span)
    are_whole = bool(messages) and all(message.is_whole for message in messages)
    if are_whole and (texts := [message.text for message in messages if message.text]):
        return "\n".join(texts)
    as_json = at(span.attributes, "output.mime_type") == "application/json"
    if kind_of(span) == "LLM" and (are_whole or as_json):
        return None  # it wrote no text; and its output as JSON is what a library returned, in a form of its own
    return _in(at(span.attributes, "output.value"), ANSWERS, as_json=as_json)


def _in(value: Any, names: Sequence[str], *, as_json: bool = True) -> str | None:
    """Return the text in an input or output: itself, a field of one of these names, or the last message's."""
    value = parsed(value) if as_json else value
    for _ in range(3):  # a message in a field, and its data
        if not isinstance(value, Mapping):
            break
        if isinstance(messages := value.get("messages"), list):
            of_user = names is QUESTIONS
            value = next((one for one in reversed(messages) if _is_own(one) is not of_user), None)
        elif isinstance(data := value.get("data"), Mapping):
            value = data.get("content")
        else:
            found = (value.get(name) for name in (*names, "content"))
            value = next((one for one in found if isinstance(one, str | Mapping)), None)
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 (LangChain's short form of a message)
        value = value[1]
    return value if isinstance(value, str) else None


def _is_own(message: Any) -> bool:
    """Return whether a message is a model's, in OpenAI's form or in LangChain's."""
    if isinstance(message, list):
        return bool(message) and message[0] in OWN
    return isinstance(message, Mapping) and (message.get("role") in OWN or message.get("type") in OWN)
