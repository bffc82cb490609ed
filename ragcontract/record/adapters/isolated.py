"""Run Python code in a process of its own, which can be killed when it hangs and started again when it dies."""

import json
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ragcontract.core.errors import InputError
from ragcontract.record.adapters.framework import redacting
from ragcontract.record.adapters.process_serve import ServedProcess
from ragcontract.record.adapters.program import Program, question, response_in
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings, System
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.sources import Source

DESCRIBING = 30  # s; how long the process may take to report its versions


class IsolatedCode(System):
    """A system whose Python code runs in :mod:`ragcontract.record.adapters.isolated_child`."""

    def __init__(self, named: str, surroundings: Surroundings) -> None:
        options = {"folder": str(surroundings.folder.resolve()), "doc_id": surroundings.doc_id}
        arguments = [
            sys.executable,
            "-m",
            "ragcontract.record.adapters.isolated_child",
            named,
            json.dumps(options),
        ]
        program = Program(arguments=arguments, folder=Path.cwd())
        self._serving = ServedProcess(program, says_ready=True, secrets=surroundings.secrets)
        self._ids = DocumentIds(None)  # the process has found the ids already
        self._secrets = surroundings.secrets
        self._sources = surroundings.sources
        self._is_set_up = False

    def setup(self) -> None:
        """Start the process; raises InputError if the code cannot be imported or set up there."""
        with redacting(self._secrets):
            if isinstance(problems := self._serving.start().get("unusable"), list):
                self._serving.stop()
                raise InputError([str(problem) for problem in problems])
        self._is_set_up = True

    def ask(self, query: str, context: Context) -> Response:
        """Send the question to the process and return its answer."""
        with redacting(self._secrets):
            return response_in(self._exchange(question(query, context), context.seconds), self._ids)

    def versions(self) -> Mapping[str, str]:
        """Return the versions that the process reports; nothing if it does not answer."""
        versions: dict[str, str] = self._description.get("versions", {})
        return versions

    def facts(self) -> Mapping[str, Any]:
        """Return the versions of the packages that the process has imported."""
        return {**self._description.get("facts", {}), "stray_lines": self._serving.stray}

    def teardown(self) -> None:
        """Let the process tear the code down and end."""
        self._serving.stop()

    def _exchange(self, line: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a line and return its answer, without the modules that the process has imported since the last one."""
        answer = {**self._serving.exchange(line, seconds)}
        imported = msgspec.convert(answer.pop("sources", []), list[Source])
        if self._sources is not None:
            self._sources.add(imported)
        return answer

    @cached_property
    def _description(self) -> Mapping[str, Any]:
        if not self._is_set_up:  # somebody interrupted the setup, and must not wait until the imports end
            return {}
        try:
            return self._exchange({"describe": True}, DESCRIBING)
        except (CallFailed, InputError):
            return {}
