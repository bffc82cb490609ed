"""One trace as one response: what was retrieved and answered, with which tools and which models."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ragcontract.core import bounds
from ragcontract.record.interface import Response
from ragcontract.record.traces.retrievals import Reading, kind_of, results_of_spans
from ragcontract.record.traces.spans import Attributes, Span, ancestors, at, listed_at, parsed, text_at

ANSWERING = {"CHAIN", "AGENT", "LLM"}
ANSWERS = ("answer", "result", "output", "response", "content", "text")
QUESTIONS = ("input", "query", "question", "message", "user_input", "query_str")
THINKING = {"LLM", "AGENT", "TOOL"}  # a trace with one of them says of tools all that there is to say
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
        tool_calls=_tool_calls(trace),
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
    """Return the answer of the outermost span that says one, otherwise the last that a model gave."""
    by_id = {span.id: span for span in trace.spans}
    answering = [span for span in trace.spans if kind_of(span) in ANSWERING]
    having = {span.id for span in answering}
    outer = [span for span in answering if having.isdisjoint(above.id for above in ancestors(span, by_id))]
    # The last of them: an application may first rewrite the question.
    for span in reversed(outer):
        if (said := _said(span)) is not None:
            return said
    models = [span for span in answering if kind_of(span) == "LLM"]
    return next((said for span in reversed(models) if (said := _said(span)) is not None), UNSET)


def _said(span: Span) -> str | None:
    """Return what a span answers."""
    for path in ("llm.output_messages", "gen_ai.output.messages"):
        texts = [text for one in listed_at(span.attributes, path) or () if (text := _message_text(one))]
        if texts:
            return texts[-1]
    output = at(span.attributes, "output.value")
    if kind_of(span) == "LLM" and at(span.attributes, "output.mime_type") == "application/json":
        return None  # what a library returned, in a form of its own
    return _in(output, ANSWERS, as_json=at(span.attributes, "output.mime_type") == "application/json")


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


def _message_text(message: Attributes) -> str | None:
    text = at(message, "message.content")
    if isinstance(text, str) and text:
        return text
    return "".join(one["content"] for one in _parts(message, "text") if isinstance(one.get("content"), str)) or None


def _parts(message: Attributes, kind: str) -> list[Mapping[str, Any]]:
    parts = message.get("parts")
    parts = parts if isinstance(parts, list) else []
    return [one for one in parts if isinstance(one, Mapping) and one.get("type") == kind]


def _tool_calls(trace: Trace) -> list[dict[str, Any]] | None:
    """Return the tool calls, in order; None if nothing in the trace could call tools.

    A model may ask for a tool that there is not, which no span of a tool says. So what the models asked for counts,
    unless it is less than what was called.
    """
    kinds = {kind_of(span) for span in trace.spans}
    if kinds.isdisjoint(THINKING):
        return None
    called = [call for span in trace.spans if kind_of(span) == "TOOL" if (call := _called(span)) is not None]
    asked = [call for span in trace.spans if kind_of(span) == "LLM" for call in _asked(span)]
    return asked if len(asked) >= len(called) else called


def _called(span: Span) -> dict[str, Any] | None:
    name = text_at(span.attributes, "tool.name", "gen_ai.tool.name")
    if name is None:
        return None
    given = [at(span.attributes, path) for path in ("gen_ai.tool.call.arguments", "input.value", "tool.parameters")]
    return {"name": name, "arguments": _arguments(next((one for one in given if one is not None), None))}


def _arguments(value: Any) -> Any:
    """Return the arguments; of a tool that takes a text, as its input. What else is no object stays as it is."""
    found = parsed(value)
    if isinstance(found, str) and found and not found.lstrip().startswith(("{", "[", '"')):
        return {"input": found}
    return {} if found is None or found == "" else found


def _asked(span: Span) -> Iterator[dict[str, Any]]:
    for message in listed_at(span.attributes, "llm.output_messages") or ():
        for call in listed_at(message, "message.tool_calls") or ():
            if name := text_at(call, "tool_call.function.name"):
                yield {"name": name, "arguments": _arguments(at(call, "tool_call.function.arguments"))}
    for message in listed_at(span.attributes, "gen_ai.output.messages") or ():
        for part in _parts(message, "tool_call"):
            if isinstance(part.get("name"), str):
                yield {"name": part["name"], "arguments": _arguments(part.get("arguments"))}
