"""Ask a command in any language: one process for each question, or a long-lived one that answers line by line.

A program that is run for each question reads it from standard input and writes its answer to standard output, within
limits of time and size. Python code that is isolated is a program that lives long.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from typing import IO, Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.core.safe_text import shorten, visible
from ragcontract.files.writing import temporary_file, unwritable_temporary
from ragcontract.net.secrets import PLACEHOLDER
from ragcontract.record.adapters.framework import redacting
from ragcontract.record.adapters.process_serve import (
    Line,
    Program,
    ServedProcess,
    kill,
    last_words,
    question,
    response_in,
)
from ragcontract.record.interface import CallFailed, Context, DocIdExpression, Response, Surroundings, System
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.returned.returned_messages import decoded_json
from ragcontract.record.sources import Source

Arguments = Annotated[
    list[Annotated[str, Meta(title="text; quote numbers")]],
    Meta(min_length=1, title="a list of arguments, as [python, answer.py], without a shell"),
]


class CommandOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that gets a question as JSON on standard input and writes its answer as JSON to standard output."""

    each: Annotated[Arguments | None, Meta(description="A program that is run for each question.")] = None
    serve: Annotated[
        Arguments | None, Meta(description="A program that runs all the time: a line in, a line with its `id` out.")
    ] = None
    ready: Annotated[bool, Meta(description='Whether `serve` writes `{"ready": true}` before it takes questions.')] = (
        False
    )
    folder: Annotated[str, Meta(description="Where it is started, relative to the file.")] = "."
    environ: Annotated[
        dict[str, Annotated[str, Meta(title="text; quote numbers")]],
        Meta(description="Variables for its environment; the place for secrets."),
    ] = {}
    doc_id: DocIdExpression = None


OPTIONS = CommandOptions


def system(options: CommandOptions, surroundings: Surroundings) -> System:
    """Return a system that runs the command; raises InputError."""
    problems = []
    if (options.each is None) == (options.serve is None):
        problems.append("command: needs either `each` or `serve`")
    arguments = options.each or options.serve or []
    if any(PLACEHOLDER.search(argument) for argument in arguments):
        problems.append("command: a secret in its arguments is seen by all who list processes; put it under environ")
    if options.ready and options.serve is None:
        problems.append("command.ready: is for `serve`; a program under `each` takes its question at once")
    folder = surroundings.folder / options.folder
    if not folder.is_dir():
        problems.append(f"command.folder: there is no folder {folder}")
    if problems:
        raise InputError(problems)
    environ = {name: surroundings.secrets.filled(value) for name, value in options.environ.items()}
    program = Program(arguments=arguments, folder=folder.absolute(), environ=environ)
    ids = DocumentIds(surroundings.doc_id or options.doc_id)
    if options.each is not None:
        return Each(program, ids, surroundings)
    return Serve(program, ids, surroundings, says_ready=options.ready)


class Each(System):
    """A system that runs the program once for each question."""

    concurrency = 4

    def __init__(self, program: Program, ids: DocumentIds, surroundings: Surroundings) -> None:
        self._program = program
        self._ids = ids
        self._secrets = surroundings.secrets
        self._programs = Programs()

    def setup(self) -> None:
        """Do nothing: if the program is missing, the first question reports it."""

    def ask(self, query: str, context: Context) -> Response:
        line = json.dumps(question(query, context)).encode() + b"\n"
        program = self._program
        if context.traceparent:  # programs with OpenTelemetry read it there
            program = replace(program, environ={**program.environ, "TRACEPARENT": context.traceparent})
        with redacting(self._secrets):
            output = self._programs.output(program, line, context.seconds)
            try:
                answer = decoded_json(output)
            except (ValueError, RecursionError) as error:
                if not output.strip():
                    problem = "ended without an answer; print it as JSON to standard output"
                    raise CallFailed("not_json", problem) from error
                shown = shorten(visible(output[: bounds.PATTERN].decode(errors="replace")), bounds.RETURNED_SHOWN)
                raise CallFailed("not_json", f"wrote something else than JSON ({error}): {shown}") from error
            return response_in(answer, self._ids)

    def facts(self) -> Mapping[str, Any]:
        return {"command": {"each": list(self._program.arguments)}}

    def teardown(self) -> None:
        self._programs.stop()


class Serve(System):
    """A system that keeps a program running and exchanges lines with it, one at a time unless the user says otherwise.

    Other questions would wait for a program that answers one line after the other.
    """

    def __init__(
        self,
        program: Program,
        ids: DocumentIds,
        surroundings: Surroundings,
        *,
        says_ready: bool = False,
        ready_seconds: float | None = None,
    ) -> None:
        self._program = program
        self._ids = ids
        self._secrets = surroundings.secrets
        self._serving = ServedProcess(
            program, says_ready=says_ready, secrets=surroundings.secrets, ready_seconds=ready_seconds
        )

    def setup(self) -> None:
        with redacting(self._secrets):
            self._start()

    def ask(self, query: str, context: Context) -> Response:
        with redacting(self._secrets):
            return response_in(self._exchange(question(query, context), context.seconds), self._ids)

    def facts(self) -> Mapping[str, Any]:
        return {"command": {"serve": list(self._program.arguments), "stray_lines": self._serving.stray}}

    def teardown(self) -> None:
        self._serving.stop()

    def _start(self) -> Line:
        return self._serving.start()

    def _exchange(self, line: Line, seconds: float) -> Line:
        return self._serving.exchange(line, seconds)


DESCRIBING = 30  # s; how long the process may take to report its versions


class HostedSystem(Serve):
    """A system that another process of ours runs: one that speaks as :mod:`~.isolated_child` does."""

    def __init__(self, program: Program, surroundings: Surroundings, *, ready_seconds: float | None = None) -> None:
        # The process has found the ids already.
        super().__init__(program, DocumentIds(None), surroundings, says_ready=True, ready_seconds=ready_seconds)
        self._sources = surroundings.sources
        self._is_set_up = False

    def versions(self) -> Mapping[str, str]:
        versions = self._description.get("versions")
        return {str(name): str(of) for name, of in versions.items()} if isinstance(versions, dict) else {}

    def facts(self) -> Mapping[str, Any]:
        return {**self._description.get("facts", {}), "stray_lines": self._serving.stray}

    def _start(self) -> Line:
        line = super()._start()
        if isinstance(problems := line.get("unusable"), list):
            self._serving.stop()
            raise InputError([str(problem) for problem in problems])
        self._is_set_up = True
        return line

    def _exchange(self, line: Line, seconds: float) -> Line:
        """Send a line and return its answer, without the modules that the process has imported since the last one."""
        answer = {**super()._exchange(line, seconds)}
        try:  # the code that runs there may write lines of its own
            imported = msgspec.convert(answer.pop("sources", []), list[Source])
        except msgspec.ValidationError as error:
            raise CallFailed("error", f"the process wrote an answer that is none: sources: {error}") from error
        if self._sources is not None:
            self._sources.add(imported)
        return answer

    @cached_property
    def _description(self) -> Line:
        if not self._is_set_up:  # somebody interrupted the setup, and must not wait until the imports end
            return {}
        try:
            return self._exchange({"describe": True}, DESCRIBING)
        except (CallFailed, InputError):
            return {}


class IsolatedCode(HostedSystem):
    """A system whose Python code runs in :mod:`ragcontract.record.adapters.isolated_child`."""

    def __init__(self, named: str, surroundings: Surroundings) -> None:
        options = json.dumps({"folder": str(surroundings.folder.resolve()), "doc_id": surroundings.doc_id})
        arguments = [sys.executable, "-m", "ragcontract.record.adapters.isolated_child", named, options]
        super().__init__(Program(arguments=arguments, folder=Path.cwd()), surroundings)


PART = 1 << 16  # bytes that are read at once
GLANCE = 0.05  # s; how often it is checked whether a program has ended while a child of it holds its output open


class Programs:
    """Runs programs, and can stop all that run."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def output(self, program: Program, data: bytes, seconds: float) -> bytes:
        """Run a program with ``data`` as its standard input, and return its standard output.

        Raises CallFailed if it takes too long, writes too much or ends with an exit code other than 0, InputError if it
        cannot be started. The message has the end of its standard error.
        """
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            stdin = stack.enter_context(_to_read(data))  # unlike a pipe, it needs no thread that writes to it
            process = program.start(stdin)
            self._running.add(process)
            stack.callback(self._running.discard, process)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stack.callback(stream.close)
            stack.callback(kill, process)
            if self._stopped:  # while it was started
                raise CallFailed("process_ended", "the process was stopped")
            return _output(process, until, seconds)

    def stop(self) -> None:
        self._stopped = True
        for process in list(self._running):
            kill(process)


def _to_read(data: bytes) -> IO[bytes]:
    """Return a temporary file with ``data``; raises OutputError."""
    file = temporary_file()
    try:
        file.write(data)
        file.seek(0)
    except OSError as error:
        with suppress(OSError):
            file.close()
        raise unwritable_temporary(error) from error
    return file


def _output(process: subprocess.Popen[bytes], until: float, seconds: float) -> bytes:
    output = bytearray()
    tail: deque[int] = deque(maxlen=bounds.STDERR_TAIL)
    with selectors.DefaultSelector() as selector:
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise CallFailed(
                    "read_timeout", f"no answer within {seconds:.3g} s{last_words(bytes(tail))}", again=True
                )
            ended = process.poll() is not None  # checked before reading: then all of its output is there
            ready = selector.select(min(left, GLANCE))
            for key, _ in ready:
                part = _part(key.fd)
                if not part:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stdout:
                    output += part
                else:
                    tail.extend(part)
            if len(output) > bounds.COMMAND_ANSWER:
                raise CallFailed("too_large", f"wrote more than {mebibytes(bounds.COMMAND_ANSWER)} for one question")
            if ended and not ready:
                break
    return _ended(process, bytes(output), bytes(tail), max(0, until - time.monotonic()))


def _part(descriptor: int) -> bytes:
    with suppress(BlockingIOError):
        return os.read(descriptor, PART)
    return b""


def _ended(process: subprocess.Popen[bytes], output: bytes, tail: bytes, left: float) -> bytes:
    words = last_words(tail)
    try:
        code = process.wait(left)
    except subprocess.TimeoutExpired:
        raise CallFailed("read_timeout", f"did not end after its answer{words}", again=True) from None
    if code:
        raise CallFailed("exit_code", f"ended with exit code {code}{words}", detail={"exit_code": code})
    return output
