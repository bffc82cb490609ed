"""What an application saw, did and answered for one query, as reports show it for a broken one."""

from typing import Annotated

from msgspec import Meta, Struct

from ragcontract.core.phrase import Name, Phrase

NOT_SHOWN = "(not shown)"


class ToolCall(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A tool that was called; ``arguments`` are its arguments as JSON."""

    name: str
    arguments: str = ""


class Message(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A message of a conversation: who said it, and what; ``text`` includes the tools that it calls."""

    role: str
    text: str = ""


class Said(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Each text is cut, with an ellipsis; a field that the row does not have is omitted.

    ``contexts`` are the texts that the model saw: ``retrieved_contexts`` of the row, or else the texts of its first
    results. ``messages`` are a conversation. ``more_contexts``, ``more_tool_calls`` and ``more_messages`` count those
    that are not listed.
    """

    response: Annotated[str | None, Meta(description="What the application answered.")] = None
    error: Annotated[str | None, Meta(description="Why there is no answer.")] = None
    mode: Annotated[str | None, Meta(description="How the application answered.")] = None
    label: Annotated[str | None, Meta(description="The class that the application chose.")] = None
    refusal: Annotated[str | None, Meta(description="The model's refusal.")] = None
    finish_reason: Annotated[str | None, Meta(description="Why the model stopped.")] = None
    tool_calls: tuple[ToolCall, ...] | None = None
    more_tool_calls: int = 0
    messages: tuple[Message, ...] | None = None
    more_messages: int = 0
    contexts: tuple[str, ...] | None = None
    more_contexts: int = 0

    @property
    def size(self) -> int:
        """The number of characters of all texts."""
        texts = [self.response, self.error, self.mode, self.label, self.refusal, self.finish_reason]
        calls = [text for call in self.tool_calls or () for text in (call.name, call.arguments)]
        turns = [text for message in self.messages or () for text in (message.role, message.text)]
        return sum(len(text) for text in (*texts, *calls, *turns, *(self.contexts or ())) if text)


def called(call: ToolCall) -> str:
    """Return a tool call as text: ``get_order {"id": 7}``."""
    return f"{call.name or '(no name)'} {call.arguments}".rstrip()


def unsaid(phrase: Phrase) -> Phrase:
    """Return a phrase without the texts that the application said."""
    return tuple([NOT_SHOWN if isinstance(part, Name) and part.said else part for part in phrase])
