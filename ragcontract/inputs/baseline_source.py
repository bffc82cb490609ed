"""The queries of a baseline file: line by line, as the file is made, or out of the whole where it is laid out anew."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import msgspec

from ragcontract.inputs.files import InputFile, Progress, read_whole
from ragcontract.inputs.jsonl import UNDECODABLE
from ragcontract.inputs.lines import MAX_LINE_BYTES
from ragcontract.model import SourceFile

START, FIRST_QUERY = b"{\n", b'  "queries": [\n'
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
    decode = msgspec.json.Decoder(query).decode
    if Path(path).is_file():  # what is no file can be read once only
        with InputFile(path) as file:
            head = _head(file)
        if head is not None:
            return _Lines(path, head, decode, progress)
    return _Whole(path, decode, progress)


class _Lines(Generic[Query_co]):
    def __init__(self, path: str, head: bytes, decode: Callable[[bytes], Query_co], progress: Progress) -> None:
        self.files: list[SourceFile] = []
        self.head = head
        self._path = path
        self._decode = decode
        self._progress = progress

    def whole(self) -> bytes:
        return read_whole(self._path)[0]

    def __iter__(self) -> Iterator[Query_co]:
        decode = self._decode
        with InputFile(self._path, self._progress) as file:
            _head(file)
            count = 0
            try:
                for line in _queries(file):
                    query = decode(line)
                    count += 1
                    yield query
            except UNDECODABLE:  # edited by hand, as it seems: what is left is read as any JSON is
                yield from map(decode, _packed(self.whole())[count:])
                while file.stream.read(MAX_LINE_BYTES):
                    pass  # for the digest
            self.files.append(file.source())


class _Whole(Generic[Query_co]):
    def __init__(self, path: str, decode: Callable[[bytes], Query_co], progress: Progress) -> None:
        self._data, source = read_whole(path, progress)
        self._decode = decode
        self.files = [source]

    @property
    def head(self) -> bytes:
        return self._data

    def whole(self) -> bytes:
        return self._data

    def __iter__(self) -> Iterator[Query_co]:
        yield from map(self._decode, _packed(self._data))


class _Packed(msgspec.Struct):
    """The queries as they are on disk: decoded, a hundred thousand take a gigabyte."""

    queries: list[msgspec.Raw]


def _packed(data: bytes) -> list[msgspec.Raw]:
    return msgspec.json.decode(data, type=_Packed).queries


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


def _queries(file: InputFile) -> Iterator[bytes]:
    """Yield the queries, a line each, and where the file goes on in any other way, that line: which is no query."""
    comma: bool | None = None  # behind the query before, if there is one
    while line := file.stream.readline(MAX_LINE_BYTES):
        query = line.strip()
        if query == b"]" and not comma and file.stream.read(len(START) + 1).strip() == b"}" and not file.stream.read(1):
            return
        if comma is False:
            break
        comma = query.endswith(b",")
        yield query.removesuffix(b",")
    yield b""
