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

from msgspec import UNSET, Meta, Struct, field
from msgspec.structs import replace

from ragcontract.answers.messages import answer_of, calls_in, letters_of
from ragcontract.answers.metric_options import is_for_calls
from ragcontract.answers.tool_calls import written
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.record.adapters.framework import EventLoop, FrameworkSystem, bases, chosen, named, text_at
from ragcontract.record.adapters.templates import SAME, Template, values_of
from ragcontract.record.adapters.user_code import imported
from ragcontract.record.interface import Context, Response, Surroundings, System
from ragcontract.record.returned.named_fields import FIELDS
from ragcontract.record.returned.response_forms import (
    STEPS,
    form_of,
    is_read_by_name,
    response_of,
    with_own_messages,
)
from ragcontract.record.returned.result_forms import Retrieved, is_document, results_of
from ragcontract.record.returned.returned_messages import (
    ASSISTANT,
    as_message,
    calls_of,
    calls_of_steps,
    fields_of,
    finish_reason_of,
    part,
    plain,
    refusal_in,
    together,
)

RETRIEVER, RUNNABLE = "langchain_core.BaseRetriever", "langchain_core.Runnable"
ANSWERS = ("answer", "result", "output", "response", "messages")
DOCUMENTS = ("context", "source_documents", "documents")
STRUCTURED = "ls_structured_output_format"  # the option in which LangChain names the schema of a structured output
Documents = Sequence[Any]
Call = dict[str, Any]


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


class Spoken(Struct):
    """What a model said."""

    step: Step
    message: Any = None  # None of a model that is no chat model


class Noted(Struct):
    """What the callbacks noted while one question was answered."""

    parents: dict[Step, Step | None] = field(default_factory=dict)
    retrievals: list[Called] = field(default_factory=list)
    tools: list[Called] = field(default_factory=list)
    spoken: list[Spoken] = field(default_factory=list)
    schemas: dict[Step, str] = field(default_factory=dict)  # of the steps of models that must answer in a schema
    usage: dict[str, int] = field(default_factory=dict)
    llm_model: str | None = None

    def retrieved(self) -> list[Sequence[Any]]:
        """Return the documents of each retrieval that ended, in the order in which they were begun."""
        retrievals = self._outside(self.retrievals, self.retrievals)
        return [call.returned for call in retrievals if call.returned is not None]

    def tool_calls(self) -> list[Call]:
        """Return the tools that the application ran, without those that its tools ran themselves."""
        tools = self._outside(self.tools, self.tools)
        return [{"name": call.name, "arguments": dict(call.arguments)} for call in tools]

    def said(self) -> list[Spoken]:
        """Return what models said, without those that a tool asked."""
        return self._outside(self.spoken, self.tools)

    def asked_for(self, spoken: Spoken) -> list[Call] | None:
        """Return the calls that a model asked for, without that of its schema; None if they are lost."""
        if spoken.message is None:
            return []
        calls = calls_of(as_message(spoken.message), finish_reason_of(spoken.message))
        schema = self.schemas.get(spoken.step)
        return calls and [call for call in calls if schema is None or written(call)[0] != schema]

    def _outside(self, made: list[Any], within: list[Called]) -> list[Any]:
        """Return what was not made within a call."""
        steps = {call.step for call in within}
        return [one for one in made if steps.isdisjoint(self._above(one.step))]

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
        self._noted.parents[run_id] = parent_run_id

    def on_chat_model_start(
        self, *_: Any, run_id: Step, parent_run_id: Step = None, options: Any = None, **__: Any
    ) -> None:
        """Note the step that this one is part of, and the schema that the model must answer in."""
        self._noted.parents[run_id] = parent_run_id
        name = part(part(part(options, STRUCTURED), "schema"), "title")
        if isinstance(name, str):
            self._noted.schemas[run_id] = name

    on_llm_start = on_chain_start

    def on_retriever_start(self, *_: Any, run_id: Step, parent_run_id: Step = None, **__: Any) -> None:
        self._noted.parents[run_id] = parent_run_id
        self._noted.retrievals.append(Called(step=run_id))

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: Step, **_: Any) -> None:
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
        self._noted.parents[run_id] = parent_run_id
        name = (serialized or {}).get("name") or more.get("name") or "unknown"
        arguments = inputs if isinstance(inputs, Mapping) else {"input": input_str}
        self._noted.tools.append(Called(step=run_id, name=str(name), arguments=arguments))

    def on_llm_end(self, response: Any, *, run_id: Step = None, **_: Any) -> None:
        """Note the message and the model, and add the tokens up."""
        message = getattr(response.generations[0][0], "message", None)
        usage = self._noted.usage
        with self._lock:
            self._noted.spoken.append(Spoken(run_id, message))
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
        if problems := [*template.problems, *([f"langchain.input: {SAME}"] if value and template.is_the_same else [])]:
            raise InputError(problems)
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
            return self._response(returned, noted, query)

    def _response(self, returned: Any, noted: Noted, query: str) -> Response:
        """Return what was returned as it is read of a function, with what only the callbacks know."""
        handed = _handed(returned)
        if form_of(handed) is None or _has_texts(handed):
            raise InputError([_unusable(returned)])
        made = with_own_messages(response_of(handed, self.doc_ids))
        made = _with_reasons(made, noted)
        turn = _turn(returned, query)
        results = made.results
        if results is None and made.retrieved_contexts == []:  # `context` of a chain that found nothing
            results = []
        if results is None:
            found = chosen(noted.retrieved() or [*_artifacts(turn)], self._options.retrieved, "langchain")
            results = None if found is None else results_of(found, self.doc_ids)
        if made.response is UNSET and results is None and not made.error:
            raise InputError([_unusable(returned)])
        return replace(
            made,
            results=results,
            retrieved_contexts=made.retrieved_contexts or None,
            tool_calls=_calls(made, noted, turn, part(returned, STEPS)),
            usage=dict(noted.usage) or made.usage,
            llm_model=noted.llm_model or made.llm_model,
        )

    def versions(self) -> Mapping[str, str]:
        model = text_at(self.target, "vectorstore.embeddings.model_name", "vectorstore.embeddings.model")
        return {"embedding_model": model} if model else {}

    def facts(self) -> Mapping[str, Any]:
        return {"langchain": {"object": self.name}}

    def teardown(self) -> None:
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


def _has_texts(value: object) -> bool:
    """Return whether a value is a list with texts in it, which are not the names of documents here."""
    return isinstance(value, list | tuple) and any(map(_is_text, value))


def _handed(returned: Any) -> Any:
    """Return what is read as if a function had returned it: of the output of a chain, the fields of a run row.

    The state of an application has other fields, too, such as the history of a chat.
    """
    fields = fields_of(returned) if is_read_by_name(returned) else None
    return returned if fields is None else {name: value for name, value in fields.items() if _is_field(name, value)}


def _is_field(name: str, value: Any) -> bool:
    match FIELDS.get(name):
        case None:
            return False
        case "results":
            return isinstance(value, list | tuple) and not _has_texts(value)
        case "retrieved_contexts":
            return _is_text(value) or _are_documents(value) or (isinstance(value, list) and all(map(_is_text, value)))
        case "mode" | "label" | "llm_model":
            return _is_text(value)
        case _:
            return True


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _with_reasons(made: Response, noted: Noted) -> Response:
    """Return a response with why its model stopped, which a chain that returns only the text of a message drops."""
    for spoken in noted.said()[-1:]:
        message = as_message(spoken.message) if spoken.message is not None else {}
        if isinstance(made.response, str) and message and letters_of(made.response) == letters_of(answer_of([message])):
            return replace(
                made,
                finish_reason=made.finish_reason or finish_reason_of(spoken.message),
                refusal=made.refusal or refusal_in([message]),
            )
    return made


def _turn(returned: Any, query: str) -> list[Any]:
    """Return the messages after the question; an agent returns the whole conversation.

    Applications also add messages of the user themselves, such as a critique.
    """
    messages = part(returned, "messages") if not isinstance(returned, list | tuple) else returned
    if not isinstance(messages, list | tuple):
        return []
    by_user = [at for at, message in enumerate(messages) if as_message(message)["role"] == "user"]
    asked = [at for at in by_user if part(messages[at], "content") == query] or by_user
    return list(messages[asked[-1] + 1 :] if asked else messages)


def _artifacts(turn: list[Any]) -> Iterator[Documents]:
    """Yield the documents that tools returned beside their texts."""
    for message in turn:
        artifact = part(message, "artifact")
        if artifact and _are_documents(artifact):
            yield artifact


def _calls(made: Response, noted: Noted, turn: list[Any], steps: Any) -> list[Call] | None:
    """Return each call once that is returned, is in a message, or was heard of; None if nothing is known of calls."""
    heard = [noted.asked_for(spoken) for spoken in noted.said()]
    own = [message for message in map(as_message, turn) if message["role"] == ASSISTANT]
    in_messages = [call for message in own for call in calls_in(message)]
    of_models = [call for calls in heard for call in calls or ()]
    asked = together(made.tool_calls or [], in_messages, of_models)
    ran = together([*calls_of_steps(steps)], noted.tool_calls())
    calls = together(asked, _as_asked(plain(ran), asked))
    if calls:
        return calls
    is_lost = None in heard or (made.tool_calls is None and is_for_calls(made.finish_reason))
    is_known = made.tool_calls is not None or heard or steps is not None
    return [] if is_known and not is_lost else None


def _as_asked(ran: list[Call], asked: list[Call]) -> list[Call]:
    """Return the tools that ran; one that got its only argument as a text has it by the name that the model gave it."""
    named = {(call["name"], *arguments.values()): call for call in asked if len(arguments := _texts_of(call)) == 1}
    return [named.get((call["name"], *_texts_of(call).values()), call) for call in ran]


def _texts_of(call: Call) -> dict[str, str]:
    arguments = call.get("arguments")
    is_texts = isinstance(arguments, dict) and all(map(_is_text, arguments.values()))
    return arguments if is_texts and isinstance(arguments, dict) else {}


def _unusable(returned: Any) -> str:
    keys = f" with {', '.join(map(str, returned))}" if isinstance(returned, Mapping) else ""
    shown = shorten(visible(f"{named(returned)}{keys}"), bounds.RETURNED_SHOWN)
    answers, documents = ", ".join(ANSWERS), ", ".join(DOCUMENTS)
    return f"returned {shown}: there is neither an answer ({answers}) nor documents ({documents}) in it"
