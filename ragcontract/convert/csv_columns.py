"""What the columns of a spreadsheet say beside questions and ids: the grades, and what is left out."""

import math
import re
from collections.abc import Mapping, Sequence

from ragcontract.convert.measured import as_number
from ragcontract.core import bounds
from ragcontract.core.golden import RELEVANT_GRADE
from ragcontract.core.numbers import count
from ragcontract.core.questions import column_name
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

GRADES = ("relevance", "grade")
# Words in the names of what may be grades, too: refused if every cell could be one, because a 0 would be expected.
LIKE_GRADES = frozenset(
    [
        "correct",
        "gain",
        "grade",
        "grades",
        "judgement",
        "judgment",
        "label",
        "labels",
        "qrel",
        "rating",
        "rel",
        "relevance",
        "relevancy",
        "relevant",
        "score",
        "scores",
        "verdict",
    ]
)
VERDICTS = frozenset({"yes", "no", "y", "n", "relevant", "irrelevant", "not relevant", "non relevant", "nonrelevant"})


class GradeColumn:
    """Reads the grade of each row, and watches the columns that look like grades where none is called so."""

    def __init__(self, path: str, header: Sequence[str], found: Mapping[str, int], problems: Collector) -> None:
        """Find the column among those that are not ``found`` to be another; several are a problem."""
        self._header, self._where, self._problems = header, f"{path}:1", problems
        others = {at: column_name(name) for at, name in enumerate(header) if at not in found.values()}
        columns = [at for at, name in others.items() if name in GRADES]
        self._at = columns[0] if columns else None
        self._alike = [at for at, name in others.items() if _is_like_grades(name) and not columns]
        self._filled: set[int] = set()
        if columns[1:]:
            names = " and ".join(shown(header[at]) for at in columns)
            problems.problem(self._where, f"has several columns of grades, {names}; keep one")

    def grade(self, cells: Sequence[str], ids: str, location: str) -> float | None:
        """Return the grade of the documents in a row; if it is invalid, add a problem and return None."""
        self._alike = [at for at in self._alike if _is_alike(_cell(cells, at))]
        self._filled.update(at for at in self._alike if _cell(cells, at))
        if self._at is None or ids in {"", "[]"}:
            return float(RELEVANT_GRADE)
        cell = _cell(cells, self._at)
        try:
            grade = as_number(cell)
        except ValueError:
            grade = None
        if grade is not None and math.isfinite(grade) and grade <= bounds.GRADE:
            return max(0.0, grade)
        message = f"expected a grade, a number of at most a billion (0 is not relevant), found {shown(cell)}"
        self._problems.problem(f"{location}: {self._header[self._at]}", f"{message}; rename the column if it has none")
        return None

    def conclude(self) -> None:
        """Refuse a column of which every cell may be a grade: a document that is not relevant would be expected."""
        for at in sorted(self._filled.intersection(self._alike)):
            message = f"the column {shown(self._header[at])} looks like the grades of the documents"
            self._problems.problem(self._where, f"{message}; call it 'relevance' if it is, otherwise remove it")


def warn_of_unread(path: str, header: Sequence[str], found: Mapping[str, int], problems: Collector) -> None:
    """Warn of columns that are not read: they may say what is expected, in words of which there is no list."""
    named = {at: name.strip() for at, name in enumerate(header) if at not in found.values()}
    unread = [shown(name) for name in named.values() if name and column_name(name) not in GRADES]
    if unread:
        names = ", ".join([*unread[: bounds.LISTED], *(["…"] if unread[bounds.LISTED :] else [])])
        advice = "add what is expected there to the golden rows"
        problems.warning(f"{path}:1: {count(len(unread), 'column')} not read, and left out: {names}; {advice}")


def _is_like_grades(name: str) -> bool:
    return not LIKE_GRADES.isdisjoint(re.findall("[a-z]+", name))


def _cell(cells: Sequence[str], at: int) -> str:
    return cells[at].strip() if at < len(cells) else ""


def _is_alike(cell: str) -> bool:
    """Return whether a cell may be a grade, or is empty."""
    try:
        as_number(cell)
    except ValueError:
        return column_name(cell) in VERDICTS
    return True
