"""Reading JSON lines: one object a line, as typed records, with every problem told by file and line."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec

from ragcontract.files.lines import UnreadableError, line_blocks_of
from ragcontract.files.malformed import malformed
from ragcontract.files.opening import READ_ERRORS, UTF8_BOM, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Diagnostics
from ragcontract.files.schema import Mismatch, mismatches, nearest
from ragcontract.model import SourceFile

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

T = TypeVar("T", bound=msgspec.Struct)


class JsonLines(Generic[T]):
    """The rows of one or more files.

    ``path`` and ``number`` say where the row that came last stands, or the first of the batch that came last; ``files``
    has the digests once all are read. Rows are decoded in batches, as many as fit into a block of the file: a
    generator's turn a row would cost as much again.
    """

    def __init__(
        self,
        paths: Sequence[str],
        row_type: type[T],
        diagnostics: Diagnostics,
        *,
        spell_check: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        """Read ``paths`` as rows of ``row_type``.

        The fields of the first ``spell_check`` rows of each file (all) are spell-checked.
        """
        self.files: list[SourceFile] = []
        self.path = ""
        self.number = 0
        self._paths = paths
        self._type = row_type
        self._decode: Callable[[bytes], T] = msgspec.json.Decoder(row_type).decode
        self._diagnostics = diagnostics
        self._to_spell_check = sys.maxsize if spell_check is None else spell_check
        self._decode_strictly: Callable[[bytes], T] | None = None
        if spell_check is None and not any(_known_fields(row_type).values()):
            # All fields of all rows: the decoder finds those that are not known at no cost.
            self._decode_strictly = msgspec.json.Decoder(_strict(row_type)).decode
            self._to_spell_check = 0
        self._progress = progress
        self._misspelled: set[str] = set()
        self._rows = 0  # of the file at hand, good or bad

    @property
    def location(self) -> str:
        """Where the row that came last stands, as ``golden.jsonl:17``."""
        return f"{self.path}:{self.number}"

    def __iter__(self) -> Iterator[T]:
        """Yield each good row; a bad one is told to the diagnostics and left out."""
        for rows in self.batches():
            for row in rows:
                yield row
                self.number += 1

    def batches(self) -> Iterator[list[T]]:
        """Yield good rows of lines that follow each other, of which ``path`` and ``number`` tell the first."""
        for path in self._paths:
            self.path, self.number = path, 1
            try:
                file = InputFile(path, self._progress)
            except OSError as error:
                self._diagnostics.problem(path, read_problem(error))
                continue
            with file:
                yield from self._of_file(file)
                self.files.append(file.source())

    def _of_file(self, file: InputFile) -> Iterator[list[T]]:
        decode = self._decode_strictly or self._decode
        self._rows = self.number = read = 0
        try:
            for lines in line_blocks_of(file, "JSON lines"):
                try:
                    rows = None if self._rows < self._to_spell_check else list(map(decode, lines))
                except UNDECODABLE:
                    rows = None
                if rows is None:
                    yield from self._line_by_line(lines, read + 1)
                else:
                    self.number = read + 1
                    self._rows += len(rows)
                    yield rows
                self.number = read = read + len(lines)
        except UnreadableError as error:
            self._diagnostics.problem(f"{self.path}:{self.number + error.lines_on}", str(error))
        except READ_ERRORS as error:
            self._diagnostics.problem(f"{self.path}:{read + 1}", read_problem(error))
        else:
            if not self._rows:
                self._diagnostics.problem(self.path, "is empty; expected one JSON object a line")

    def _line_by_line(self, lines: Sequence[bytes], first: int) -> Iterator[list[T]]:
        """Read lines that are to be spell-checked, or some of which are blank, bad, or begin with a byte order mark."""
        decode = self._decode_strictly or self._decode
        for number, marked in enumerate(lines, first):
            line = marked.removeprefix(UTF8_BOM)  # not only of the first: files are put together
            if not line or line.isspace():
                continue
            self.number = number
            try:
                row: T | None = decode(line)
                if self._rows < self._to_spell_check:
                    self._check_spelling(line)
            except UNDECODABLE as error:
                row = self._second_look(line, error, first=not self._rows)
            self._rows += 1
            if row is not None:
                yield [row]

    def _second_look(self, line: bytes, error: Exception, *, first: bool) -> T | None:
        """Decode a row that has fields of its own; tell what is wrong with any other."""
        if self._decode_strictly is not None:
            try:
                row = self._decode(line)
                self._check_spelling(line)
            except UNDECODABLE as found:
                error = found
            else:
                return row
        self._explain(line, error, first=first)
        return None

    def _explain(self, line: bytes, error: Exception, *, first: bool) -> None:
        if first:
            _refuse_what_is_no_json_lines(line)
        if self._diagnostics.full:
            self._diagnostics.count_one()
            return
        for mismatch in explained(line, error, self._type):
            self._diagnostics.mismatch(self.location, mismatch)

    def _check_spelling(self, line: bytes) -> None:
        for name, meant in strange_fields(msgspec.json.decode(line), self._type):
            if name not in self._misspelled:
                self._misspelled.add(name)
                self._diagnostics.warning(
                    f"{self.location}: unknown field {name!r} is not read; did you mean {meant!r}?"
                )


def explained(line: bytes, error: Exception, record: type) -> list[Mismatch]:
    """Say everything that keeps a line from being the record, ``error`` being one of ``UNDECODABLE``."""
    found: list[Mismatch] = []
    if isinstance(error, msgspec.ValidationError):
        try:
            found = mismatches(msgspec.json.decode(line), record)
        except UNDECODABLE as undecodable:
            error = undecodable
    return found or [Mismatch((), malformed(line, error)[1])]


def _strict(record: type[T]) -> type[T]:
    """Return a record that takes no fields but its own."""
    return msgspec.defstruct(record.__name__, [], bases=(record,), forbid_unknown_fields=True)  # type: ignore[return-value]


def _refuse_what_is_no_json_lines(line: bytes) -> None:
    """Raise where the first row shows that every other one would fail for the same reason."""
    start = line.strip()
    if start.startswith(b"["):
        raise UnreadableError("is a JSON array; expected one object a line, as `jq -c '.[]' FILE` writes them")
    if start == b"{":
        raise UnreadableError(
            "is one JSON document over several lines; expected one object a line, as `jq -c . FILE` writes it"
        )


def strange_fields(value: dict[str, Any], record: type) -> Iterator[tuple[str, str]]:
    """Yield the fields that a record does not have and the known ones they look like, through lists of records."""
    known = _known_fields(record)
    for name, inner in value.items():
        if name in known:
            if (element := known[name]) and isinstance(inner, list):
                for item in inner:
                    yield from strange_fields(item, element)
        elif meant := _meant(name, record):
            yield name, meant


@lru_cache(maxsize=1000)  # rows may have names of their own by the million
def _meant(name: str, record: type) -> str | None:
    return nearest(name, _known_fields(record))


@lru_cache
def _known_fields(record: type) -> dict[str, type | None]:
    """Map a record's fields to the record type of their elements, where they are lists of records."""
    elements: dict[str, type | None] = {}
    for field in msgspec.inspect.type_info(record).fields:  # type: ignore[attr-defined]
        described = isinstance(field.type, msgspec.inspect.Metadata)
        inner = getattr(field.type.type if described else field.type, "item_type", None)
        elements[field.encode_name] = inner.cls if isinstance(inner, msgspec.inspect.StructType) else None
    return elements
