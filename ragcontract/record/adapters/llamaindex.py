"""Ask what is made with LlamaIndex: a retriever, a query engine, a chat engine or an agent."""

import math
from collections.abc import Mapping
from threading import Lock
from typing import Annotated, Any

from msgspec import Meta, Struct

from ragcontract.answers.messages import calls_in
from ragcontract.answers.metric_options import is_for_calls, telling
from ragcontract.core.errors import InputError
from ragcontract.record.adapters.framework import EventLoop, FrameworkSystem, bases, chosen, named, text_at
from ragcontract.record.adapters.user_code import imported
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from ragcontract.record.returned.result_forms import Retrieved, is_node, results_of
from ragcontract.record.returned.returned_messages import (
    as_message,
    finish_reason_of,
    part,
    plain,
    refusal_in,
    together,
)

RETRIEVER, QUERY_ENGINE = "llama_index.BaseRetriever", "llama_index.BaseQueryEngine"
CHAT_ENGINE, SIMPLE, AGENT = "llama_index.BaseChatEngine", "llama_index.SimpleChatEngine", "llama_index.BaseAgent"
# Engines whose nodes may be none, whatever they retrieved: one has no retriever, the others may return only a text.
WITHOUT_NODES = frozenset({SIMPLE, "llama_index.CustomQueryEngine"})
WORKFLOWS = frozenset({"llama_index.BaseWorkflowAgent", "llama_index.AgentWorkflow"})
# The events of a workflow's agent: what its model said in a step, and what a tool returned.
STEP, RAN, SPEAKING = "llama_index.AgentOutput", "llama_index.ToolCallResult", "llama_index.FunctionAgent"
STEPS = frozenset({STEP, RAN})
ASKED = WORKFLOWS | {RETRIEVER, QUERY_ENGINE, CHAT_ENGINE}
# The attributes in which engines keep their retriever.
INNER = ("", "_retriever.", "_query_engine._retriever.", "_query_engine.")


class LlamaIndexOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retriever, a query engine, a chat engine or an agent of LlamaIndex."""

    object: Annotated[str, Meta(description="The retriever, engine or agent, as `my_app.search:engine`.")]
    retrieved: Annotated[
        Retrieved | None,
        Meta(description="Which retrieval of an agent counts where there are several for one question."),
    ] = None
    doc_id: Annotated[
        str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a node.")
    ] = None


OPTIONS = LlamaIndexOptions


def system(options: LlamaIndexOptions, surroundings: Surroundings) -> System:
    """Return the system for the object that the options name; raises InputError if it cannot be asked."""
    target = imported(options.object, surroundings.folder)
    if ASKED.isdisjoint(bases(target)):
        expected = "expected a retriever, an engine or an agent of LlamaIndex"
        raise InputError([f"llamaindex.object: {options.object} is a {named(target)}; {expected}"])
    return LlamaIndex(target, surroundings, options.doc_id, options.retrieved)


def of_object(target: Any, surroundings: Surroundings) -> System | None:
    """Return the system for an object of LlamaIndex; None if it cannot be asked."""
    return None if ASKED.isdisjoint(bases(target)) else LlamaIndex(target, surroundings)


class LlamaIndex(FrameworkSystem):
    """A system that asks a retriever, an engine or an agent. Questions at the same time are asked in threads.

    Agents are asynchronous. The asynchronous methods of the others are not used: by default they call the synchronous
    ones, which block the event loop.
    """

    def __init__(
        self, target: Any, surroundings: Surroundings, doc_id: str | None = None, retrieved: Retrieved | None = None
    ) -> None:
        super().__init__(target, surroundings, doc_id)
        self._bases = bases(target)
        self._retrieved = retrieved
        self._conversation = Lock()
        self._loop = EventLoop()

    def ask(self, query: str, context: Context) -> Response:
        with self.failures():
            if RETRIEVER in self._bases:
                return Response(results=results_of(self.target.retrieve(query), self.doc_ids))
            if CHAT_ENGINE in self._bases:
                return self._response(self._chat(query, context))
            if not WORKFLOWS.isdisjoint(self._bases):
                seconds = context.seconds if math.isfinite(context.seconds) else None
                response: Response = self._loop.result(self._run(query, context), seconds)
                return response
            return self._response(self.target.query(query))

    async def _run(self, query: str, context: Context) -> Response:
        """Run an agent without its memory of earlier questions; return its answer and what its tools retrieved."""
        handler = self.target.run(user_msg=query, chat_history=_history(context))
        streams = hasattr(handler, "stream_events")
        events = (
            [event async for event in handler.stream_events() if not STEPS.isdisjoint(bases(event))] if streams else []
        )
        output = await handler
        ran = [event for event in events if RAN in bases(event)]
        raw = [call.tool_output.raw_output for call in ran or output.tool_calls]
        returned = [getattr(item, "source_nodes", item) for item in raw]
        nodes = chosen([item for item in returned if _are_nodes(item)], self._retrieved, "llamaindex")
        steps = [event for event in events if STEP in bases(event)]
        messages = [as_message(step.response) for step in (*steps, output)]
        calls = together(
            *(
                [{"name": call.tool_name, "arguments": plain(call.tool_kwargs)} for call in step.tool_calls]
                for step in (*steps, output)
            ),
            *map(calls_in, messages),
            *(calls_in(as_message(part(choice, "message"))) for step in steps for choice in _choices(step)),
        )
        return Response(
            results=None if nodes is None else results_of(nodes, self.doc_ids),
            response=self._said(steps, output),
            tool_calls=None if not calls and any(map(is_for_calls, map(_reason, (*steps, output)))) else calls,
            refusal=refusal_in(messages),
            finish_reason=_reason(output),
        )

    def _said(self, steps: list[Any], output: Any) -> str:
        """Return what an agent says, also before it calls a tool; a ReActAgent only thinks then."""
        agents = getattr(self.target, "agents", None) or {}
        speaking = [step for step in steps if SPEAKING in bases(agents.get(step.current_agent_name, self.target))]
        texts = [step.response.content or "" for step in speaking]
        answer = output.response.content or ""
        return "\n".join(filter(None, texts if texts[-1:] == [answer] else [*texts, answer]))

    def _chat(self, query: str, context: Context) -> Any:
        earlier = _history(context)
        if not self._conversation.acquire(timeout=min(context.seconds, 1e6)):
            why = "the chat engine, which keeps the conversation, is still busy with another question"
            raise CallFailed("busy", f"{why}; ask with --concurrency 1", again=True)
        try:
            # Some engines take an empty history for none, and go on with the conversation about the question before.
            self.target.reset()
            return self.target.chat(query, chat_history=earlier)
        finally:
            self._conversation.release()

    def _response(self, returned: Any) -> Response:
        if hasattr(returned, "get_response"):  # it streams: read to the end
            returned = returned.get_response()
        nodes = returned.source_nodes
        # Without nodes, these engines do not say that they found nothing.
        retrieves = bool(nodes) or WITHOUT_NODES.isdisjoint(self._bases)
        calls = [_call(source) for source in returned.sources] if AGENT in self._bases else None
        return Response(
            results=results_of(nodes, self.doc_ids) if retrieves else None,
            response=None if returned.response is None else str(returned.response),
            tool_calls=plain(calls),
        )

    def versions(self) -> Mapping[str, str]:
        embedding = text_at(self.target, *(f"{inner}_embed_model.model_name" for inner in INNER))
        at = [f"{inner}{name}" for inner in INNER for name in ("_llm", "_response_synthesizer._llm")]
        llm = text_at(self.target, *(f"{path}.metadata.model_name" for path in at))
        models = {"embedding_model": embedding, "llm_model": llm}
        return {name: value for name, value in models.items() if value}

    def teardown(self) -> None:
        self._loop.close()
        super().teardown()

    def facts(self) -> Mapping[str, Any]:
        return {"llamaindex": {"object": self.name}}


def _history(context: Context) -> list[Any]:
    """Return the conversation so far as LlamaIndex's messages."""
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(role=message["role"], content=message.get("content") or "") for message in context.messages]


def _reason(step: Any) -> str | None:
    """Return why the model stopped in a step, as its own response says it, or the first choice in that."""
    return telling(
        finish_reason_of(place) for place in (getattr(step, "raw", None), *_choices(step)) if place is not None
    )


def _choices(step: Any) -> list[Any]:
    """Return the first choice in the response of a model of OpenAI or Google."""
    raw = getattr(step, "raw", None)
    lists = [part(raw, name) for name in ("choices", "candidates")]
    return [choices[0] for choices in lists if isinstance(choices, list | tuple) and choices]


def _are_nodes(value: Any) -> bool:
    return isinstance(value, list) and all(map(is_node, value))


def _call(output: Any) -> dict[str, Any]:
    """Return a tool call of an agent."""
    raw = output.raw_input if isinstance(output.raw_input, Mapping) else {"input": output.raw_input}
    arguments = raw.get("kwargs") if set(raw) <= {"args", "kwargs"} else raw
    return {"name": output.tool_name, "arguments": dict(arguments or {})}
