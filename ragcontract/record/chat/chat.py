"""An OpenAI-compatible model that answers from what a retriever found: the loop of a simple RAG application.

A model that fails raises CallFailed with the retrieval in ``partial``. The calls are those of OpenAI's API reference,
"Chat completions" and "Models", in the fields that servers such as vLLM, llama.cpp and LM Studio share.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.answers.finish_reasons import is_for_calls
from ragcontract.answers.messages import calls_in, own_faults
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten, visible
from ragcontract.http.refusals import reason_in
from ragcontract.http.sending import Answered, Call
from ragcontract.http.sessions import TrustEnv
from ragcontract.http.urls_and_headers import header, header_problems, shown, url_problems
from ragcontract.record.adapters.http.service_client import ServiceClient, keys_in
from ragcontract.record.adapters.http.templates import Template, values_of
from ragcontract.record.chat.model_choice import Resolved, resolve
from ragcontract.record.chat.prompt import Prompt, prompt_problems
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from ragcontract.record.returned.chat_messages import answer_in

# What servers say of a request with more tokens than the model takes.
TOO_LONG = (
    "context length", "context_length", "context window", "context size", "maximum context", "too many tokens",
    "prompt is too long", "input is too long", "n_ctx",
)  # fmt: skip
TOO_LONG_STATUSES = {400, 413, 422}
HINT = "lower context_max_chars, --top or max_tokens"


Text = Annotated[str, Meta(title="text; quote numbers")]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    trust_env: Annotated[
        TrustEnv, Meta(description="Whether proxies of the environment are used; auto: but for this machine.")
    ] = "auto"


def around(options: Options, system: System, surroundings: Surroundings) -> System:
    """Return a system that retrieves with one and answers; raises InputError with what is wrong with the options."""
    return Chat(options, system, surroundings)


class Chat:
    """A retriever and a model behind it."""

    def __init__(self, options: Options, retriever: System, surroundings: Surroundings) -> None:
        """Store the parts and read the templates."""
        self.concurrency = retriever.concurrency
        self._retriever = retriever
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
            *prompt_problems(options.prompt),
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
        self._retriever.setup()
        if self._options.model == "auto":
            headers = self._filled_headers(values_of("", Context(query_id="", top=0)))
            call = Call(method="GET", url=f"{self._url}/models", headers=headers)
            self._model = resolve(lambda: self._service.json(call, self._seconds)[0])

    def ask(self, query: str, context: Context) -> Response:
        """Return what was retrieved and what the model says; raises CallFailed, with the retrieval if that is there."""
        end = time.monotonic() + context.seconds
        found = self._retriever.ask(query, context)
        written = self._prompt.context(found.results)
        seen = found.retrieved_contexts if written.seen is None else written.seen
        kept = replace(found, context_chars=len(written.text), retrieved_contexts=seen)
        values = values_of(query, context)
        headers = self._filled_headers(values)
        if context.traceparent:
            headers["traceparent"] = context.traceparent.encode()
        body = self._body(self._prompt.messages(query, written.text, context.messages)) | self._extra.filled(values)
        call = Call(method="POST", url=f"{self._url}/chat/completions", headers=headers, json=body)
        try:
            return self._answer(kept, *self._service.json(call, end - time.monotonic()))
        except CallFailed as failure:
            raise _explained(failure, kept) from None

    def _filled_headers(self, values: Mapping[str, Any]) -> dict[str, bytes]:
        return {name: header(value) for name, value in self._headers.filled(values).items()}

    def _body(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        options = self._options
        given = {"max_tokens": options.max_tokens, "temperature": options.temperature, "seed": options.seed}
        sent = {name: value for name, value in given.items() if value is not None}
        return {"model": self._model.model, "messages": list(messages), "stream": False, **sent}

    def _answer(self, kept: Response, content: Any, answered: Answered) -> Response:
        if error := _at(content, "error"):  # what else there is may be the beginning of an answer
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

    def versions(self) -> Mapping[str, str]:
        """Return those of the retriever; each response names its model."""
        return self._retriever.versions()

    def facts(self) -> Mapping[str, Any]:
        """Return those of the retriever, with what is known of the model as ``llm``."""
        llm = {
            "base_url": shown(self._url),
            "model_arg": self._options.model,
            "model_field": self._model.model,
            "model_resolve": self._model.how,
        }
        return {**self._retriever.facts(), "llm": llm}

    def teardown(self) -> None:
        """Close the connections, and the retriever."""
        try:
            self._retriever.teardown()
        finally:
            self._service.close()


def _explained(failure: CallFailed, kept: Response) -> CallFailed:
    """Return a failure of the model with what was retrieved, and with a hint where the context is too long."""
    kind, message, detail = failure.kind, str(failure), failure.detail
    if detail is not None and detail["status_code"] in TOO_LONG_STATUSES:
        said = str(detail["response_snippet"]).lower()
        if any(text in said for text in TOO_LONG):
            kind, message = "context_too_long", f"{message}; {HINT}"
    partial = replace(kept, response=None, error=f"{kind}: {message}", error_detail=detail)
    return CallFailed(kind, message, again=failure.again, pause=failure.pause, detail=detail, partial=partial)


def _at(content: Any, *path: str | int) -> Any:
    """Return what decoded JSON has at a path; None if it has nothing there."""
    for step in path:
        if isinstance(step, int):
            content = content[step] if isinstance(content, list) and len(content) > step else None
        else:
            content = content.get(step) if isinstance(content, dict) else None
    return content
