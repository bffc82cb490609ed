"""Ask what is made with LangChain: a retriever, a chain or another runnable, a LangGraph agent.

Callbacks note what an application does on the way to its answer: retrievals, tool calls, tokens. LangChain reports
every step to them with its id and that of the step that it is part of. A retriever that asks others, as an ensemble
does, is one retrieval: what the outermost retriever returned counts.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from threading import Lock
from typing import Annotated, Any
from uuid import uuid4

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ragcontract.answers.tool_calls import written
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.record.adapters.framework import EventLoop, FrameworkSystem, bases, chosen, named, text_at
from ragcontract.record.adapters.templates import Template, values_of
from ragcontract.record.adapters.user_code import imported
from ragcontract.record.interface import Context, Response, Surroundings, System
from ragcontract.record.returned.result_forms import Retrieved, is_document, results_of
from ragcontract.record.returned.returned_messages import as_message, calls_of, plain

RETRIEVER, RUNNABLE = "langchain_core.BaseRetriever", "langchain_core.Runnable"
ANSWERS = ("answer", "result", "output", "response")
DOCUMENTS = ("context", "source_documents", "documents")
Documents = Sequence[Any]


class LangChainOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retriever, a chain or an agent of LangChain."""

    object: Annotated[str, Meta(description="The retriever, chain or compiled graph, as `my_app.search:chain`.")]
    input: Annotated[
        str | dict[str, Any] | None,
        Meta(description="What it is asked with, where `{query}` is the question; by default, as its schema says."),
    ] = None
    retrieved: Annotated[
        Retrieved | None,
        Meta(description="Which retrieval counts where there are several for one question."),
    ] = None
    doc_id: Annotated[
        str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a document.")
    ] = None
    ainvoke: Annotated[bool, Meta(description="Ask with `ainvoke`, for what is asynchronous only.")] = False


OPTIONS = LangChainOptions


def system(options: LangChainOptions, surroundings: Surroundings) -> System:
    """Return the system for the object that the options name; raises InputError if LangChain cannot invoke it."""
    target = imported(options.object, surroundings.folder)
    if RUNNABLE not in bases(target):
        expected = "expected a retriever, a chain or a compiled graph of LangChain"
        raise InputError([f"langchain.object: {options.object} is a {named(target)}; {expected}"])
    return LangChain(target, options, surroundings)


def of_object(target: Any, surroundings: Surroundings) -> System | None:
    """Return the system for an object of LangChain; None if it cannot be invoked."""
    return (
        LangChain(target, LangChainOptions(object=named(target)), surroundings) if RUNNABLE in bases(target) else None
    )


Step = Any  # a UUID


class Called(Struct):
    """A call of a retriever or a tool."""

    step: Step
    returned: Sequence[Any] | None = None  # the documents of a retriever; None if it failed or has not ended
    name: str = ""
    arguments: Mapping[str, Any] = {}


class Noted(Struct):
    """What the callbacks noted while one question was answered."""

    parents: dict[Step, Step | None] = field(default_factory=dict)
    retrievals: list[Called] = field(default_factory=list)
    tools: list[Called] = field(default_factory=list)
    usage: dict[str, int] = field(default_factory=dict)
    llm_model: str | None = None

    def retrieved(self) -> list[Sequence[Any]]:
        """Return the documents of each retrieval that ended, in the order in which they were begun."""
        return [call.returned for call in self._outermost(self.retrievals) if call.returned is not None]

    def tool_calls(self) -> list[dict[str, Any]]:
        """Return the tool calls of the application, without those that its tools made themselves."""
        return [{"name": call.name, "arguments": dict(call.arguments)} for call in self._outermost(self.tools)]

    def _outermost(self, calls: list[Called]) -> list[Called]:
        steps = {call.step for call in calls}
        return [call for call in calls if steps.isdisjoint(self._above(call.step))]

    def _above(self, step: Step) -> list[Step]:
        above: list[Step] = []
        parent = self.parents.get(step)
        while parent is not None and parent not in above:
            above.append(parent)
            parent = self.parents.get(parent)
        return above


class Listening:
    """The callbacks. LangChain logs and swallows what they raise."""

    run_inline = True  # so that the callbacks come in order with `ainvoke`, too

    def __init__(self, noted: Noted) -> None:
        super().__init__()
        self._noted = noted
        self._lock = Lock()  # steps that run side by side call back from several threads

    def on_chain_start(self, *_: Any, run_id: Step, parent_run_id: Step = None, **__: Any) -> None:
        """Note the step that this one is part of."""
        self._noted.parents[run_id] = parent_run_id

    on_chat_model_start = on_chain_start

    def on_retriever_start(self, *_: Any, run_id: Step, parent_run_id: Step = None, **__: Any) -> None:
        """Note that a retriever was asked."""
        self._noted.parents[run_id] = parent_run_id
        self._noted.retrievals.append(Called(step=run_id))

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: Step, **_: Any) -> None:
        """Note the documents that the retriever returned."""
        for call in self._noted.retrievals:
            if call.step == run_id:
                call.returned = list(documents)

    def on_tool_start(
        self,
        serialized: Mapping[str, Any] | None,
        input_str: str,
        *,
        run_id: Step,
        parent_run_id: Step = None,
        inputs: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """Note that a tool was called, and its arguments."""
        self._noted.parents[run_id] = parent_run_id
        name = (serialized or {}).get("name") or more.get("name") or "unknown"
        arguments = inputs if isinstance(inputs, Mapping) else {"input": input_str}
        self._noted.tools.append(Called(step=run_id, name=str(name), arguments=arguments))

    def on_llm_end(self, response: Any, **_: Any) -> None:
        """Add the tokens up, and note the model."""
        message = getattr(response.generations[0][0], "message", None)
        usage = self._noted.usage
        with self._lock:
            for name, count in (getattr(message, "usage_metadata", None) or {}).items():
                if isinstance(count, int):
                    usage[name] = usage.get(name, 0) + count
            metadata = getattr(message, "response_metadata", None) or {}
            model = metadata.get("model_name") or metadata.get("model")
            self._noted.llm_model = model if isinstance(model, str) else self._noted.llm_model


def listener(noted: Noted) -> Any:
    """Return a callback handler of LangChain that notes what happens; each question needs its own."""
    from langchain_core.callbacks import BaseCallbackHandler

    return type("Listener", (Listening, BaseCallbackHandler), {})(noted)


class LangChain(FrameworkSystem):
    """A system that invokes a runnable with each question."""

    def __init__(self, runnable: Any, options: LangChainOptions, surroundings: Surroundings) -> None:
        super().__init__(runnable, surroundings, options.doc_id)
        self._options = options
        self._is_retriever = RETRIEVER in bases(runnable)
        self._loop = EventLoop()
        self._input = self._template(options.input)

    def _template(self, value: Any) -> Template:
        template = Template(value, self._secrets, at="langchain.input")
        if template.problems:
            raise InputError(template.problems)
        return template

    def setup(self) -> None:
        """Find out what input the runnable expects, unless the options say it."""
        if not self._options.input:
            self._input = self._template("{query}" if self._is_retriever else _expected_input(self.target))
        super().setup()

    def ask(self, query: str, context: Context) -> Response:
        """Invoke the runnable, and return its answer and what the callbacks noted."""
        noted = Noted()
        # In an application that stores conversations, each question begins a new one.
        thread = f"{context.query_id}-{uuid4()}"
        config = {
            "callbacks": [listener(noted)],
            "metadata": {"rag_contract.query_id": context.query_id},
            "configurable": {"thread_id": thread, "session_id": thread},
        }
        with self.failures():
            payload = self._input.filled(values_of(query, context))
            try:
                if self._options.ainvoke:
                    seconds = context.seconds if math.isfinite(context.seconds) else None
                    returned = self._loop.result(self.target.ainvoke(payload, config=config), seconds)
                else:
                    returned = self.target.invoke(payload, config=config)
            except (TypeError, NotImplementedError) as error:
                if "ainvoke" in str(error) or "sync invocation" in str(error):
                    raise InputError([f"{error}; say `ainvoke: true` under `langchain` in the target file"]) from error
                raise
        return self._response(returned, noted)

    def _response(self, returned: Any, noted: Noted) -> Response:
        if _are_documents(returned):
            return Response(results=results_of(returned, self.doc_ids))
        answer = _answer(returned)
        turn = _turn(returned)
        documents = _documents(returned)
        if documents is None:
            documents = chosen(noted.retrieved() or [*_artifacts(turn)], self._options.retrieved, "langchain")
        if answer is UNSET and documents is None:
            raise InputError([_unusable(returned)])
        # A model may ask for a tool that does not exist, which no callback reports, and tools that run in parallel
        # call back in any order. So the calls in the model's messages count, unless they are fewer.
        asked, called = [*_asked(turn)], noted.tool_calls()
        return Response(
            results=None if documents is None else results_of(documents, self.doc_ids),
            response=answer,
            tool_calls=plain(asked if len(asked) >= len(called) else called),
            usage=dict(noted.usage) or None,
            llm_model=noted.llm_model,
        )

    def versions(self) -> Mapping[str, str]:
        """Return the embedding model of a retriever whose vector store names it."""
        model = text_at(self.target, "vectorstore.embeddings.model_name", "vectorstore.embeddings.model")
        return {"embedding_model": model} if model else {}

    def facts(self) -> Mapping[str, Any]:
        """Return the class of the object that was asked."""
        return {"langchain": {"object": self.name}}

    def teardown(self) -> None:
        """Stop what still runs of the asynchronous calls."""
        self._loop.close()
        super().teardown()


def _expected_input(runnable: Any) -> Any:
    """Return the template of a runnable's input: messages, an object with the question, or the question."""
    try:
        schema = runnable.get_input_jsonschema()
    except Exception:  # noqa: BLE001 (schemas of types that pydantic cannot describe raise many things)
        return "{query}"
    properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
    if "messages" in properties:
        return {"messages": "{messages}"}
    earlier = {"chat_history": "{history}"} if "chat_history" in properties else {}
    if "input" in properties:
        return {"input": "{query}"} | earlier
    questions = [name for name in properties if name not in earlier]
    if not questions:
        return "{query}"
    if len(questions) > 1:
        names = shorten(visible(", ".join(questions)), bounds.FAILURE)
        why = "say what it is asked with under `langchain` in the target file, as `input: {question: '{query}'}`"
        raise InputError([f"the chain expects several inputs ({names}); {why}"])
    return {questions[0]: "{query}"} | earlier


def _are_documents(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(is_document, value))


def _is_message(value: object) -> bool:
    return "langchain_core.BaseMessage" in bases(value)


def _answer(returned: Any) -> str | UnsetType | None:
    """Return the answer in the output of a runnable; unset if there is none."""
    if isinstance(returned, str):
        return str(returned)  # not a subclass, as that of a message's text
    if _is_message(returned):
        return _text(returned.content)
    if not isinstance(returned, Mapping):
        return UNSET
    for name in ANSWERS:
        if isinstance(returned.get(name), str) or _is_message(returned.get(name)):
            return _answer(returned[name])
    texts = [_text(message.content) for message in _turn(returned) if message.type == "ai"]
    return "\n".join(filter(None, texts)) if texts else UNSET  # users see what an agent says before it calls a tool


def _text(content: Any) -> str:
    """Return the text of a message, whose content may be a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [block if isinstance(block, str) else block.get("text") for block in content or ()]
    return "".join(block for block in blocks if isinstance(block, str))


def _turn(returned: Any) -> list[Any]:
    """Return the messages after the question; an agent returns the whole conversation."""
    candidates = [returned]
    if isinstance(returned, Mapping):
        candidates = returned.get("messages") or [returned.get(name) for name in ANSWERS]
    messages = [message for message in candidates if _is_message(message)] if isinstance(candidates, list) else []
    asked = [at for at, message in enumerate(messages) if message.type == "human"]
    return messages[asked[-1] + 1 :] if asked else messages


def _documents(returned: Any) -> Documents | None:
    if isinstance(returned, Mapping):
        for name in DOCUMENTS:
            if name in returned and _are_documents(returned[name]):
                documents: Documents = returned[name]
                return documents
    return None


def _artifacts(turn: list[Any]) -> Iterator[Documents]:
    """Yield the documents that tools returned beside their texts."""
    for message in turn:
        artifact = getattr(message, "artifact", None)
        if artifact and _are_documents(artifact):
            yield artifact


def _asked(turn: list[Any]) -> Iterator[dict[str, Any]]:
    """Yield the tool calls that the model asked for."""
    for message in turn:
        for name, arguments in map(written, calls_of(as_message(message)) or ()):
            yield {"name": name, "arguments": arguments}


def _unusable(returned: Any) -> str:
    keys = f" with {', '.join(map(str, returned))}" if isinstance(returned, Mapping) else ""
    shown = shorten(visible(f"{named(returned)}{keys}"), bounds.RETURNED_SHOWN)
    answers, documents = ", ".join((*ANSWERS, "messages")), ", ".join(DOCUMENTS)
    return f"returned {shown}: there is neither an answer ({answers}) nor documents ({documents}) in it"
