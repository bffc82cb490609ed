"""What a model is asked: the retrieved texts, each with its source, and the question."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten, visible
from ragcontract.record.interface import CallFailed

Message = Mapping[str, Any]
_PLACEHOLDER = re.compile(r"\{(context|query)\}")


class PromptContext(Struct, frozen=True, kw_only=True):
    """A context; ``seen`` are the texts in it if some were cut, and None if they are those of the results."""

    text: str
    seen: list[str] | None


class Prompt:
    """Writes the messages for a model."""

    def __init__(self, system: str | None, prompt: str, most: int) -> None:
        """Use a first message, the form of the last one, and at most so many characters of context."""
        self._system = system
        self._prompt = prompt
        self._most = most

    def context(self, results: Sequence[Message] | None) -> PromptContext:
        """Return results, best first, as ``[1] source=<doc_id>`` with the text on the next line, cut at the end.

        Raises InputError if there are no texts at all, CallFailed if one of the results has none.
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
        """Return the messages: the first one, those before this question, and the question with its context."""
        values = {"context": context, "query": query}
        last = _PLACEHOLDER.sub(lambda found: values[found[1]], self._prompt)
        first = [] if self._system is None else [{"role": "system", "content": self._system}]
        return [*first, *_sendable(history), {"role": "user", "content": last}]


def _sendable(history: Sequence[Message]) -> list[Message]:
    """Return earlier messages as OpenAI's API takes them: a tool call has its result, and others have a content.

    The tools that the model calls are not run, so that calls of earlier turns have no results.
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
    """Return the ids of a message's tool calls; None stands for calls that have none."""
    calls = message.get("tool_calls")
    return (
        {call.get("id") if isinstance(call, Mapping) else None for call in calls} if isinstance(calls, list) else set()
    )


def prompt_problems(prompt: str) -> list[str]:
    """Return what is wrong with the form of the last message."""
    missing = [name for name in ("context", "query") if f"{{{name}}}" not in prompt]
    return [f"chat.prompt: has no {{{name}}} in it" for name in missing]
