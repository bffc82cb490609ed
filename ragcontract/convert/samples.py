"""Reads JSON objects from files of JSON lines or of one JSON list."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from ragcontract.core import bounds
from ragcontract.files.events import located
from ragcontract.files.jsonl import UNDECODABLE, read_jsonl
from ragcontract.files.locate import JsonLocator
from ragcontract.files.malformed import malformed
from ragcontract.files.nesting import check_nesting
from ragcontract.files.opening import (
    READ_ERRORS,
    UTF8_BOM,
    InputFile,
    Progress,
    no_progress,
    read_problem,
    read_whole,
)
from ragcontract.files.problems import Collector
from ragcontract.files.schema import Mismatch, mismatches

PEEKED = 1024

T = TypeVar("T", bound=msgspec.Struct)


class Samples(Generic[T]):
    """Iterates over the objects of one or more files, each with its location, such as ``samples.json:17``."""

    def __init__(
        self, paths: Sequence[str], row_type: type[T], problems: Collector, progress: Progress = no_progress
    ) -> None:
        """Read ``paths`` as objects of ``row_type``; ``problems`` collects the problems in them."""
        self._paths = paths
        self._type = row_type
        self._problems = problems
        self._progress = progress

    def __iter__(self) -> Iterator[tuple[str, T]]:
        """Yield each valid object with its location."""
        for path in self._paths:
            try:
                if _starts_a_list(path):
                    yield from self._list(path)
                    continue
            except READ_ERRORS as error:
                self._problems.problem(path, read_problem(error))
                continue
            events = read_jsonl([path], self._type, spell_check=bounds.SPELL_CHECKED, progress=self._progress)
            yield from located(events, self._problems)

    def _list(self, path: str) -> Iterator[tuple[str, T]]:
        data, _ = read_whole(path, self._progress)
        try:
            text = data.decode()
            items = list_items(data)
        except UNDECODABLE as error:
            line, message = malformed(data, error)
            self._problems.problem(f"{path}:{line}", message)
            return
        if not items:
            self._problems.problem(path, "is an empty list; expected JSON objects in it")
        locate = JsonLocator(text)
        for index, (line, item) in enumerate(with_lines(data, items)):
            try:
                yield f"{path}:{line}", msgspec.json.decode(item, type=self._type)
            except UNDECODABLE as error:
                self._explain(path, index, item, error, locate)

    def _explain(self, path: str, index: int, item: bytes, error: Exception, locate: JsonLocator) -> None:
        if self._problems.full:
            self._problems.count()
            return
        for mismatch in mismatches(msgspec.json.decode(item), self._type) or [Mismatch((), str(error))]:
            self._problems.mismatch(f"{path}:{locate.line((index, *mismatch.path))}", mismatch)


def _starts_a_list(path: str) -> bool:
    if not Path(path).is_file():  # a pipe can be read only once; it is read as lines
        return False
    with InputFile(path) as file:
        return file.stream.peek(PEEKED)[:PEEKED].removeprefix(UTF8_BOM).lstrip().startswith(b"[")


def list_items(data: bytes) -> list[msgspec.Raw]:
    """Return the items of a JSON list, still encoded; raises one of ``UNDECODABLE``."""
    check_nesting(data)
    items = msgspec.json.decode(data, type=list[msgspec.Raw])
    msgspec.json.decode(data)  # decoding to Raw skips the items without validating them
    return items


def with_lines(data: bytes, items: Iterable[msgspec.Raw], start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the items of a list in ``data`` that begins at the offset ``start``, each with its line."""
    at, number = start, 1 + data.count(b"\n", 0, start)
    for item in map(bytes, items):
        # Only white space and a comma precede the item, so index() finds it; a locator would scan from the start.
        begin = data.index(item, at)
        number += data.count(b"\n", at, begin)
        yield number, item
        number += item.count(b"\n")
        at = begin + len(item)
