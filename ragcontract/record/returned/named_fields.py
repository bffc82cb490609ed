"""The fields of a response by the names under which systems return them, also beside a message and misspelled.

A field that is returned twice, under two names, must say the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ragcontract.answers.conversation import content_of_turn
from ragcontract.answers.messages import CALL_FIELDS, REASONS
from ragcontract.core.errors import InputError
from ragcontract.core.nearest import NearNames
from ragcontract.core.run import OTHER_NAMES
from ragcontract.record.interface import Response
from ragcontract.record.returned.returned_messages import ASSISTANT, fields_of, is_item, part

# The fields of a response by all of their names; other names are those of other tools' rows, LangChain's chains,
# OpenAI and the eval harness, in this order.
FIELDS: Mapping[str, str] = {
    **{name: name for name in Response.__struct_fields__},
    **OTHER_NAMES,
    "documents": "results",
    "source_documents": "results",
    "result": "response",
    "model": "llm_model",
    "turn_history": "messages",
    "retrieved_documents": "results",
    "retrieved_doc_ids": "results",
    "function_calls": "tool_calls",
    "tool_uses": "tool_calls",
}
NEAR = NearNames(FIELDS)
# What is read as a part of a message, and what an item of OpenAI's Responses API has of its own.
OF_MESSAGE = frozenset({"content", "refusal", "error", "tool_call_id", *CALL_FIELDS, *REASONS})
OF_ITEM = OF_MESSAGE | {"output", "result", "results", "tools", "action"}
# The fields that must be the same under all of their names, and the words for two different ones.
COMPARED = {
    "response": "two answers",
    "results": "two lists of results",
    "tool_calls": "two lists of tool calls",
    "messages": "two lists of messages",
    "mode": "two modes",
}
# The values that a field may have under a misspelled name; a list of answers, say, is something else than an answer.
KINDS: Mapping[str, Any] = {
    "response": str,
    "results": list | tuple,
    "tool_calls": list | tuple | Mapping,
    "messages": list | tuple,
}
ONLY_ONE = "return only one"


class Stated(NamedTuple):
    """A field in what was returned."""

    name: str
    meant: str | None  # the field of a response; None if it has none
    value: Any


def beside(value: object, at: str = "") -> Iterator[Stated]:
    """Yield the fields of a response that a completion or a choice has beside its message, also misspelled ones.

    All else in it is metadata of the service.
    """
    yield from _read_by_name(value, at, frozenset())
    for name, inner in (fields_of(value) or {}).items():
        if name not in (*FIELDS, "message") and inner is not None and NEAR.misspelled(name):
            yield Stated(at + name, None, inner)


def of_message_itself(value: object, at: str) -> Iterator[Stated]:
    """Yield the fields of a response that a message has, and that are not a part of what it says or calls."""
    yield from _read_by_name(value, at, OF_ITEM if is_item(value) else OF_MESSAGE)


def _read_by_name(value: object, at: str, but: frozenset[str]) -> Iterator[Stated]:
    for name, meant in FIELDS.items():
        if name not in but and (inner := part(value, name)) is not None and not callable(inner):
            yield Stated(at + name, meant, inner)


def take(collected: dict[str, tuple[str, Any]], meant: str, name: str, value: Any) -> None:
    """Add the value of a field; raises InputError if the field has another value under another name."""
    before, known = collected.get(meant, (name, None))
    if known is None:
        collected[meant] = (name, value)
    elif value is not None and meant in COMPARED and _compared(meant, known) != _compared(meant, value):
        raise InputError([f"the target returned {COMPARED[meant]} that differ, as {before!r} and {name!r}; {ONLY_ONE}"])


def _compared(meant: str, value: Any) -> object:
    """Return the part of a value that must be equal if a field is returned under two names."""
    match meant:
        case "response":
            return value.split()
        case "results":
            return [result.get("doc_id") for result in value]
        case "tool_calls":
            return content_of_turn([{"role": ASSISTANT, "tool_calls": value}])
        case _:
            return value
