"""A chat model behind an endpoint, which is asked without the parameters that the endpoint refuses.

Endpoints differ in how they hold a model to a schema, and newer models refuse parameters that older ones need. A
parameter that is refused is left out from then on, one at a time, and each reply names those that were left out.

OpenAI's API (https://platform.openai.com/docs/api-reference/chat/create) is also that of vLLM, llama.cpp, LM Studio,
LiteLLM and many others.

Ollama's own API (https://docs.ollama.com/api/chat) is the only one that takes the length of a context with each call.
Without that length, Ollama cuts texts of more than a few thousand tokens without an error, and counts tokens after the
cut. So the length is always sent, and texts that do not fit are not sent.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.safe_text import shorten, visible
from ragcontract.judge.calls import writable
from ragcontract.judge.interface import Ask, NoReply, Reply
from ragcontract.judge.model_calls import ModelCalls, Refused
from ragcontract.net.sending import reason_in

MAY_BE_PARAMETERS = {400, 422}
LETTERS, LETTERS_A_TOKEN = re.compile(r"[A-Za-z ]+"), 3  # letters a token, at least
TIMES_CUT = 2  # how many times as long a reply may be if it was cut and is asked for once more


class ModelMessage(Struct, frozen=True, kw_only=True):
    """The message in the answer of an endpoint."""

    text: str
    cut: bool  # whether it was cut off
    model: str  # the model that the answer names


class Dialect(Protocol):
    """The API of an endpoint."""

    path: str
    # The parameters that may be left out, each with the words that name it in a refusal. If a refusal names none, the
    # first one that is sent is left out.
    optional: Mapping[str, Sequence[str]]

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        """Return the ``optional`` parameters that are sent."""

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return the body of a call; raise NoReply if it is too long."""

    def message(self, content: Any, ask: Ask) -> ModelMessage:
        """Return the message in an answer; raise NoReply."""

    def tokens(self, content: Any) -> tuple[int, int] | None:
        """Return the tokens in and out that an answer names; None if it names none."""


class ChatModel:
    """A model that is asked; threads share it."""

    def __init__(self, name: str, dialect: Dialect, calls: ModelCalls) -> None:
        self.name, self.host = name, calls.endpoint.host
        self._dialect = dialect
        self._calls = calls
        self.close = calls.close
        self._dropped: frozenset[str] = frozenset()
        self._lock = threading.Lock()
        self._first = threading.Lock()
        self._is_known = False

    @property
    def dropped(self) -> tuple[str, ...]:
        """The parameters that the endpoint refused, sorted."""
        return tuple(sorted(self._dropped))

    def ask(self, ask: Ask) -> Reply:
        """Return the reply; ask once more for twice the length if it was cut off. Raise NoReply."""
        if self._is_known:
            return self._asked(ask)
        with self._first:  # the first call finds out what is refused, so the others need not
            try:
                return self._asked(ask)
            finally:
                self._is_known = True

    def _asked(self, ask: Ask) -> Reply:
        reply = self._once(ask)
        if not reply.cut:
            return reply
        try:
            longer = self._once(replace(ask, max_tokens=TIMES_CUT * ask.max_tokens))
        except NoReply as error:
            if error.final or error.kind != "too_long":
                raise
            return reply
        return Reply(
            text=longer.text,
            cut=longer.cut,
            model=longer.model,
            dropped=longer.dropped,
            tokens_in=reply.tokens_in + longer.tokens_in,
            tokens_out=reply.tokens_out + longer.tokens_out,
            retried=reply.retried + longer.retried + 1,
        )

    def _once(self, ask: Ask) -> Reply:
        dropped, retried = self._dropped, 0
        while True:
            body = self._dialect.body(self.name, ask, dropped)
            try:
                content, again = self._calls.post(
                    self._dialect.path,
                    body,
                    tokens_in=estimated_tokens(ask),
                    most_out=ask.max_tokens,
                    bill=self._dialect.tokens,
                    again=retried > 0,
                )
            except Refused as refused:
                blamed = self._blamed(refused, dropped)
                if blamed is None:
                    raise
                dropped |= {blamed}
                retried += 1
                continue
            break
        with self._lock:  # only after a success, because the call may have been refused for other reasons
            self._dropped |= dropped
        message = self._dialect.message(content, ask)
        tokens_in, tokens_out = self._dialect.tokens(content) or (0, 0)
        return Reply(
            text=writable(self._calls.endpoint.secrets.redacted_json(message.text)),
            cut=message.cut,
            model=shorten(visible(writable(message.model)), bounds.JUDGE_NAME),
            dropped=tuple(sorted(dropped)),
            tokens_in=tokens_in,
            tokens_out=tokens_out,
            retried=retried + again,
        )

    def _blamed(self, refused: Refused, dropped: frozenset[str]) -> str | None:
        """Return the parameter to leave out after a refusal; None if it is not about parameters, or none is left."""
        if refused.status not in MAY_BE_PARAMETERS:
            return None
        sent = self._dialect.in_use(dropped)
        for text in refused.texts:
            named = [name for name in sent if any(word in text.lower() for word in self._dialect.optional[name])]
            if named:
                return named[0]
        return next(iter(sent), None)


def estimated_tokens(ask: Ask) -> int:
    """Return an estimate of how many tokens are sent, rather too high: a third of the letters.

    Digits, signs and characters of other scripts are often tokens of their own, so they count in full. Texts that are
    too long must be known beforehand, because some endpoints cut them without an error.
    """
    text = ask.system + ask.user
    others = len(LETTERS.sub("", text))
    return -(-(len(text) - others) // LETTERS_A_TOKEN) + others


def whole_number(value: Any) -> int | None:
    """Return a number of tokens in an answer; None if the value is not one."""
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= bounds.RANK
    return value if is_number else None


def text_in(value: Any) -> str:
    """Return the text of a message: a text, or the texts of its parts; empty if there is none."""
    if isinstance(value, list):
        return "".join(text_in(part.get("text")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def no_message(content: Mapping[str, Any], otherwise: str) -> NoReply:
    """Return why an answer has no message: the reason in the answer, which some servers send with status 200."""
    reason = shorten(visible(writable(reason_in(content))), bounds.SERVICE_REASON)
    return NoReply("no_message", f"the answer has no message, but says: {reason}" if reason else otherwise)


OLLAMA_MARK = "fp_ollama"  # `system_fingerprint` of Ollama's compatible address
FORMATS = ("json_schema", "json_object")
LENGTHS = ("max_completion_tokens", "max_tokens")
OF_FORMATS = ("response_format", "json_schema", "json_object", "structured output", "guided")
STEP = 1_024  # tokens; lengths are multiples of it, because a model is loaded again for each new length
AROUND = 64  # tokens that a template puts around two messages
USUAL_CONTEXT = 32_768
OLLAMA_FORMATS = {"json_schema": ("format", "schema", "grammar"), "json_object": ("format", "grammar")}


class OpenAIChat:
    """`POST /chat/completions`. Format and limit of the reply are sent in the first form that is not refused."""

    path = "/chat/completions"
    optional: Mapping[str, Sequence[str]] = {
        **dict.fromkeys(FORMATS, OF_FORMATS),
        "temperature": ("temperature",),
        "seed": ("seed",),
        **dict.fromkeys(LENGTHS, LENGTHS),
    }

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        sent = {_first(FORMATS, dropped), _first(LENGTHS, dropped), *({"temperature", "seed"} - dropped)}
        return [name for name in self.optional if name in sent]

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}],
        }
        sent = self.in_use(dropped)
        if "json_schema" in sent:
            schema = {"name": "judgment", "strict": True, "schema": ask.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif "json_object" in sent:
            body["response_format"] = {"type": "json_object"}
        values = {"temperature": ask.temperature, "seed": ask.seed, **dict.fromkeys(LENGTHS, ask.max_tokens)}
        return body | {name: value for name, value in values.items() if name in sent}

    def message(self, content: Any, ask: Ask) -> ModelMessage:  # noqa: ARG002 (other dialects need what was asked)
        answer = content if isinstance(content, dict) else {}
        if answer.get("system_fingerprint") == OLLAMA_MARK:
            cuts = "this is Ollama, which at this address cuts what is too long without saying so"
            raise NoReply("wrong_api", f"{cuts}; add --judge-api ollama", final=True)
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            raise no_message(answer, "the answer has no message (choices[0].message); is this an API for chats?")
        text = text_in(message.get("content")) or text_in(message.get("refusal"))
        return ModelMessage(text=text, cut=choice.get("finish_reason") == "length", model=text_in(answer.get("model")))

    def tokens(self, content: Any) -> tuple[int, int] | None:
        usage = content.get("usage") if isinstance(content, dict) else None
        billed = usage if isinstance(usage, dict) else {}
        ins, outs = whole_number(billed.get("prompt_tokens")), whole_number(billed.get("completion_tokens"))
        return None if ins is None or outs is None else (ins, outs)


class OllamaChat:
    """`POST /api/chat`, for contexts of at most ``max_context`` tokens, the reply included."""

    path = "/api/chat"
    optional: Mapping[str, Sequence[str]] = OLLAMA_FORMATS

    def __init__(self, max_context: int = USUAL_CONTEXT) -> None:
        self._max_context = max_context

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        return [name for name in self.optional if name not in dropped][:1]

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        length = context_length(ask)
        if length > self._max_context:
            needs = f"needs a context of {length:,} tokens"
            raise NoReply("too_long", f"{needs}, more than the {self._max_context:,} of --max-context")
        options = {
            "temperature": ask.temperature,
            "seed": ask.seed,
            "num_ctx": length,
            "num_predict": ask.max_tokens,
        }
        sent = self.in_use(dropped)
        formats: dict[str, Any] = {"json_schema": ask.schema, "json_object": "json"}
        return {
            "model": model,
            "messages": [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}],
            "stream": False,
            "options": options,
            **({"format": formats[sent[0]]} if sent else {}),
        }

    def message(self, content: Any, ask: Ask) -> ModelMessage:
        """Return the message; raise NoReply if there is none, or if the texts were longer than estimated."""
        answer = content if isinstance(content, dict) else {}
        message = answer.get("message")
        if not isinstance(message, dict):
            raise no_message(answer, "the answer has no message; is this Ollama's API?")
        read = whole_number(answer.get("prompt_eval_count")) or 0
        if read > context_length(ask) - ask.max_tokens:
            many = f"was read as {read:,} tokens, more than the {estimated_tokens(ask):,} that were estimated"
            raise NoReply("too_long", f"{many}; it may have been cut, so what was said of it does not count")
        return ModelMessage(
            text=text_in(message.get("content")),
            cut=answer.get("done_reason") == "length",
            model=text_in(answer.get("model")),
        )

    def tokens(self, content: Any) -> tuple[int, int] | None:
        """Return the tokens that were read and made. Ollama does not read again what it remembers of the last call."""
        answer = content if isinstance(content, dict) else {}
        made = whole_number(answer.get("eval_count"))
        return None if made is None else (whole_number(answer.get("prompt_eval_count")) or 0, made)


def context_length(ask: Ask) -> int:
    """Return the length of the context to ask for: an estimate of what is sent and the longest reply, rounded up."""
    return -(-(estimated_tokens(ask) + AROUND + ask.max_tokens) // STEP) * STEP


def _first(names: Sequence[str], dropped: frozenset[str]) -> str | None:
    return next((name for name in names if name not in dropped), None)
