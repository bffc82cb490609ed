"""The lines that a command gets and writes: a question as JSON, and its answer."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.text import shorten
from ragcontract.files.text_length import has_more_text
from ragcontract.record.interface import CallFailed, Context, Response
from ragcontract.record.returned.document_ids import DocumentIds
from ragcontract.record.returned.plain_values import plain
from ragcontract.record.returned.response_forms import response_of

Line = Mapping[str, Any]


def question(query: str, context: Context) -> dict[str, Any]:
    """Return what a command gets with a question: its text, and the context."""
    fields = {name: plain(context[name]) for name in context}
    return {"query": query, **fields, "seconds": context.seconds if context.seconds < bounds.MILLISECONDS else None}


def question_of(line: Line) -> tuple[str, Context]:
    """Return the question and the context in such a line."""
    fields = {name: line[name] for name in Context.__struct_fields__ if line.get(name) is not None}
    if "messages" in fields:
        fields["messages"] = tuple(fields["messages"])
    return str(line["query"]), Context(**fields)


def answer(response: Response) -> dict[str, Any]:
    """Return the line for a response, without the fields that it does not have; raises CallFailed if it is too long."""
    fields = msgspec.structs.asdict(response)
    if has_more_text(fields, bounds.COMMAND_ANSWER):
        raise CallFailed("too_large", f"the answer is longer than {mebibytes(bounds.COMMAND_ANSWER)}")
    return {
        name: plain(value)
        for name, value in fields.items()
        if value is not msgspec.UNSET and (value is not None or name == "response")
    }


def failure(failed: CallFailed) -> dict[str, Any]:
    """Return the line for an attempt that failed."""
    found = {
        "kind": failed.kind,
        "message": str(failed),
        "again": failed.again,
        "pause": failed.pause,
        "detail": plain(failed.detail),
    }
    return {"failed": {name: value for name, value in found.items() if value is not None}}


def response_in(line: Any, ids: DocumentIds) -> Response:
    """Return the response in an answer, which may be anything that a function may return, as JSON.

    An answer may say instead why there is none: ``{"failed": {"message": …, "kind": …, "again": true}}``, or
    ``{"error": …}`` alone; then CallFailed is raised. ``{"unusable": […]}`` raises InputError.
    """
    fields = line if isinstance(line, dict) else {}
    if isinstance(problems := fields.get("unusable"), list):
        raise InputError([str(problem) for problem in problems])
    failed = fields.get("failed")
    if isinstance(failed, dict):
        pause, detail = failed.get("pause"), failed.get("detail")
        raise CallFailed(
            str(failed.get("kind") or "error"),
            shorten(str(failed.get("message") or "it says that it failed"), bounds.FAILURE),
            again=failed.get("again") is True,
            pause=pause if isinstance(pause, int | float) else None,
            detail=detail if isinstance(detail, dict) else None,
        )
    given = {name: value for name, value in fields.items() if name != "id"} if "id" in fields else line
    if isinstance(given, dict) and set(given) == {"error"} and given["error"]:
        raise CallFailed("error", shorten(str(given["error"]), bounds.FAILURE))
    return response_of(given, ids)
