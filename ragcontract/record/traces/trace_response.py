"""Turn one trace into one response: what was retrieved and answered, with which tools and which models.

Tool calls are those that models asked for, and those that the spans of tools stand for.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ragcontract.answers.conversation import last_turn
from ragcontract.answers.messages import ROLES_OF_TYPES, answer_of, letters_of, with_roles
from ragcontract.answers.metric_options import telling
from ragcontract.core import bounds
from ragcontract.record.interface import CallFailed, Response
from ragcontract.record.returned.named_fields import FIELDS
from ragcontract.record.returned.returned_messages import error_of
from ragcontract.record.traces.model_messages import (
    OPENTELEMETRY,
    AskedCall,
    arguments_of,
    calls_of,
    messages_of,
)
from ragcontract.record.traces.retrievals import (
    Reading,
    Span,
    ancestors,
    at,
    kind_of,
    listed_at,
    parsed,
    results_of_spans,
    text_at,
)

ANSWERING = {"CHAIN", "AGENT", "LLM"}
ANSWERS = ("answer", "result", "output", "response", "content", "text")
QUESTIONS = ("input", "query", "question", "message", "user_input", "query_str")
OWN = ("assistant", "ai", "AIMessage", "AIMessageChunk")  # roles and types of a model's messages
JSON = "application/json"
DIFFERENT = "different_answers"
QUERY_ID = "rag_contract.query_id"


class Trace(Struct, frozen=True, kw_only=True):
    """The spans of one trace."""

    spans: Sequence[Span]  # in the order of their starts

    @property
    def outermost(self) -> list[Span]:
        """The spans that are not within another span of the trace."""
        known = {span.id for span in self.spans}
        return [span for span in self.spans if span.parent not in known]

    @property
    def ms(self) -> float | None:
        """The time that the first of the outermost spans took, in milliseconds; None if it is not known."""
        first = next(iter(self.outermost), None)
        took = first.end - first.start if first is not None and first.start else 0
        return took / 1e6 if 0 < took <= bounds.MILLISECONDS * 1_000_000 else None


def trace_of(spans: Sequence[Span]) -> Trace:
    """Return spans as a trace, without those that came twice."""
    return Trace(spans=sorted({span.id: span for span in spans}.values(), key=lambda span: (span.start, -span.end)))


def response_of_trace(trace: Trace, reading: Reading) -> Response:
    """Return the response; raises CallFailed if the results are not certain, SpanError if there are too many."""
    answering = _answering(trace)
    failed = next((span.error for span in trace.outermost if span.error is not None), None)
    if failed is None and answering:
        failed = error_of(_output(answering[0]))
    answer = _answer(answering)
    return Response(
        results=results_of_spans(trace.spans, reading),
        response=answer if failed is None else None,
        error=failed or None,
        finish_reason=telling(_why_stopped(answering, answer)),
        tool_calls=tool_calls_of(trace.spans),
        llm_model=_last(trace, "LLM", "gen_ai.response.model", "llm.model_name", "gen_ai.request.model"),
    )


def embedding_model(trace: Trace) -> str | None:
    """Return the model that embedded the question; None if no span names it."""
    return _last(trace, "EMBEDDING", "embedding.model_name", "gen_ai.response.model", "gen_ai.request.model")


def query_id_of(trace: Trace) -> str | None:
    """Return the id of the golden query that an application or its baggage names; None if there is none."""
    for span in trace.spans:
        metadata = parsed(at(span.attributes, "metadata"))
        in_metadata = metadata.get(QUERY_ID) if isinstance(metadata, Mapping) else None
        for query_id in (at(span.attributes, QUERY_ID), in_metadata):
            if isinstance(query_id, str | int) and not isinstance(query_id, bool) and query_id != "":
                return str(query_id)
    return None


def questions_of(trace: Trace) -> Iterator[str]:
    """Yield texts that may be the question of a trace, trimmed; the likeliest first."""
    retrieving = [span for span in trace.spans if kind_of(span) in {"RETRIEVER", "RERANKER"}]
    for span in [*trace.spans[:1], *trace.outermost, *retrieving, *trace.spans]:
        for path in ("gen_ai.retrieval.query.text", "reranker.query", "input.value"):
            if (text := _in(at(span.attributes, path), QUESTIONS)) and text.strip():
                yield text.strip()


def _last(trace: Trace, kind: str, *paths: str) -> str | None:
    """Return an attribute of the last span of a kind that has it; ``unknown`` does not count."""
    values = [text_at(span.attributes, *paths) for span in trace.spans if kind_of(span) == kind]
    return next((value for value in reversed(values) if value and value != "unknown"), None)


def _answering(trace: Trace) -> list[Span]:
    """Return the last of the outermost spans that may have the answer, then the models within it.

    An earlier span never has the answer: an application may first rewrite the question.
    """
    by_id = {span.id: span for span in trace.spans}
    answering = [span for span in trace.spans if kind_of(span) in ANSWERING]
    having = {span.id for span in answering}
    outer = [span for span in answering if having.isdisjoint(above.id for above in ancestors(span, by_id))]
    models = [span for span in answering if kind_of(span) == "LLM"]
    return [outer[-1], *(span for span in models if outer[-1] in ancestors(span, by_id))] if outer else []


def _answer(answering: Sequence[Span]) -> str | UnsetType:
    """Return the answer of the first of the answering spans, or else that of the last model within it."""
    texts = (_said(span) for span in (*answering[:1], *answering[1:][-1:]))
    return next((text for text in texts if text is not None), UNSET)


def _why_stopped(answering: Sequence[Span], answer: str | UnsetType) -> Iterator[str]:
    """Yield why the last model that said the answer stopped; of no model that said it, the last one."""
    models = [span for span in answering if kind_of(span) == "LLM"]
    texts = ["\n".join(message.text for message in messages_of(span) if message.text) for span in models]
    said = [span for span, text in zip(models, texts, strict=True) if text and text == answer]
    for span in (said or models)[-1:]:
        yield from _finish_reasons(span)


def _said(span: Span) -> str | None:
    """Return the answer in a span: the texts of all messages, or its output; None if it is not there as a whole."""
    messages = messages_of(span)
    are_whole = bool(messages) and all(message.is_whole for message in messages)
    if are_whole and (texts := [message.text for message in messages if message.text]):
        return "\n".join(texts)
    if kind_of(span) == "LLM" and (are_whole or at(span.attributes, "output.mime_type") == JSON):
        return None  # the model wrote no text, and output as JSON has the form of some library
    return _answer_in(_output(span))


def _output(span: Span) -> Any:
    """Return the output of a span, decoded if it is JSON."""
    output = at(span.attributes, "output.value")
    return parsed(output) if at(span.attributes, "output.mime_type") == JSON else output


def _answer_in(output: Any, depth: int = 3) -> str | None:
    """Return the answer in an output: a text, the fields that may have it, or all that its last turn's messages say.

    Raises CallFailed if two answers in it differ.
    """
    if not isinstance(output, Mapping) or not depth:
        return _in(output, ANSWERS, as_json=False)
    names = [name for name in output if isinstance(name, str) and FIELDS.get(name) == "response"]
    texts = {name: text for name in names if (text := _answer_in(output[name], depth - 1)) is not None}
    if isinstance(messages := output.get("messages"), list) and (said := _said_in(messages)) is not None:
        others = {name: text for name, text in texts.items() if letters_of(text) not in letters_of(said)}
        texts = {"messages": said, **others}
    if len(different := {letters_of(text): name for name, text in texts.items()}) > 1:
        first, second = list(different.values())[:2]
        raise CallFailed(DIFFERENT, f"its output has two answers that differ, as {first!r} and {second!r}")
    return next(iter(texts.values()), _in(output, ANSWERS, as_json=False))


def _said_in(messages: Sequence[Any]) -> str | None:
    """Return what a model says in messages after the last one of the user, in OpenAI's form or in LangChain's."""
    short = (message if isinstance(message, dict) else _long_form(message) for message in messages)
    return answer_of([message for message in last_turn(with_roles(short)) if message["role"] in OWN])


def _long_form(message: Any) -> dict[str, Any]:
    """Return LangChain's short form of a message, its role and its text, as an object."""
    is_short = isinstance(message, list) and len(message) == 2 and isinstance(message[0], str)  # noqa: PLR2004
    return {"role": ROLES_OF_TYPES.get(message[0], message[0]), "content": message[1]} if is_short else {}


def _in(value: Any, names: Sequence[str], *, as_json: bool = True) -> str | None:
    """Return the text in an input or output: itself, a field of one of these names, or the last message's."""
    value = parsed(value) if as_json else value
    for _ in range(3):  # a message in a field, then the data of the message
        if not isinstance(value, Mapping):
            break
        if isinstance(messages := value.get("messages"), list):
            of_user = names is QUESTIONS
            value = next((message for message in reversed(messages) if _is_own(message) is not of_user), None)
        elif isinstance(data := value.get("data"), Mapping):
            value = data.get("content")
        else:
            fields = (value.get(name) for name in (*names, "content"))
            value = next((inner for inner in fields if isinstance(inner, str | Mapping)), None)
    if isinstance(value, list) and len(value) == 2:  # noqa: PLR2004 (LangChain's short form of a message)
        value = value[1]
    return value if isinstance(value, str) else None


def _is_own(message: Any) -> bool:
    """Return whether a message is a model's, in OpenAI's form or in LangChain's."""
    if isinstance(message, list):
        return bool(message) and message[0] in OWN
    return isinstance(message, Mapping) and (message.get("role") in OWN or message.get("type") in OWN)


ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value")  # `tool.parameters` are the tool's, not the call's


def tool_calls_of(spans: Sequence[Span]) -> list[dict[str, Any]] | None:
    """Return the tool calls in order; None if the spans do not have all of them.

    A model may ask for a tool that does not exist, so that no tool has a span, and code may call a tool that no model
    asked for. So both count, and a model's call and a tool's span of the same name are one call.
    """
    models = [span for span in spans if kind_of(span) == "LLM"]
    tools = [span for span in spans if kind_of(span) == "TOOL"]
    made = [call for span in tools if (call := _made(span)) is not None]
    if not (models or tools) or len(made) < len(tools) or not _say_calls(models, spans):
        return None
    calls = with_others(_asked(models), made)
    for span in spans:  # an agent's own messages repeat what its models asked for
        if kind_of(span) not in {"LLM", "TOOL"}:
            calls = with_others(calls, _asked([span]))
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


def with_others(calls: Sequence[AskedCall], others: Sequence[AskedCall]) -> list[AskedCall]:
    """Return calls, then those that only ``others`` have; arguments that one of two accounts lacks are filled in."""
    merged = list(calls)
    left: dict[str, list[int]] = {}
    for index, call in enumerate(calls):
        left.setdefault(call.name, []).append(index)
    for other in others:
        if indexes := left.get(other.name):
            index = indexes.pop(0)
            merged[index] = merged[index] if merged[index].is_captured else other
        else:
            merged.append(other)
    return merged


def _asked(spans: Sequence[Span]) -> list[AskedCall]:
    return [call for span in spans for call in calls_of(span) or ()]


def _say_calls(models: Sequence[Span], spans: Sequence[Span]) -> bool:
    """Return whether all calls of models are known; of nested spans, one that has them is enough."""
    by_id = {span.id: span for span in spans}
    saying = {span.id for span in models if says_calls(span)}
    inner = {span.id: [above for above in ancestors(span, by_id) if kind_of(above) == "LLM"] for span in models}
    around = {above.id for within in inner.values() for above in within}
    return all(
        span.id in saying or span.id in around or any(above.id in saying for above in inner[span.id]) for span in models
    )


def _made(span: Span) -> AskedCall | None:
    """Return the call of a tool's span; None if the span does not name the tool."""
    name = text_at(span.attributes, "tool.name", "gen_ai.tool.name")
    if name is None:
        return None
    values = (at(span.attributes, path) for path in ARGUMENTS)
    arguments = arguments_of(next((value for value in values if value is not None), None))
    return AskedCall(name=name, arguments=_unwrapped(arguments))


def _unwrapped(arguments: Any) -> Any:
    """Return the arguments without the wrapper of Python's ``args`` and ``kwargs``, as LlamaIndex writes them."""
    parsed_kwargs = parsed(arguments.get("kwargs")) if isinstance(arguments, Mapping) else None
    is_wrapped = isinstance(parsed_kwargs, Mapping) and not arguments.keys() - {"args", "kwargs"}
    return parsed_kwargs if is_wrapped and not arguments.get("args") else arguments


def says_calls(span: Span) -> bool:
    """Return whether a model's span has all tool calls that the model asked for, or shows that it asked for none."""
    calls, messages = calls_of(span), messages_of(span)
    if calls is None:
        return False
    if not calls and any("tool" in reason or "function" in reason for reason in _finish_reasons(span)):
        return False
    if messages:
        return all(message.is_whole for message in messages)
    return not span.dropped and (bool(calls) or span.error is not None or _takes_a_prompt(span))


def _finish_reasons(span: Span) -> Iterator[str]:
    """Yield why a model stopped, in lower case."""
    reasons = parsed(at(span.attributes, "gen_ai.response.finish_reasons"))
    messages = listed_at(span.attributes, OPENTELEMETRY) or []
    for reason in (
        *(reasons if isinstance(reasons, list) else [reasons]),
        at(span.attributes, "llm.finish_reason"),
        *(message.get("finish_reason") for message in messages),
    ):
        if isinstance(reason, str) and reason:
            yield reason.lower()


def _takes_a_prompt(span: Span) -> bool:
    """Return whether a model completes a text and has no tools."""
    names = [name for name in span.attributes if name.startswith(("llm.prompts", "llm.tools"))]
    has_tools = any(name.startswith("llm.tools") for name in names) or at(span.attributes, "llm.tools") is not None
    is_completion = at(span.attributes, "gen_ai.operation.name") == "text_completion"
    return not has_tools and (is_completion or bool(names) or at(span.attributes, "llm.prompts") is not None)
