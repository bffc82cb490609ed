"""Reads text files with columns line by line, and checks the values of their columns."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ragcontract.core import bounds
from ragcontract.files.lines import UnreadableError, lines_of
from ragcontract.files.malformed import malformed
from ragcontract.files.opening import READ_ERRORS, InputFile, Progress, no_progress, read_problem
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown


class Row(NamedTuple):
    """The columns of a line, its number, and its location, such as ``qrels.txt:3``."""

    location: str
    number: int
    columns: list[str]


def rows(
    paths: Sequence[str],
    split: Callable[[str], list[str]],
    expected: str,
    problems: Collector,
    progress: Progress = no_progress,
    *,
    headers: int = 0,
) -> Iterator[Row]:
    """Yield the non-blank lines, ``split`` into columns; ``problems`` collects what cannot be read.

    ``split`` returns no columns for a comment, which is skipped. ``expected`` describes a line, for messages about
    files that are empty or not text. A file with nothing but comments after its first ``headers`` lines counts as
    empty.
    """
    for path in paths:
        try:
            file = InputFile(path, progress)
        except OSError as error:
            problems.problem(path, read_problem(error))
            continue
        with file:
            yield from _rows(file, split, expected, problems, headers)


def _rows(
    file: InputFile, split: Callable[[str], list[str]], expected: str, problems: Collector, headers: int
) -> Iterator[Row]:
    number, is_empty, but = 0, True, ""
    try:
        for number, line in enumerate(lines_of(file, f"lines of `{expected}`"), start=1):
            location = f"{file.path}:{number}"
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                is_empty = False
                problems.problem(location, malformed(line, error)[1])
                continue
            if text.strip() and (columns := split(text)):
                is_empty = is_empty and number <= headers
                but = " but for its header"
                yield Row(location, number, columns)
    except UnreadableError as error:
        problems.problem(f"{file.path}:{number + error.lines_on}", str(error))
    except READ_ERRORS as error:
        problems.problem(f"{file.path}:{number + 1}", read_problem(error))
    else:
        if is_empty:
            problems.problem(file.path, f"is empty{but}; expected lines of `{expected}`")


def as_grade(text: str, location: str, problems: Collector) -> float | None:
    """Parse an integer grade, negative ones as 0; if it is invalid, add a problem and return None."""
    digits = text.removeprefix("-")
    highest = bounds.GRADE
    if digits.isascii() and digits.isdecimal() and len(digits) <= len(str(highest)) and int(digits) <= highest:
        return max(0, int(text))
    problems.problem(location, f"expected a whole number of at most a billion, found {shown(text)}")
    return None


def whole_grade(grade: float, location: str, doc_id: str, problems: Collector) -> int:
    """Return a grade as an integer; if it is fractional, add a problem."""
    if grade != int(grade):
        problems.problem(
            f"{location}: relevance",
            f"{shown(doc_id)} has the grade {grade:g}; grades are whole numbers in this format",
        )
    return int(grade)
