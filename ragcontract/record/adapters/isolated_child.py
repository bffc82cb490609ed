"""The process that runs isolated Python code; its arguments are ``my_app.search:retrieve`` and options as JSON.

It speaks the protocol of a long-lived command: a line with a question in, a line with its answer out, by ``id``.
Standard output is for answers, so what the code prints goes to standard error, also from C and from programs that it
starts. Standard input is for questions, so the code finds nothing there.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ragcontract.core.errors import RagContractError
from ragcontract.record.adapters.process_serve import answer, failure, question_of
from ragcontract.record.adapters.python_code import PythonOptions, system
from ragcontract.record.interface import CallFailed, Surroundings, System
from ragcontract.record.returned.returned_messages import plain
from ragcontract.record.sources import Sources
from ragcontract.record.watching import packages


def main(arguments: Sequence[str], lines: BinaryIO, answers: BinaryIO) -> None:
    """Answer lines until there are no more; ``arguments`` are the target and the options as JSON."""
    target, options = arguments
    settings = json.loads(options)
    surroundings = Surroundings(folder=Path(settings["folder"]), doc_id=settings["doc_id"])
    answer_lines(lambda: system(PythonOptions(object=target), surroundings), lines, answers)


def answer_lines(make: Callable[[], System], lines: BinaryIO, answers: BinaryIO) -> None:
    """Make a system, and answer lines until there are no more."""
    hosted = IsolatedChild(answers)
    if hosted.prepare(make):
        for line in lines:
            hosted.take(json.loads(line))
        hosted.stop()


def own_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return where lines come from and where answers go to; code finds nothing there, and prints to standard error."""
    own_input, own_output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return own_input, own_output


class IsolatedChild:
    """Answers each line in a thread of its own: the parent decides how many questions are under way."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._sources = Sources(Path())
        self._lock = threading.Lock()
        self._system: System

    def prepare(self, make: Callable[[], System]) -> bool:
        """Make and set up the system; write and return whether it is ready."""
        try:
            self._system = make()
            self._system.setup()
        except RagContractError as error:
            self._say({"ready": True, "unusable": error.lines()})
            return False
        self._say({"ready": True})
        return True

    def take(self, line: Mapping[str, Any]) -> None:
        threading.Thread(target=self._answer, args=(line,), daemon=True).start()

    def stop(self) -> None:
        self._system.teardown()

    def _answer(self, line: Mapping[str, Any]) -> None:
        number = {"id": line["id"]}
        try:
            if "describe" in line:
                facts = {**self._system.facts(), "packages": packages()}
                self._say({**number, "versions": dict(self._system.versions()), "facts": facts})
            else:
                self._say({**number, **answer(self._system.ask(*question_of(line)))})
        except CallFailed as failed:
            self._say({**number, **failure(failed)})
        except RagContractError as error:
            self._say({**number, "unusable": error.lines()})

    def _say(self, line: Mapping[str, Any]) -> None:
        with self._lock:  # sources are under the lock, too: they must be written before answers that depend on them
            if "id" in line:
                line = {**line, "sources": plain(self._sources.new())}
            self._answers.write(json.dumps(line).encode() + b"\n")
            self._answers.flush()


if __name__ == "__main__":
    main(sys.argv[1:], *own_streams())
