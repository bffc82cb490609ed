"""The tool calls of a trace: those that models asked for, and those that the spans of tools say were made."""

from collections.abc import Mapping, Sequence
from typing import Any

from ragcontract.record.traces.model_messages import AskedCall, arguments_of, messages_of, says_calls
from ragcontract.record.traces.retrievals import kind_of
from ragcontract.record.traces.spans import Span, ancestors, at, parsed, text_at

ARGUMENTS = ("gen_ai.tool.call.arguments", "input.value")  # `tool.parameters` are the tool's, not the call's


def tool_calls_of(spans: Sequence[Span]) -> list[dict[str, Any]] | None:
    """Return the tool calls, in order; None if the spans do not say all of them.

    A model may ask for a tool that there is not, which no span of a tool says, and a tool may be called by code, for
    which no model asked. So all count; a call that a model asked for and a tool's span of the same name are one.
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
    """Return calls with those that only another account of them has; each fills in arguments that the other lacks."""
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
    return [call for span in spans for message in messages_of(span) for call in message.calls]


def _say_calls(models: Sequence[Span], spans: Sequence[Span]) -> bool:
    """Return whether all calls of models are known; of spans within each other, one may say them for the other."""
    by_id = {span.id: span for span in spans}
    saying = {span.id for span in models if says_calls(span)}
    inner = {span.id: [above for above in ancestors(span, by_id) if kind_of(above) == "LLM"] for span in models}
    around = {above.id for within in inner.values() for above in within}
    return all(
        span.id in saying or span.id in around or any(above.id in saying for above in inner[span.id]) for span in models
    )


def _made(span: Span) -> AskedCall | None:
    """Return the call that a tool's span stands for; None if it does not name the tool."""
    name = text_at(span.attributes, "tool.name", "gen_ai.tool.name")
    if name is None:
        return None
    values = (at(span.attributes, path) for path in ARGUMENTS)
    arguments = arguments_of(next((value for value in values if value is not None), None))
    return AskedCall(name=name, arguments=_unwrapped(arguments))


def _unwrapped(arguments: Any) -> Any:
    """Return the arguments of a tool whose span has them as a function of Python gets them, as LlamaIndex writes it."""
    parsed_kwargs = parsed(arguments.get("kwargs")) if isinstance(arguments, Mapping) else None
    is_wrapped = isinstance(parsed_kwargs, Mapping) and not arguments.keys() - {"args", "kwargs"}
    return parsed_kwargs if is_wrapped and not arguments.get("args") else arguments
