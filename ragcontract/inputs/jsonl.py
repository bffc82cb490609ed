"""Reading JSON lines: one object a line, as typed records, with every problem told by file and line."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from ragcontract.inputs.diagnostics import Diagnostics
from ragcontract.inputs.files import READ_ERRORS, InputFile, Progress, no_progress, read_problem
from ragcontract.inputs.lines import UnreadableError, lines_of
from ragcontract.inputs.malformed import malformed
from ragcontract.inputs.schema import Misfit, misfits, nearest
from ragcontract.model import SourceFile

UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

T = TypeVar("T", bound=msgspec.Struct)


class Line(NamedTuple, Generic[T]):
    """A decoded row and where it stands."""

    path: str
    number: int
    row: T

    @property
    def place(self) -> str:
        """As ``golden.jsonl:17``."""
        return f"{self.path}:{self.number}"


class JsonLines(Generic[T]):
    """The rows of one or more files. ``files`` has their digests once the iteration is over."""

    def __init__(
        self,
        paths: Sequence[str],
        row_type: type[T],
        diagnostics: Diagnostics,
        *,
        spell_check: int | None = None,
        progress: Progress = no_progress,
    ) -> None:
        """Read ``paths`` as rows of ``row_type``; spell-check the fields of the first ``spell_check`` ones (all)."""
        self.files: list[SourceFile] = []
        self._paths = paths
        self._type = row_type
        self._decode: Callable[[bytes], T] = msgspec.json.Decoder(row_type).decode
        self._diagnostics = diagnostics
        self._to_spell_check = spell_check
        self._progress = progress
        self._misspelled: set[str] = set()

    def __iter__(self) -> Iterator[Line[T]]:
        """Yield each good row; a bad one is told to the diagnostics and left out."""
        for path in self._paths:
            try:
                file = InputFile(path, self._progress)
            except OSError as error:
                self._diagnostics.problem(path, read_problem(error))
                continue
            with file:
                yield from self._rows(file)
                self.files.append(file.source())

    def _rows(self, file: InputFile) -> Iterator[Line[T]]:
        number = rows = 0
        try:
            for number, line in enumerate(lines_of(file, "JSON lines"), start=1):
                if not line or line.isspace():
                    continue
                rows += 1
                try:
                    row = self._decode(line)
                    if self._to_spell_check is None or rows <= self._to_spell_check:
                        self._check_spelling(f"{file.path}:{number}", line)
                except UNDECODABLE as error:
                    self._explain(f"{file.path}:{number}", line, error, first=rows == 1)
                    continue
                yield Line(file.path, number, row)
        except UnreadableError as error:
            self._diagnostics.problem(f"{file.path}:{number + error.lines_on}", str(error))
        except READ_ERRORS as error:
            self._diagnostics.problem(f"{file.path}:{number + 1}", read_problem(error))
        else:
            if not rows:
                self._diagnostics.problem(file.path, "is empty; expected one JSON object a line")

    def _explain(self, place: str, line: bytes, error: Exception, *, first: bool) -> None:
        if first:
            _refuse_what_is_no_json_lines(line)
        if self._diagnostics.full:
            self._diagnostics.count_one()
            return
        found: list[Misfit] = []
        if isinstance(error, msgspec.ValidationError):
            try:
                found = misfits(msgspec.json.decode(line), self._type)
            except UNDECODABLE as undecodable:
                error = undecodable
        for misfit in found or [Misfit((), malformed(line, error)[1])]:
            self._diagnostics.misfit(place, misfit)

    def _check_spelling(self, place: str, line: bytes) -> None:
        for name, meant in _strange_fields(msgspec.json.decode(line), self._type):
            if name not in self._misspelled:
                self._misspelled.add(name)
                self._diagnostics.warning(f"{place}: unknown field {name!r} is not read; did you mean {meant!r}?")


def _refuse_what_is_no_json_lines(line: bytes) -> None:
    """Raise where the first row shows that every other one would fail for the same reason."""
    start = line.strip()
    if start.startswith(b"["):
        raise UnreadableError("is a JSON array; expected one object a line, as `jq -c '.[]' FILE` writes them")
    if start == b"{":
        raise UnreadableError(
            "is one JSON document over several lines; expected one object a line, as `jq -c . FILE` writes it"
        )


def _strange_fields(value: dict[str, Any], record: type) -> Iterator[tuple[str, str]]:
    """Yield fields that a record does not have and the known ones they look like, through lists of records."""
    known = _known_fields(record)
    for name, inner in value.items():
        if name in known:
            if (element := known[name]) and isinstance(inner, list):
                for item in inner:
                    yield from _strange_fields(item, element)
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
