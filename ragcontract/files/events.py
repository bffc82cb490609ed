"""What readers yield: rows, files that were read to their end, and what is wrong, in the order in which it comes."""

from collections.abc import Iterable, Iterator
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from ragcontract.core.run import SourceFile
from ragcontract.files.problems import Collector, MoreProblems, Problem, Warned

Row = TypeVar("Row")


class Batch(Struct, Generic[Row], frozen=True):
    """Good rows of consecutive lines, ``line`` being the first one's.

    Rows come in batches, as many as fit into a block of the file: a generator's turn a row would cost as much again as
    decoding it.
    """

    path: str
    line: int
    rows: list[Row]

    def location(self, index: int) -> str:
        """Return where a row stands, as ``golden.jsonl:17``."""
        return f"{self.path}:{self.line + index}"


class FileRead(Struct, frozen=True):
    """A file was read to its end, or as far as that is possible."""

    file: SourceFile


Event: TypeAlias = Batch[Row] | FileRead | Problem | MoreProblems | Warned


def located(events: Iterable[Event[Row]], problems: Collector) -> Iterator[tuple[str, Row]]:
    """Yield each good row with its location; ``problems`` collects the rest."""
    for event in events:
        match event:
            case Batch():
                for index, row in enumerate(event.rows):
                    yield event.location(index), row
            case FileRead():
                pass
            case _:
                problems.add(event)
