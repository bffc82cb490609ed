"""Reads tables whose columns are not known in advance: CSV, JSON lines, or a JSON list of objects."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ragcontract.convert.csv_records import csv_records
from ragcontract.convert.samples import PEEKED, list_items, with_lines
from ragcontract.core import bounds
from ragcontract.files.jsonl import UNDECODABLE
from ragcontract.files.lines import UnreadableError, lines_of
from ragcontract.files.malformed import malformed
from ragcontract.files.nesting import check_nesting
from ragcontract.files.opening import READ_ERRORS, UTF8_BOM, InputFile, Progress, read_problem, read_within
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

CSV_NAMES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


class TableRow(NamedTuple):
    """The cells of a row by column, texts only if it is from CSV, and its location, such as ``scores.csv:3``."""

    location: str
    cells: dict[str, object]


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
    """Return the first characters of a file; none of a pipe, which can be read only once."""
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
