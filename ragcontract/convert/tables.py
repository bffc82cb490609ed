"""Read tables whose columns are not known in advance: CSV, JSON lines, or a JSON list of objects.

CSV is as spreadsheets and programs write it: the separator is the comma, semicolon or tab that the header has most of.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ragcontract.convert.samples import PEEKED, list_items, with_lines
from ragcontract.core import bounds
from ragcontract.files.json_lines import UNDECODABLE
from ragcontract.files.json_text import UnreadableError, check_nesting, lines_of, malformed
from ragcontract.files.opening import READ_ERRORS, UTF8_BOM, InputFile, Progress, read_problem, read_within
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

CSV_NAMES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


class TableRow(NamedTuple):
    """A row of a table."""

    location: str  # such as `scores.csv:3`
    cells: dict[str, object]  # by column; those of CSV are texts


def table_rows(paths: Sequence[str], example: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    """Yield the rows of all files; ``example`` is a header, for the message about an empty file."""
    for path in paths:
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


def _start_of(path: str) -> bytes:
    """Return the first characters of a file; nothing for a pipe, which can be read only once."""
    if not Path(path).is_file():
        return b""
    with InputFile(path) as file:
        return file.stream.peek(PEEKED)[:PEEKED].removeprefix(UTF8_BOM).lstrip()


def _csv(path: str, example: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    records = csv_records(path, example, problems, progress)
    _, header = next(records, (0, []))
    header = [name.strip() for name in header]
    if repeated := next((name for name in header if name and header.count(name) > 1), ""):
        problems.problem(f"{path}:1", f"has several columns {shown(repeated)}; give each a name of its own")
        return
    for number, cells in records:
        if len(cells) > len(header):
            advice = "put cells with a separator in them in quotation marks"
            problems.problem(f"{path}:{number}", f"has {len(cells)} cells, but the header has {len(header)}; {advice}")
            continue
        filled = [*cells, *[""] * (len(header) - len(cells))]
        yield TableRow(f"{path}:{number}", {name: cell for name, cell in zip(header, filled, strict=True) if name})


def _lines(path: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    number = 0
    is_empty = True
    try:
        with InputFile(path, progress) as file:
            for number, line in enumerate(lines_of(file, "JSON lines"), start=1):
                if line and not line.isspace():
                    if is_empty and line.strip() == b"{":
                        way = "expected one object a line, as `jq -c . FILE` writes it"
                        problems.problem(f"{path}:{number}", f"is one JSON document over several lines; {way}")
                        return
                    is_empty = False
                    yield from _decoded(line, f"{path}:{number}", problems)
    except UnreadableError as error:
        problems.problem(f"{path}:{number + error.lines_on}", str(error))
    except READ_ERRORS as error:
        problems.problem(f"{path}:{number + 1}" if number else path, read_problem(error))
    else:
        if is_empty:
            problems.problem(path, "is empty; expected one JSON object a line")


def _list(path: str, problems: Collector, progress: Progress) -> Iterator[TableRow]:
    try:
        data, _ = read_within(bounds.RESULTS, path, progress, beyond="; write one object a line instead")
    except READ_ERRORS as error:
        problems.problem(path, read_problem(error))
        return
    try:
        items = list_items(data)
    except UNDECODABLE as error:
        line, message = malformed(data, error)
        problems.problem(f"{path}:{line}", message)
        return
    if not items:
        problems.problem(path, "is an empty list; expected JSON objects in it")
    for line, item in with_lines(data, items):
        yield from _decoded(item, f"{path}:{line}", problems)


def _decoded(text: bytes, location: str, problems: Collector) -> Iterator[TableRow]:
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
            table = csv.reader(_joined(first, lines), delimiter=delimiter, strict=True)
            above = begin - 1
            for cells in table:
                if any(map(str.strip, cells)):
                    yield begin, cells
                begin = above + table.line_num + 1
    except UnreadableError as error:
        problems.problem(f"{path}:{begin}", str(error))
    except csv.Error as error:
        problems.problem(f"{path}:{begin}", _explained(str(error)))
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
            problems.problem(f"{file.path}:{number}", f"{message}; in Excel, as 'CSV UTF-8'")
            yield line.decode(errors="replace") + "\n"


def _joined(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines


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
