"""The queries of a baseline file: line by line, as the file is made, or out of the whole where it is laid out anew."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from ragcontract.files.jsonl import UNDECODABLE
from ragcontract.files.lines import blocks_of
from ragcontract.files.opening import BUFFER, InputFile, Progress, read_whole
from ragcontract.model import SourceFile

START, FIRST_QUERY, END = b"{\n", b'  "queries": [\n', b"\n  ]\n}"
LAST_BYTES = 64
CHANGED = "it changed while it was read; run again"
MAX_HEAD_BYTES = 16 << 20

Query_co = TypeVar("Query_co", covariant=True)


class Source(Protocol[Query_co]):
    """A baseline file: its ``head``, which is all but the queries, and they one by one.

    Iterating raises one of ``READ_ERRORS`` or ``UNDECODABLE``. ``files`` is complete once iterated.
    """

    @property
    def files(self) -> list[SourceFile]: ...  # noqa: D102

    @property
    def head(self) -> bytes: ...  # noqa: D102

    def whole(self) -> bytes: ...  # noqa: D102

    def __iter__(self) -> Iterator[Query_co]: ...  # noqa: D105


def open_source(path: str, query: type[Query_co], progress: Progress) -> Source[Query_co]:
    """Look what the file is like, whose queries are such records; raises one of ``READ_ERRORS``."""
    if _ends_with_the_queries(path):
        with InputFile(path) as file:
            head = _head(file)
        if head is not None and _has_queries(head):
            return _Lines(path, head, query, progress)
    return _Whole(path, query, progress)


class _Lines(Generic[Query_co]):
    def __init__(self, path: str, head: bytes, query: type[Query_co], progress: Progress) -> None:
        self.files: list[SourceFile] = []
        self.head = head
        self._path = path
        self._query = query
        self._progress = progress

    def whole(self) -> bytes:
        data, source = read_whole(self._path)  # a second time, of which the progress knows nothing
        if self.files and self.files[0].sha256 != source.sha256:
            raise OSError(CHANGED)
        return data

    def __iter__(self) -> Iterator[Query_co]:
        decode = msgspec.json.Decoder(list[self._query]).decode  # type: ignore[name-defined]
        with InputFile(self._path, self._progress) as file:
            _head(file)
            count = 0
            try:
                for text in _lists(file):
                    queries = decode(text)
                    yield from queries
                    count += len(queries)
            except UNDECODABLE:  # edited by hand, as it seems: what is left is read as any JSON is
                while file.stream.read(BUFFER):
                    pass  # for the digest
                self.files.append(file.source())
                yield from _decoded(self.whole(), self._query, count)
            else:
                self.files.append(file.source())


class _Whole(Generic[Query_co]):
    def __init__(self, path: str, query: type[Query_co], progress: Progress) -> None:
        self._data, source = read_whole(path, progress)
        self._query = query
        self.files = [source]

    @property
    def head(self) -> bytes:
        return self._data

    def whole(self) -> bytes:
        return self._data

    def __iter__(self) -> Iterator[Query_co]:
        yield from _decoded(self._data, self._query)


class _Packed(msgspec.Struct):
    """The queries as they are on disk: decoded, a hundred thousand take a gigabyte."""

    queries: list[msgspec.Raw]


def _decoded(data: bytes, query: type[Query_co], first: int = 0) -> Iterator[Query_co]:
    decode = msgspec.json.Decoder(query).decode
    yield from map(decode, msgspec.json.decode(data, type=_Packed).queries[first:])


def _ends_with_the_queries(path: str) -> bool:
    """Tell whether there is no field behind the queries. What is no file, as a pipe, can be read but once."""
    if not Path(path).is_file():
        return False
    with Path(path).open("rb") as file:
        file.seek(-min(file.seek(0, os.SEEK_END), LAST_BYTES), os.SEEK_END)
        return file.read().rstrip().endswith(END)


def _has_queries(head: bytes) -> bool:
    try:
        return not msgspec.json.decode(head, type=_Packed).queries
    except UNDECODABLE:  # the line was another field's, somewhere within
        return False


def _head(file: InputFile) -> bytes | None:
    """Read up to the first query, and return all that with an end; None where there is no such line."""
    head = file.stream.readline(len(START))
    if head != START:
        return None
    while len(head) < MAX_HEAD_BYTES and (line := file.stream.readline(MAX_HEAD_BYTES)):
        head += line
        if line == FIRST_QUERY:
            return head + b"]}"
    return None


def _lists(file: InputFile) -> Iterator[bytes]:
    """Yield the queries that end in a block as a JSON list, block by block; what cannot be decoded is no list of them.

    They are cut where a comma ends a line: that is between two queries, or would leave none that is whole.
    """
    begun: list[bytes] = []
    comma = False
    for block in blocks_of(file):
        begun.append(block)
        if b",\n" in block:
            queries, _, rest = b"".join(begun).rpartition(b",\n")
            yield b"[" + (queries.strip() or b",") + b"]"  # nothing between two commas is no query
            begun, comma = [rest], True
    last, end, beyond = b"".join(begun).rpartition(END)
    is_list = end and not beyond.strip() and (last.strip() or not comma)
    yield b"[" + last + b"]" if is_list else b"[,]"
