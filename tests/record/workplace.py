"""A system to record in tests, and what a recording of it needs."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragcontract.net.pool import Stop
from ragcontract.record.events import Event
from ragcontract.record.interface import Context, Response
from ragcontract.record.record_options import RecordOptions, settled
from ragcontract.record.recording import Recording, record
from ragcontract.record.target import Target
from tests.builders import Row, golden, write_jsonl

Answer = Callable[[str, Context], Response]


def finds(*doc_ids: str) -> Response:
    """Return a response that retrieved documents (``doc1`` if none is named)."""
    return Response(results=[{"doc_id": doc_id} for doc_id in doc_ids or ["doc1"]])


def always(_query: str, _context: Context) -> Response:
    """Find the document that every golden query of the tests wants."""
    return finds()


class Toy:
    """A system that answers as a function says, and notes what it was asked."""

    def __init__(
        self, answer: Answer = always, *, concurrency: int = 1, versions: Mapping[str, str] | None = None
    ) -> None:
        self.concurrency = concurrency
        self.asked: list[tuple[str, Context]] = []
        self.calls: list[str] = []
        self._answer = answer
        self._versions = versions or {}
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[str]:
        """The ids of the questions that were asked, in order."""
        return [context.query_id for _, context in self.asked]

    def setup(self) -> None:
        self.calls.append("setup")

    def ask(self, query: str, context: Context) -> Response:
        with self._lock:
            self.asked.append((query, context))
        return self._answer(query, context)

    def versions(self) -> Mapping[str, str]:
        return self._versions

    def facts(self) -> Mapping[str, Any]:
        return {"llm": {"model": "toy"}}

    def teardown(self) -> None:
        self.calls.append("teardown")


class Workplace:
    """A folder with golden queries in which systems are recorded."""

    def __init__(self, folder: Path, rows: Sequence[Row] | int = 3) -> None:
        self.folder = folder
        self.out = folder / "current_run.jsonl"
        self.journal = folder / ".current_run.jsonl.journal"
        self.events: list[Event] = []
        self.stop = Stop()
        self.write(rows)

    def write(self, rows: Sequence[Row] | int) -> None:
        """Replace the golden queries; a number stands for so many, ``q1`` to ``qN``."""
        made = [golden(f"q{number + 1}") for number in range(rows)] if isinstance(rows, int) else rows
        write_jsonl(self.folder / "golden.jsonl", made)

    def record(
        self,
        system: Toy | Answer,
        *,
        name: str = "toy",
        sha256: str = "1",
        manner: Mapping[str, Any] | None = None,
        **wanted: Any,
    ) -> Recording:
        """Record a system; ``manner`` and ``wanted`` replace defaults."""
        toy = system if isinstance(system, Toy) else Toy(system)
        how = {"top": 10, "concurrency": toy.concurrency, **(manner or {})}
        options = {"golden": [str(self.folder / "golden.jsonl")], "out": str(self.out), **how, **wanted}
        return record(
            settled(RecordOptions(**options), folder=self.folder),
            Target(name=name, sha256=sha256, system=toy),
            stop=self.stop,
            watch=self.events.append,
        )

    def of_kind(self, kind: type[Any]) -> list[Any]:
        """Return the events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]
