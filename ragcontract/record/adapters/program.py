"""Start and kill a program, without a shell, and translate the lines that it reads and writes.

A line is JSON: a question for the program, or its answer.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Struct

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.json_lines import has_more_text
from ragcontract.record.interface import CallFailed, Context, Response
from ragcontract.record.returned.response_forms import response_of
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.returned.returned_messages import plain


class Program(Struct, frozen=True, kw_only=True):
    """A program and how it is started."""

    arguments: Sequence[str]  # the first is the program
    folder: Path  # that it starts in
    environ: Mapping[str, str] = {}  # the variables that it has beside ours

    def start(self, stdin: IO[bytes] | int = subprocess.PIPE) -> subprocess.Popen[bytes]:
        """Start the program as the head of a process group; raises InputError if that fails."""
        try:
            return subprocess.Popen(  # noqa: S603 (the user's own program, and no shell)
                list(self.arguments),
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**os.environ, **self.environ},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError([f"{self.arguments[0]}: cannot be started ({reason})"]) from error


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it started, unless it has ended: another process may have its number by now."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_words(stderr: bytes) -> str:
    """Return the end of a process's standard error as a clause for a message; empty if it wrote nothing."""
    text = visible(stderr[-bounds.STDERR_TAIL :].decode(errors="replace").strip())
    return f"; its last words were: {text}" if text else ""


def pipe_of(stream: IO[bytes] | None) -> IO[bytes]:
    """Return a stream of a process that was started with pipes; raises TypeError if there is none."""
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream


Line = Mapping[str, Any]


def question(query: str, context: Context) -> dict[str, Any]:
    """Return the line for a question: its text and its context."""
    fields = {name: plain(context[name]) for name in context}
    return {"query": query, **fields, "seconds": context.seconds if context.seconds < bounds.MILLISECONDS else None}


def question_of(line: Line) -> tuple[str, Context]:
    """Return the question and the context in a line."""
    fields = {name: line[name] for name in Context.__struct_fields__ if line.get(name) is not None}
    if "messages" in fields:
        fields["messages"] = tuple(fields["messages"])
    return str(line["query"]), Context(**fields)


def answer(response: Response) -> dict[str, Any]:
    """Return the line for a response, without absent fields; raises CallFailed if it is too long."""
    fields = msgspec.structs.asdict(response)
    if has_more_text(fields, bounds.COMMAND_ANSWER):
        raise CallFailed("too_large", f"the answer is longer than {mebibytes(bounds.COMMAND_ANSWER)}")
    return {
        name: plain(value)
        for name, value in fields.items()
        if value is not msgspec.UNSET and (value is not None or name == "response")
    }


def failure(failed: CallFailed) -> dict[str, Any]:
    """Return the line for a failed attempt."""
    fields = {
        "kind": failed.kind,
        "message": str(failed),
        "again": failed.again,
        "pause": failed.pause,
        "detail": plain(failed.detail),
    }
    return {"failed": {name: value for name, value in fields.items() if value is not None}}


def response_in(line: Any, ids: DocumentIds) -> Response:
    """Return the response for an answer, which may be anything that a function may return, as JSON.

    Raises CallFailed for ``{"failed": {"message": …, "kind": …, "again": true}}`` and for an ``{"error": …}`` alone,
    and InputError for ``{"unusable": […]}``.
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
    content = {name: value for name, value in fields.items() if name != "id"} if "id" in fields else line
    if isinstance(content, dict) and set(content) == {"error"} and content["error"]:
        raise CallFailed("error", shorten(str(content["error"]), bounds.FAILURE))
    return response_of(content, ids)
