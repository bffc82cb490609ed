"""Models behind OpenAI's API for chats, or one that is compatible: vLLM, llama.cpp, LM Studio, LiteLLM and many others.

https://platform.openai.com/docs/api-reference/chat/create

Models that Ollama serves, over its own API: the only one that takes the length of a context with each call.

https://docs.ollama.com/api/chat. Without that length, Ollama cuts what is longer than a few thousand tokens and says
nothing; its count of tokens is made after the cut. So the length is always sent, and what does not fit is not asked.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ragcontract.judge.chat_model import Said, estimated_tokens, no_message, text_in, whole_number
from ragcontract.judge.interface import Ask, NoReply

OLLAMA_MARK = "fp_ollama"  # `system_fingerprint` of Ollama's compatible address
FORMATS = ("json_schema", "json_object")
LENGTHS = ("max_completion_tokens", "max_tokens")
OF_FORMATS = ("response_format", "json_schema", "json_object", "structured output", "guided")


class OpenAIChat:
    """`POST /chat/completions`. A format, and a limit on the reply, are sent in the first form that is not refused."""

    path = "/chat/completions"
    optional: Mapping[str, Sequence[str]] = {
        **dict.fromkeys(FORMATS, OF_FORMATS),
        "temperature": ("temperature",),
        "seed": ("seed",),
        **dict.fromkeys(LENGTHS, LENGTHS),
    }

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        """Return what is sent of ``optional`` without what is dropped."""
        sent = {_first(FORMATS, dropped), _first(LENGTHS, dropped), *({"temperature", "seed"} - dropped)}
        return [name for name in self.optional if name in sent]

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return what is sent."""
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

    def said(self, content: Any, ask: Ask) -> Said:  # noqa: ARG002 (what was asked matters to others)
        """Return the message of the first choice; raises NoReply if there is none."""
        found = content if isinstance(content, dict) else {}
        if found.get("system_fingerprint") == OLLAMA_MARK:
            cuts = "this is Ollama, which at this address cuts what is too long without saying so"
            raise NoReply("wrong_api", f"{cuts}; add --judge-api ollama", final=True)
        choices = found.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        if not isinstance(message, dict):
            raise no_message(found, "the answer has no message (choices[0].message); is this an API for chats?")
        text = text_in(message.get("content")) or text_in(message.get("refusal"))
        return Said(text=text, cut=choice.get("finish_reason") == "length", model=text_in(found.get("model")))

    def tokens(self, content: Any) -> tuple[int, int] | None:
        """Return the tokens in and out as billed."""
        usage = content.get("usage") if isinstance(content, dict) else None
        found = usage if isinstance(usage, dict) else {}
        ins, outs = whole_number(found.get("prompt_tokens")), whole_number(found.get("completion_tokens"))
        return None if ins is None or outs is None else (ins, outs)


def _first(names: Sequence[str], dropped: frozenset[str]) -> str | None:
    return next((name for name in names if name not in dropped), None)


STEP = 1_024  # tokens; lengths are multiples, so that a model is loaded anew for few of them
AROUND = 64  # tokens; what a template puts around two messages
USUAL_CONTEXT = 32_768
OLLAMA_FORMATS = {"json_schema": ("format", "schema", "grammar"), "json_object": ("format", "grammar")}


class OllamaChat:
    """`POST /api/chat`, for contexts of at most ``max_context`` tokens, the reply included."""

    path = "/api/chat"
    optional: Mapping[str, Sequence[str]] = OLLAMA_FORMATS

    def __init__(self, max_context: int = USUAL_CONTEXT) -> None:
        """Store the limit."""
        self._max_context = max_context

    def in_use(self, dropped: frozenset[str]) -> list[str]:
        """Return the form in which the reply's format is sent."""
        return [name for name in self.optional if name not in dropped][:1]

    def body(self, model: str, ask: Ask, dropped: frozenset[str]) -> dict[str, Any]:
        """Return what is sent; raises NoReply if it is too long."""
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

    def said(self, content: Any, ask: Ask) -> Said:
        """Return the message; raises NoReply if there is none, or if the estimate of its length was too low."""
        found = content if isinstance(content, dict) else {}
        message = found.get("message")
        if not isinstance(message, dict):
            raise no_message(found, "the answer has no message; is this Ollama's API?")
        read = whole_number(found.get("prompt_eval_count")) or 0
        if read > context_length(ask) - ask.max_tokens:
            many = f"was read as {read:,} tokens, more than the {estimated_tokens(ask):,} that were estimated"
            raise NoReply("too_long", f"{many}; it may have been cut, so what was said of it does not count")
        return Said(
            text=text_in(message.get("content")),
            cut=found.get("done_reason") == "length",
            model=text_in(found.get("model")),
        )

    def tokens(self, content: Any) -> tuple[int, int] | None:
        """Return the tokens that were read and made; those that Ollama remembers from the call before are not read."""
        found = content if isinstance(content, dict) else {}
        made = whole_number(found.get("eval_count"))
        return None if made is None else (whole_number(found.get("prompt_eval_count")) or 0, made)


def context_length(ask: Ask) -> int:
    """Return the length to ask for: what is sent, by estimate, and the longest reply, rounded up."""
    return -(-(estimated_tokens(ask) + AROUND + ask.max_tokens) // STEP) * STEP
