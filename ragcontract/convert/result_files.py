"""Reads what evaluation tools write as one JSON document with a list of results."""

import re
from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from ragcontract.convert.samples import with_lines
from ragcontract.core import bounds
from ragcontract.files.jsonl import UNDECODABLE, explained
from ragcontract.files.lines import ZIP
from ragcontract.files.locate import JsonLocator
from ragcontract.files.malformed import malformed
from ragcontract.files.nesting import check_nesting
from ragcontract.files.opening import READ_ERRORS, Progress, read_problem, read_within
from ragcontract.files.problems import Collector

# Python's json writes NaN, which is no JSON: all tools but promptfoo do so for a score that could not be computed.
_NAN = re.compile(rb'"(?:[^"\\]|\\.)*"|\bNaN\b', re.DOTALL)

Document = TypeVar("Document", bound=Struct)
Item = TypeVar("Item", bound=Struct)


class ResultFile(Struct, frozen=True):
    """A file of results, read whole; numbers that are not numbers (NaN) are null in it."""

    path: str
    data: bytes

    def document(self, record: type[Document], problems: Collector) -> Document | None:
        """Decode the document; on an error, add the problems and return None."""
        try:
            check_nesting(self.data)
            return msgspec.json.decode(self.data, type=record)
        except UNDECODABLE as error:
            self._explain(self.data, 1, error, record, problems)
            return None

    def items(
        self, encoded: list[msgspec.Raw], record: type[Item], problems: Collector, *, after: bytes
    ) -> Iterator[tuple[str, Item]]:
        """Yield the items of a list, each with its location; ``after`` is the name of the list in the file."""
        start = max(0, self.data.rfind(b'"%s"' % after, 0, self.data.find(encoded[0]))) if encoded else 0
        for line, item in with_lines(self.data, encoded, start):
            try:
                yield f"{self.path}:{line}", msgspec.json.decode(item, type=record)
            except UNDECODABLE as error:
                if problems.full:
                    problems.count()
                else:
                    self._explain(item, line, error, record, problems)

    def _explain(self, data: bytes, line: int, error: Exception, record: type[Struct], problems: Collector) -> None:
        """Add the problems of a value that begins on ``line``."""
        if not isinstance(error, msgspec.ValidationError):
            within, message = malformed(data, error)
            problems.problem(f"{self.path}:{line + within - 1}", message)
            return
        locate = JsonLocator(data.decode(errors="replace"))
        for mismatch in explained(data, error, record):
            problems.mismatch(f"{self.path}:{line + locate.line(mismatch.path) - 1}", mismatch)


def read_results(
    paths: Sequence[str], record: type[Document], problems: Collector, progress: Progress, *, zipped: str
) -> Iterator[tuple[ResultFile, Document]]:
    """Yield the files with their documents, and collect problems of the others.

    ``zipped`` is the way out for a ZIP archive.
    """
    for path in paths:
        file = _read(path, zipped, problems, progress)
        document = file.document(record, problems) if file else None
        if file is not None and document is not None:
            yield file, document


def _read(path: str, zipped: str, problems: Collector, progress: Progress) -> ResultFile | None:
    try:
        data, _ = read_within(bounds.RESULTS, path, progress, beyond="; evaluate in several parts")
    except READ_ERRORS as error:
        problems.problem(path, read_problem(error))
        return None
    if data.startswith(ZIP):
        problems.problem(path, f"is a ZIP archive; {zipped}")
    elif not data.strip():
        problems.problem(path, "is empty; expected one JSON document")
    else:
        return ResultFile(path, _without_nan(data) if b"NaN" in data else data)
    return None


def _without_nan(data: bytes) -> bytes:
    return _NAN.sub(lambda found: b"null" if found[0] == b"NaN" else found[0], data)
