"""Read the files of other tools: lists of objects, tables, and documents that have a list in them.

A list is JSON lines or one JSON list. A table, whose columns are not known in advance, may also be CSV, as spreadsheets
and programs write it: the separator is the comma, semicolon or tab that the header has most of.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from ragcontract.convert.collection import Source
from ragcontract.core import bounds
from ragcontract.core.phrase import Location
from ragcontract.files.json_lines import UNDECODABLE, explained, read_jsonl
from ragcontract.files.json_text import (
    ZIP,
    JsonLocator,
    UnreadableError,
    check_nesting,
    lines_of,
    malformed,
)
from ragcontract.files.opening import (
    READ_ERRORS,
    UTF8_BOM,
    InputFile,
    Progress,
    no_progress,
    read_problem,
    read_whole,
    read_within,
)
from ragcontract.files.problems import Collector, located
from ragcontract.files.schema import shown

PEEKED = 1024
CSV_NAMES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
# Python's json writes NaN, which is not JSON. All tools but promptfoo do so for a score that could not be computed.
_NAN = re.compile(rb'"(?:[^"\\]|\\.)*"|\bNaN\b', re.DOTALL)

Record = TypeVar("Record", bound=Struct)


def _start_of(path: str) -> bytes:
    """Return the first characters of a file; nothing for a pipe, which can be read only once."""
    if not Path(path).is_file():
        return b""
    with InputFile(path) as file:
        return file.stream.peek(PEEKED)[:PEEKED].removeprefix(UTF8_BOM).lstrip()


class Document(Struct, frozen=True):
    """A file that is one JSON document."""

    path: str
    data: bytes  # the whole content

    @classmethod
    def read(cls, path: str, limit: int, problems: Collector, progress: Progress, *, beyond: str) -> "Document | None":
        """Read a file of at most ``limit`` bytes; if that fails, add the problem and return None.

        ``beyond`` is the advice for a larger file.
        """
        try:
            return cls(path, read_within(limit, path, progress, beyond=beyond)[0])
        except READ_ERRORS as error:
            problems.problem(path, read_problem(error))
            return None

    def value(self, record: type[Record], problems: Collector) -> Record | None:
        """Decode the document; if that fails, add the problems and return None."""
        try:
            check_nesting(self.data)
            return msgspec.json.decode(self.data, type=record)
        except UNDECODABLE as error:
            self.explain(self.data, 1, error, record, problems)
            return None

    def listed(self, problems: Collector) -> Iterator[tuple[int, bytes]]:
        """Yield the items of a document that is a list, each with its line."""
        try:
            check_nesting(self.data)
            items = msgspec.json.decode(self.data, type=list[msgspec.Raw])
            msgspec.json.decode(self.data)  # decoding to Raw skips the items without validating them
        except UNDECODABLE as error:
            line, message = malformed(self.data, error)
            problems.problem(Location(self.path, line), message)
            return
        if not items:
            problems.problem(self.path, "is an empty list; expected JSON objects in it")
        yield from _with_lines(self.data, items)

    def items(
        self, encoded: list[msgspec.Raw], record: type[Record], problems: Collector, *, after: bytes
    ) -> Iterator[tuple[Location, Record]]:
        """Yield the items of a list in the document, each with its location; ``after`` is the name of the list."""
        start = max(0, self.data.rfind(b'"%s"' % after, 0, self.data.find(encoded[0]))) if encoded else 0
        yield from self.decoded(_with_lines(self.data, encoded, start), record, problems)

    def decoded(
        self, items: Iterable[tuple[int, bytes]], record: type[Record], problems: Collector
    ) -> Iterator[tuple[Location, Record]]:
        """Yield items, which begin on these lines, each with its location."""
        for line, item in items:
            try:
                yield Location(self.path, line), msgspec.json.decode(item, type=record)
            except UNDECODABLE as error:
                if problems.full:
                    problems.count()
                else:
                    self.explain(item, line, error, record, problems)

    def explain(self, data: bytes, line: int, error: Exception, record: type[Struct], problems: Collector) -> None:
        """Add the problems of a value that begins on ``line``."""
        if not isinstance(error, msgspec.ValidationError):
            within, message = malformed(data, error)
            problems.problem(Location(self.path, line + within - 1), message)
            return
        locate = JsonLocator(data.decode(errors="replace"))
        for mismatch in explained(data, error, record):
            problems.mismatch(Location(self.path, line + locate.line(mismatch.path) - 1), mismatch)


def _with_lines(data: bytes, items: Iterable[msgspec.Raw], start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the items of a list, each with its line; the list begins at the offset ``start`` of ``data``."""
    at, number = start, 1 + data.count(b"\n", 0, start)
    for item in map(bytes, items):
        # Only white space and a comma precede the item, so index() finds it; a locator would scan from the start.
        begin = data.index(item, at)
        number += data.count(b"\n", at, begin)
        yield number, item
        number += item.count(b"\n")
        at = begin + len(item)


def objects(
    paths: Sequence[str], record: type[Record], problems: Collector, progress: Progress = no_progress
) -> Iterator[tuple[Location, Record]]:
    """Yield the objects of JSON lines or JSON lists, each with its location, such as ``samples.json:17``."""
    for path in paths:
        try:
            if _start_of(path).startswith(b"["):
                document = Document(path, read_whole(path, progress)[0])
                yield from document.decoded(document.listed(problems), record, problems)
                continue
        except READ_ERRORS as error:
            problems.problem(path, read_problem(error))
            continue
        yield from located(read_jsonl([path], record, spell_check=bounds.SPELL_CHECKED, progress=progress), problems)


def documents(source: Source, record: type[Record], *, zipped: str) -> Iterator[tuple[Document, Record]]:
    """Yield the files of ``results`` that are valid documents; NaN is null in them.

    ``zipped`` is the advice for a ZIP archive.
    """
    problems = source.problems
    for path in source.files["results"]:
        beyond = "; evaluate in several parts"
        if (document := Document.read(path, bounds.RESULTS, problems, source.progress, beyond=beyond)) is None:
            continue
        if document.data.startswith(ZIP):
            problems.problem(path, f"is a ZIP archive; {zipped}")
        elif not document.data.strip():
            problems.problem(path, "is empty; expected one JSON document")
        else:
            if b"NaN" in document.data:
                document = Document(path, _without_nan(document.data))
            if (value := document.value(record, problems)) is not None:
                yield document, value


def _without_nan(data: bytes) -> bytes:
    return _NAN.sub(lambda match: b"null" if match[0] == b"NaN" else match[0], data)


class TableRow(NamedTuple):
    """A row of a table."""

    location: Location  # such as `scores.csv:3`
    cells: dict[str, object]  # by column; those of CSV are texts


def table_rows(source: Source, example: str) -> Iterator[TableRow]:
    """Yield the rows of ``results`` files; ``example`` is a header, for the message about an empty file."""
    problems, progress = source.problems, source.progress
    for path in source.files["results"]:
        try:
            start = _start_of(path)
        except READ_ERRORS as error:
            problems.problem(path, read_problem(error))
            continue
        if start.startswith(b"["):
            yield from _list(path, problems, progress)
        elif start.startswith(b"{") or (not start and not path.endswith(CSV_NAMES)):
            yield from _lines(path, problems, progress)
        else:
            yield from _csv(path, example, problems, progress)


def _csv(path: str, example: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    records = csv_records(path, example, problems, progress)
    _, header = next(records, (0, []))
    header = [name.strip() for name in header]
    if repeated := next((name for name in header if name and header.count(name) > 1), ""):
        problems.problem(f"{path}:1", f"has several columns {shown(repeated)}; give each a name of its own")
        return
    for number, cells in records:
        if len(cells) > len(header):
            problems.problem(Location(path, number), too_many_cells(cells, header))
            continue
        filled = [*cells, *[""] * (len(header) - len(cells))]
        yield TableRow(Location(path, number), {name: cell for name, cell in zip(header, filled, strict=True) if name})


def _lines(path: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    number = 0
    is_empty = True
    try:
        with InputFile(path, progress) as file:
            for number, line in enumerate(lines_of(file, "JSON lines"), start=1):
                if line and not line.isspace():
                    if is_empty and line.strip() == b"{":
                        way = "expected one object a line, as `jq -c . FILE` writes it"
                        problems.problem(Location(path, number), f"is one JSON document over several lines; {way}")
                        return
                    is_empty = False
                    yield from _decoded(line, Location(path, number), problems)
    except UnreadableError as error:
        problems.problem(Location(path, number + error.lines_on), str(error))
    except READ_ERRORS as error:
        problems.problem(Location(path, number + 1) if number else path, read_problem(error))
    else:
        if is_empty:
            problems.problem(path, "is empty; expected one JSON object a line")


def _list(path: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    document = Document.read(path, bounds.RESULTS, problems, progress, beyond="; write one object a line instead")
    for line, item in document.listed(problems) if document else ():
        yield from _decoded(item, Location(path, line), problems)


def _decoded(text: bytes, location: Location, problems: Collector) -> Iterator[TableRow]:
    try:
        check_nesting(text)
        value = msgspec.json.decode(text)
    except UNDECODABLE as error:
        if problems.full:
            problems.count()
        else:
            problems.problem(location, malformed(text, error)[1])
        return
    if isinstance(value, dict):
        yield TableRow(location, value)
    else:
        problems.problem(location, f"expected an object, found {shown(value)}")


DELIMITERS = ",;\t"


def csv_records(path: str, example: str, problems: Collector, progress: Progress) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and each record that is not blank, with the number of the line on which it begins.

    ``example`` is a header, for the message about an empty file.
    """
    others = csv.field_size_limit(bounds.CSV_CELL)  # a setting of the whole process
    begin = 1
    try:
        with InputFile(path, progress) as file:
            lines = _text_lines(file, problems)
            first = next(lines, "")
            if re.fullmatch(r"sep=.\s*", first, re.IGNORECASE):  # what Excel writes above the header
                begin, first = 2, next(lines, "")
            if not first.strip():
                problems.problem(path, f"is empty; expected CSV with a header, such as `{example}`")
                return
            delimiter = max(DELIMITERS, key=first.count)
            table = csv.reader(chain([first], lines), delimiter=delimiter, strict=True)
            above = begin - 1
            for cells in table:
                if any(map(str.strip, cells)):
                    yield begin, cells
                begin = above + table.line_num + 1
    except UnreadableError as error:
        problems.problem(Location(path, begin), str(error))
    except csv.Error as error:
        problems.problem(Location(path, begin), _explained(str(error)))
    except READ_ERRORS as error:
        problems.problem(path, read_problem(error))
    finally:
        csv.field_size_limit(others)


def _text_lines(file: InputFile, problems: Collector) -> Iterator[str]:
    for number, line in enumerate(lines_of(file, "CSV"), start=1):
        try:
            yield line.decode() + "\n"
        except UnicodeDecodeError as error:
            message = malformed(line, error)[1]
            problems.problem(Location(file.path, number), f"{message}; in Excel, as 'CSV UTF-8'")
            yield line.decode(errors="replace") + "\n"


def _explained(error: str) -> str:
    if "unexpected end of data" in error:
        return "a quotation mark is opened here and never closed"
    if "field limit" in error:
        return f"a cell is longer than {bounds.CSV_CELL:,} characters; is a quotation mark never closed?"
    if "expected after" in error:
        return 'a quotation mark is closed within a cell; write it twice there: ""'
    if "new-line character" in error:
        return "has the line ends of old Macs (CR); save the file with other ones"
    return f"is not CSV: {error}"


def too_many_cells(cells: Sequence[str], header: Sequence[str]) -> str:
    """Return the message about a row of CSV with more cells than its header."""
    advice = "put cells with a separator in them in quotation marks"
    return f"has {len(cells)} cells, but the header has {len(header)}; {advice}"
