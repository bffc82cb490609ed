"""The chat APIs of OpenAI and Ollama.

OpenAI's API (https://platform.openai.com/docs/api-reference/chat/create) is also that of vLLM, llama.cpp, LM Studio,
LiteLLM and many others.

Ollama's own API (https://docs.ollama.com/api/chat) is the only one that takes the length of a context with each call.
Without that length, Ollama cuts texts of more than a few thousand tokens without an error, and counts tokens after the
cut. So the length is always sent, and texts that do not fit are not sent.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ragcontract.judge.chat_model import ModelMessage, estimated_tokens, no_message, text_in, whole_number
from ragcontract.judge.interface import Ask, NoReply

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
        """Return the ``optional`` parameters that are sent."""
        sent = {_first(FORMATS, dropped), _first(LENGTHS, dropped), *({"temperature", "seed"} - dropped)}
        return [name for name in self.optional if name in sent]

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return the body of a call."""
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
        """Return the message of the first choice; raise NoReply if there is none."""
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
        """Return the tokens in and out that are billed."""
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
        """Return the form in which the format of the reply is sent."""
        return [name for name in self.optional if name not in dropped][:1]

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return the body of a call; raise NoReply if it is too long."""
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
