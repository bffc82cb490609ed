"""Events that readers yield, in reading order: rows, files read to the end, problems and warnings."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from ragcontract.core.run import SourceFile
from ragcontract.files.problems import Collector, MoreProblems, Problem, Warned

Row = TypeVar("Row")


class Batch(Struct, Generic[Row], frozen=True):
    """Valid rows of consecutive lines; ``line`` is the number of the first.

    A batch holds as many rows as fit into one block of the file, because yielding single rows would take as long as
    decoding them.
    """

    path: str
    line: int
    rows: list[Row]

    def location(self, index: int) -> str:
        """Return the location of a row, such as ``golden.jsonl:17``."""
        return f"{self.path}:{self.line + index}"


class FileRead(Struct, frozen=True):
    """A file was read to its end, or as far as possible."""

    file: SourceFile


Event: TypeAlias = Batch[Row] | FileRead | Problem | MoreProblems | Warned


def located(events: Iterable[Event[Row]], problems: Collector) -> Iterator[tuple[str, Row]]:
    """Yield each valid row with its location; all other events are added to ``problems``."""
    for event in events:
        match event:
            case Batch():
                for index, row in enumerate(event.rows):
                    yield event.location(index), row
            case FileRead():
                pass
            case _:
                problems.add(event)
