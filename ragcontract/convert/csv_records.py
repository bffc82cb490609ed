"""Reads CSV as spreadsheets and programs write it: comma, semicolon or tab; whichever the header has most of."""

import csv
import re
from collections.abc import Iterator

from ragcontract.core import bounds
from ragcontract.files.lines import UnreadableError, lines_of
from ragcontract.files.malformed import malformed
from ragcontract.files.opening import READ_ERRORS, InputFile, Progress, read_problem
from ragcontract.files.problems import Collector

DELIMITERS = ",;\t"


def csv_records(path: str, example: str, problems: Collector, progress: Progress) -> Iterator[tuple[int, list[str]]]:
    """Yield each record that is not blank, the header first, with the number of the line on which it begins.

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
