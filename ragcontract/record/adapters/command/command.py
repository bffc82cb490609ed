"""A command in any language: one process for each question, or a long-lived one that answers line by line."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.text import shorten, visible
from ragcontract.http.secrets import PLACEHOLDER
from ragcontract.record.adapters.command.line_protocol import question, response_in
from ragcontract.record.adapters.command.process_each import Programs
from ragcontract.record.adapters.command.process_serve import ServedProcess
from ragcontract.record.adapters.command.program import Program
from ragcontract.record.adapters.user_exceptions import redacting
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from ragcontract.record.returned.decoded_json import decoded_json
from ragcontract.record.returned.document_ids import DocumentIds

Arguments = Annotated[
    list[Annotated[str, Meta(title="text; quote numbers")]],
    Meta(min_length=1, title="a list of arguments, as [python, answer.py], without a shell"),
]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    doc_id: Annotated[
        str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a result.")
    ] = None


def system(options: Options, surroundings: Surroundings) -> System:
    """Return a system that runs the command; raises InputError."""
    problems = []
    if (options.each is None) == (options.serve is None):
        problems.append("command: needs one of each and serve")
    arguments = options.each or options.serve or []
    if any(PLACEHOLDER.search(argument) for argument in arguments):
        problems.append("command: a secret in its arguments is seen by all who list processes; put it under environ")
    if options.ready and options.serve is None:
        problems.append("command.ready: is for serve; a program of each takes its question at once")
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


class Each:
    """Runs the program once for each question."""

    concurrency = 4

    def __init__(self, program: Program, ids: DocumentIds, surroundings: Surroundings) -> None:
        """Store how the program is run."""
        self._program = program
        self._ids = ids
        self._secrets = surroundings.secrets
        self._programs = Programs()

    def setup(self) -> None:
        """Do nothing: a program that is not there is found with the first question."""

    def ask(self, query: str, context: Context) -> Response:
        """Run the program, and read what it writes."""
        given = json.dumps(question(query, context)).encode() + b"\n"
        program = self._program
        if context.traceparent:  # where programs look for it that are instrumented with OpenTelemetry
            program = replace(program, environ={**program.environ, "TRACEPARENT": context.traceparent})
        with redacting(self._secrets):
            output = self._programs.output(program, given, context.seconds)
            try:
                found = decoded_json(output)
            except (ValueError, RecursionError) as error:
                if not output.strip():
                    problem = "ended without an answer; print it as JSON to standard output"
                    raise CallFailed("not_json", problem) from error
                shown = shorten(visible(output[: bounds.PATTERN].decode(errors="replace")), bounds.RETURNED_SHOWN)
                raise CallFailed("not_json", f"wrote something else than JSON ({error}): {shown}") from error
            return response_in(found, self._ids)

    def versions(self) -> Mapping[str, str]:
        """Return nothing: a command says no versions."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """Return the program and its arguments."""
        return {"command": {"each": list(self._program.arguments)}}

    def teardown(self) -> None:
        """Kill the programs that still run."""
        self._programs.stop()


class Serve:
    """Keeps the program running, and exchanges lines with it."""

    concurrency = 1  # a program that answers one line after the other would let the others wait

    def __init__(
        self, program: Program, ids: DocumentIds, surroundings: Surroundings, *, says_ready: bool = False
    ) -> None:
        """Store how the program is run."""
        self._program = program
        self._ids = ids
        self._secrets = surroundings.secrets
        self._serving = ServedProcess(program, says_ready=says_ready, secrets=surroundings.secrets)

    def setup(self) -> None:
        """Start the program; raises InputError if it cannot be started, or does not get ready."""
        with redacting(self._secrets):
            self._serving.start()

    def ask(self, query: str, context: Context) -> Response:
        """Exchange a line with the program."""
        with redacting(self._secrets):
            return response_in(self._serving.exchange(question(query, context), context.seconds), self._ids)

    def versions(self) -> Mapping[str, str]:
        """Return nothing: a command says no versions."""
        return {}

    def facts(self) -> Mapping[str, Any]:
        """Return the program and its arguments, and how many of its lines were no answers."""
        return {"command": {"serve": list(self._program.arguments), "stray_lines": self._serving.stray}}

    def teardown(self) -> None:
        """Stop the program."""
        self._serving.stop()
