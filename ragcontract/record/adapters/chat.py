"""Ask an OpenAI-compatible model to answer from what a retriever found, as a simple RAG application does.

The model gets the retrieved texts, each with its source, and the question. If it fails, CallFailed has the retrieval in
``partial``. With ``model: auto``, one of the models that the server lists is chosen. The calls are those of OpenAI's
API reference, "Chat completions" and "Models", in the fields that servers such as vLLM, llama.cpp and LM Studio share.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.answers.messages import calls_in, own_faults
from ragcontract.answers.metric_options import is_for_calls
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.net.sending import HttpAnswer, HttpCall, header, header_problems, reason_in, shown, url_problems
from ragcontract.record.adapters.service_client import ProxyOption, ServiceClient, Text, keys_in
from ragcontract.record.adapters.templates import Template, values_of
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System, Wrapping
from ragcontract.record.returned.returned_messages import answer_in


class ChatOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An OpenAI-compatible model that answers from what was retrieved; what is null is not sent."""

    base_url: Annotated[Text, Meta(description="The address, such as http://localhost:8000/v1.")]
    model: Annotated[Text, Meta(description="The model's name; auto: one of those that the server lists.")] = "auto"
    api_key: Annotated[Text | None, Meta(description="A key, as `${secret:NAME}`.")] = None
    headers: Annotated[dict[str, Text], Meta(description="Further headers.")] = {}
    context_max_chars: Annotated[
        Annotated[int, Meta(ge=1, title="a whole number from 1")], Meta(description="Where the context is cut.")
    ] = 12_000
    max_tokens: Annotated[int | None, Meta(description="The most tokens of an answer.")] = 256
    temperature: Annotated[float | None, Meta(description="The temperature.")] = 0.0
    seed: Annotated[int | None, Meta(description="The seed, for models that take one.")] = None
    system: Annotated[str | None, Meta(description="The first message.")] = "Answer only from the context."
    prompt: Annotated[Text, Meta(description="The last message, with {context} and {query} in it.")] = (
        "Context:\n{context}\n\nQuestion: {query}"
    )
    extra: Annotated[dict[str, Any], Meta(description="Further fields of the request.")] = {}
    trust_env: ProxyOption = "auto"


OPTIONS = ChatOptions


def around(options: ChatOptions, system: System, surroundings: Surroundings) -> System:
    """Return a system that retrieves with ``system`` and answers; raises InputError if the options are wrong."""
    return Chat(options, system, surroundings)


class Chat(Wrapping):
    """A system of a retriever and a model that answers from its results."""

    def __init__(self, options: ChatOptions, retriever: System, surroundings: Surroundings) -> None:
        super().__init__(retriever)
        self._options = options
        self._url = options.base_url.rstrip("/")
        keys = {} if options.api_key is None else {"Authorization": f"Bearer {options.api_key}"}
        headers = Template({**keys, **options.headers}, surroundings.secrets, at="chat.headers")
        extra = Template(options.extra, surroundings.secrets, at="chat.extra")
        problems = [
            *url_problems("chat.base_url", options.base_url),
            *header_problems("chat.headers", options.headers),
            *headers.problems,
            *extra.problems,
            *(f"chat.prompt: has no {name} in it" for name in ("{context}", "{query}") if name not in options.prompt),
        ]
        if problems:
            raise InputError(problems)
        self._headers, self._extra = headers, extra
        self._prompt = Prompt(options.system, options.prompt, options.context_max_chars)
        self._seconds = surroundings.seconds
        self._service = ServiceClient(options.base_url, trust_env=options.trust_env, surroundings=surroundings)
        self._model = Resolved(model=options.model)

    def setup(self) -> None:
        """Prepare the retriever and, with ``model: auto``, ask which models the server has; raises InputError."""
        super().setup()
        if self._options.model == "auto":
            headers = self._filled_headers(values_of("", Context(query_id="", top=0)))
            call = HttpCall(method="GET", url=f"{self._url}/models", headers=headers)
            self._model = resolve(lambda: self._service.json(call, self._seconds)[0])

    def ask(self, query: str, context: Context) -> Response:
        """Return the retrieval and the model's answer; raises CallFailed, with the retrieval if there is one."""
        end = time.monotonic() + context.seconds
        retrieved = super().ask(query, context)
        written = self._prompt.context(retrieved.results)
        seen = retrieved.retrieved_contexts if written.seen is None else written.seen
        kept = replace(retrieved, context_chars=len(written.text), retrieved_contexts=seen)
        values = values_of(query, context)
        headers = self._filled_headers(values)
        if context.traceparent:
            headers["traceparent"] = context.traceparent.encode()
        body = self._body(self._prompt.messages(query, written.text, context.messages)) | self._extra.filled(values)
        call = HttpCall(method="POST", url=f"{self._url}/chat/completions", headers=headers, json=body)
        try:
            return self._answer(kept, *self._service.json(call, end - time.monotonic()))
        except CallFailed as failure:
            raise _explained(failure, kept) from None

    def _filled_headers(self, values: Mapping[str, Any]) -> dict[str, bytes]:
        return {name: header(value) for name, value in self._headers.filled(values).items()}

    def _body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self._options
        sampling = {"max_tokens": options.max_tokens, "temperature": options.temperature, "seed": options.seed}
        sent = {name: value for name, value in sampling.items() if value is not None}
        return {"model": self._model.model, "messages": list(messages), "stream": False, **sent}

    def _answer(self, kept: Response, content: Any, answered: HttpAnswer) -> Response:
        if error := _at(content, "error"):  # a text beside it may be the beginning of an answer
            reason = shorten(visible(reason_in(content) or str(error)), bounds.SERVICE_REASON)
            failure = f"{shown(self._url)}: the answer has an error: {reason}"
            raise CallFailed("service_error", failure, detail=self._service.detail(answered))
        choice = _at(content, "choices", 0)
        message = _at(choice, "message")
        message = {**message, "role": "assistant"} if isinstance(message, dict) else {}
        text, calls, problem = None, calls_in(message), next(own_faults(message, "choices[0].message"), None)
        refusal, finish = message.get("refusal"), _at(choice, "finish_reason")
        if problem is None:
            text = answer_in(message)
            if text is None and not calls and not isinstance(refusal, str):
                problem = f"has no text in choices[0].message.content; it has: {keys_in(content)}"
        if problem is not None:
            detail = self._service.detail(answered)
            raise CallFailed("no_content", f"{shown(self._url)}: the answer {problem}", detail=detail)
        model, usage = _at(content, "model"), _at(content, "usage")
        return replace(
            kept,
            response=text,
            tool_calls=None if not calls and is_for_calls(finish) else [*(kept.tool_calls or ()), *calls],
            refusal=refusal if isinstance(refusal, str) else None,
            finish_reason=finish if isinstance(finish, str) else None,
            llm_model=model if isinstance(model, str) and model else self._model.model,
            usage=usage if isinstance(usage, dict) else None,
        )

    def facts(self) -> Mapping[str, Any]:
        llm = {
            "base_url": shown(self._url),
            "model_arg": self._options.model,
            "model_field": self._model.model,
            "model_resolve": self._model.how,
        }
        return {**super().facts(), "llm": llm}

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self._service.close()


def _explained(failure: CallFailed, kept: Response) -> CallFailed:
    """Return a failure of the model with the retrieval, and with a hint if the context is too long."""
    kind, message, detail = failure.kind, str(failure), failure.detail
    if detail is not None and detail["status_code"] in TOO_LONG_STATUSES:
        snippet = str(detail["response_snippet"]).lower()
        if any(text in snippet for text in TOO_LONG):
            kind, message = "context_too_long", f"{message}; {HINT}"
    partial = replace(kept, response=None, error=f"{kind}: {message}", error_detail=detail)
    return CallFailed(kind, message, again=failure.again, pause=failure.pause, detail=detail, partial=partial)


def _at(content: Any, *path: str | int) -> Any:
    """Return the value at a path in decoded JSON; None if there is none."""
    for step in path:
        if isinstance(step, int):
            content = content[step] if isinstance(content, list) and len(content) > step else None
        else:
            content = content.get(step) if isinstance(content, dict) else None
    return content


# Words in servers' answers to a request with more tokens than the model takes.
TOO_LONG = (
    "context length", "context_length", "context window", "context size", "maximum context", "too many tokens",
    "prompt is too long", "input is too long", "n_ctx",
)  # fmt: skip
TOO_LONG_STATUSES = {400, 413, 422}
HINT = "lower context_max_chars, --top or max_tokens"

NO_CHAT = ("embed", "rerank", "whisper", "tts", "clip", "bge-", "moderation")
PREFERRED = ("instruct", "chat")
NO_SUCH_PAGE = {404, 405}


class Resolved(Struct, frozen=True, kw_only=True):
    """The model that requests name."""

    model: str
    how: Mapping[str, Any] | None = None  # how it was chosen; None if the target file names it


def resolve(models: Callable[[], Any]) -> Resolved:
    """Choose a model from the answer to ``GET /models``, which ``models`` returns; raises InputError.

    Models that make embeddings and the like are left out. Of the others, the first with ``instruct`` or ``chat`` in its
    name is chosen, otherwise the first. If the server has no such page, requests name the model ``auto``.
    """
    try:
        content = models()
    except CallFailed as failure:
        if failure.detail is None or failure.detail["status_code"] not in NO_SUCH_PAGE:
            problem = f"chat.model: `auto` asks the server which models it has: {failure}"
            raise InputError([f"{problem}; name the model with `model`, if the server works without"]) from None
        why = "the server does not list its models"
        how = {"server_models": [], "chosen_because": why, "fallback": "auto", "error": str(failure)}
        return Resolved(model="auto", how=how)
    rows = content.get("data") if isinstance(content, dict) else None
    named = [_at(row, "id") for row in rows] if isinstance(rows, list) else []
    ids = [name for name in named if isinstance(name, str) and name]
    fit = [name for name in ids if not any(part in name.lower() for part in NO_CHAT)]
    preferred = [name for name in fit if any(part in name.lower() for part in PREFERRED)]
    if not fit:
        names = ", ".join(ids[: bounds.NAMES]) or "none"
        raise InputError([f"chat.model: `auto` finds no model for chat among the server's ({names}); name one"])
    why = "the first whose name has instruct or chat in it" if preferred else "the first of the server's models"
    details: dict[str, Any] = {
        "server_models": ids[: bounds.SERVER_MODELS],
        "chosen_because": why,
        "fallback": None,
        "error": None,
    }
    return Resolved(model=(preferred or fit)[0], how=details)


Message = Mapping[str, Any]
_PLACEHOLDER = re.compile(r"\{(context|query)\}")


class PromptContext(Struct, frozen=True, kw_only=True):
    """The context of a prompt."""

    text: str
    seen: list[str] | None  # the texts in it if some were cut; None if they are those of the results


class Prompt:
    """Writes the messages for a model."""

    def __init__(self, system: str | None, prompt: str, most: int) -> None:
        """Use the text of the first message, the template of the last, and ``most`` characters of context."""
        self._system = system
        self._prompt = prompt
        self._most = most

    def context(self, results: Sequence[Message] | None) -> PromptContext:
        """Return the context: for each result, best first, ``[1] source=<doc_id>`` and its text on the next line.

        A context that is too long is cut at the end. Raises InputError if no result has a text, CallFailed if only some
        have none.
        """
        if results is None:
            raise InputError(["chat: the retriever returns no results, so there is nothing to answer from"])
        without = [result["doc_id"] for result in results if not isinstance(result.get("text"), str)]
        if without and len(without) == len(results):
            raise InputError(
                ["chat: the results have no `text`, so there is nothing to answer from; let the retriever return texts"]
            )
        if without:
            name = shorten(visible(str(without[0])), bounds.NAME)
            raise CallFailed("no_text", f"{len(without)} of {len(results)} results have no `text`, the first is {name}")
        heads = [f"[{rank}] source={result['doc_id']}\n" for rank, result in enumerate(results, 1)]
        texts = [str(result["text"]) for result in results]
        whole = "\n\n".join(head + text for head, text in zip(heads, texts, strict=True))
        if len(whole) <= self._most:
            return PromptContext(text=whole, seen=None)
        return PromptContext(text=whole[: self._most], seen=self._seen(heads, texts))

    def _seen(self, heads: Sequence[str], texts: Sequence[str]) -> list[str]:
        left, seen = self._most, []
        for head, text in zip(heads, texts, strict=True):
            part = text[: max(left - len(head), 0)]
            if part:
                seen.append(part)
            left -= len(head) + len(text) + 2  # and the blank line
        return seen

    def messages(self, query: str, context: str, history: Sequence[Message]) -> list[Message]:
        """Return the first message, those of earlier turns, and the question with its context."""
        values = {"context": context, "query": query}
        last = _PLACEHOLDER.sub(lambda match: values[match[1]], self._prompt)
        first = [] if self._system is None else [{"role": "system", "content": self._system}]
        return [*first, *_sendable(history), {"role": "user", "content": last}]


def _sendable(history: Sequence[Message]) -> list[Message]:
    """Return earlier messages as OpenAI's API takes them: every tool call has a result, and other messages a content.

    The tools that this model calls are not run, so calls without results are removed.
    """
    results = {message.get("tool_call_id") for message in history if message.get("role") == "tool"} - {None}
    asked = [_call_ids(message) for message in history]
    whole = [ids if ids <= results else set() for ids in asked]
    known = set().union(*whole)
    sent: list[Message] = []
    for message, ids in zip(history, whole, strict=True):
        if message.get("role") == "tool":
            if message.get("tool_call_id") in known:
                sent.append(message)
            continue
        fields = dict(message) if ids else {name: value for name, value in message.items() if name != "tool_calls"}
        sent.append(fields if ids or fields.get("content") is not None else {**fields, "content": ""})
    return sent


def _call_ids(message: Message) -> set[Any]:
    """Return the ids of a message's tool calls, with None for calls without an id."""
    calls = message.get("tool_calls")
    return (
        {call.get("id") if isinstance(call, Mapping) else None for call in calls} if isinstance(calls, list) else set()
    )
