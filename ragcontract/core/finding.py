"""What a report shows of a broken contract: findings, and the answers of broken queries.

A finding is one message per cause, rendered with the same wording in every output.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ragcontract.core.phrase import NOT_SHOWN, Name, Phrase, Quote, render

FindingStatus = Literal["fail", "warn", "counted", "skipped", "waived", "known", "unproven", "too_few"]


class Finding(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One cause that broke a gate, or one or more rules of a query."""

    kind: Literal["gate", "rule"]
    ids: Annotated[tuple[str, ...], Meta(description="The id of the gate, or of all rules that the cause violates.")]
    status: FindingStatus
    location: str
    query_id: str | None = None
    expected: Phrase
    found: Annotated[Phrase, Meta(description="The actual result, with the baseline ranks of documents.")]
    found_now: Annotated[Phrase, Meta(description="The same without baseline ranks.")] = ()
    ranks: Annotated[
        tuple[int | None, ...],
        Meta(description="Ranks of the first documents involved; null for one that was not retrieved."),
    ] = ()
    ranks_before: Annotated[
        tuple[int | None, ...] | None, Meta(description="Their ranks in the baseline; null without a baseline.")
    ] = None
    more_ranks: Annotated[bool, Meta(description="Whether further documents are involved.")] = False
    in_baseline: Annotated[bool, Meta(description="Whether the baseline breaks the same rules already.")] = False
    why: Annotated[
        str, Meta(description="Why it does not fail the check, or why it does although only the pass rate decides.")
    ] = ""
    details: Annotated[tuple[Phrase, ...], Meta(description="Further lines about it, such as why scores are low.")] = ()


def phrase_of(finding: Finding) -> Phrase:
    """Return the finding as one sentence with the names still marked, for outputs that quote names themselves."""
    if finding.kind == "gate":
        return (*finding.found, ", ", *finding.expected)
    why = (f"; {finding.why}",) if finding.why and finding.status == "fail" else ()
    return ("expected ", *finding.expected, "; found: ", *finding.found, *why)


def sentence(finding: Finding, name: Quote = str, text: Quote = str, *, marks: str = '"') -> str:
    """Return the finding as one sentence, with names passed through ``name`` and other text through ``text``."""
    return render(phrase_of(finding), name, text, marks=marks)


class ToolCall(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A tool that was called; ``arguments`` are its arguments as JSON."""

    name: str
    arguments: str = ""


class Message(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A message of a conversation; ``text`` includes the tools that it calls."""

    role: str
    text: str = ""


class Said(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """What the application saw, did and answered for one query.

    Each text is cut, with an ellipsis. A field that the row does not have is omitted.
    """

    response: Annotated[str | None, Meta(description="What the application answered.")] = None
    error: Annotated[str | None, Meta(description="Why there is no answer.")] = None
    mode: Annotated[str | None, Meta(description="How the application answered.")] = None
    label: Annotated[str | None, Meta(description="The class that the application chose.")] = None
    refusal: Annotated[str | None, Meta(description="The model's refusal.")] = None
    finish_reason: Annotated[str | None, Meta(description="Why the model stopped.")] = None
    tool_calls: tuple[ToolCall, ...] | None = None
    more_tool_calls: Annotated[int, Meta(description="How many tool calls are not listed.")] = 0
    messages: Annotated[tuple[Message, ...] | None, Meta(description="The conversation.")] = None
    more_messages: Annotated[int, Meta(description="How many messages are not listed.")] = 0
    contexts: Annotated[
        tuple[str, ...] | None,
        Meta(description="The texts that the model saw: `retrieved_contexts`, or else those of the first results."),
    ] = None
    more_contexts: Annotated[int, Meta(description="How many contexts are not listed.")] = 0

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
    """Return a phrase without the texts of the application and its documents."""
    return tuple([NOT_SHOWN if isinstance(part, Name) and part.said else part for part in phrase])
