"""Read golden queries from CSV, as spreadsheets write it.

Each question has a row, with the ids of its relevant documents in one cell. The separator of the columns is the comma,
semicolon or tab that the header has most of. Rows that repeat a question add to it. A column of grades says how
relevant the documents of a row are; without one, all are relevant.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from ragcontract.convert.collection import Collection, Format, Query, Source
from ragcontract.convert.input_files import csv_records, too_many_cells
from ragcontract.convert.measured import as_number
from ragcontract.core import bounds
from ragcontract.core.golden import PLACEHOLDER, RELEVANT_GRADE
from ragcontract.core.ids import Id, as_id, some
from ragcontract.core.nearest import NearNames
from ragcontract.core.numbers import beginning, count
from ragcontract.core.phrase import Location
from ragcontract.core.questions import COLUMNS, column_name, same_question, unique_slugs
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown

EXAMPLE = "question,expected_ids"
SEPARATORS = (";", "|", ",", "\n")
# The names that are recognized, ignoring case, blanks, hyphens and underscores; the first that a header has counts.
NAMES: Mapping[str, tuple[str, ...]] = {
    "question": COLUMNS,
    "ids": (
        "relevant doc ids", "expected doc ids", "expected ids", "relevant ids", "doc ids", "document ids",
        "reference context ids", "expected documents", "relevant documents", "expected", "relevant", "documents",
        "doc id", "document id",
    ),
    "id": ("id", "query id", "question id", "qid"),
}  # fmt: skip
MEANING = {"question": "the questions", "ids": "the expected ids", "id": "the ids of the questions"}


def read(source: Source) -> Collection:
    """Read ``csv`` files; columns that no option names are recognized."""
    rows = [row for path in source.files["csv"] for row in _rows(path, source)]
    separator = source.options.get("separator") or _separator(rows, source.problems)
    return Collection(queries=_queries(rows, separator, source.problems))


class _Row(Struct, frozen=True, kw_only=True, gc=False):
    location: Location
    question: str
    ids: str
    id: str
    grade: float = float(RELEVANT_GRADE)


def _rows(path: str, source: Source) -> Iterator[_Row]:
    """Yield the rows of a file; those without a question are problems."""
    problems = source.problems
    records = csv_records(path, EXAMPLE, problems, source.progress)
    _, header = next(records, (0, []))
    indexes = _column_indexes(path, header, source)
    if indexes is None:
        return
    number, before = 0, problems.collected()
    warn_of_unread(path, header, indexes, problems)
    grades = GradeColumn(path, header, indexes, problems)
    for number, cells in records:
        location = Location(path, number)
        row = {name: cells[at].strip() if at < len(cells) else "" for name, at in indexes.items()}
        if len(cells) > len(header):
            problems.problem(location, too_many_cells(cells, header))
        elif not 0 < len(row["question"]) <= bounds.QUESTION:
            expected = f"expected text of 1 to {bounds.QUESTION:,} characters"
            problems.problem(location.at(header[indexes["question"]]), f"{expected}, found {shown(row['question'])}")
        elif (grade := grades.grade(cells, row.get("ids", ""), location)) is not None:
            ids, query_id = row.get("ids", ""), row.get("id", "")
            yield _Row(location=location, question=row["question"], ids=ids, id=query_id, grade=grade)
    if number:
        grades.conclude()
    if not number and problems.collected() == before:
        problems.problem(path, "is empty but for its header; expected a row for each question")


def _column_indexes(path: str, header: Sequence[str], source: Source) -> dict[str, int] | None:
    """Return the index of each column; if the question or the ids are missing, add a problem and return None."""
    if not header:
        return None
    problems = source.problems
    names: dict[str, str | None] = {column: source.options.get(f"{column}_column") for column in MEANING}
    plain = [column_name(name) for name in header]
    indexes: dict[str, int] = {}
    for column, name in names.items():
        wanted = NAMES[column] if name is None else (column_name(name),)
        at = next((plain.index(candidate) for candidate in wanted if candidate in plain), None)
        if at is not None:
            indexes[column] = at
        elif name is not None or column != "id":
            problems.problem(f"{path}:1", _no_column(column, name, header))
    if names["ids"] is None and (others := _other_ids(plain, indexes)):
        either = " or ".join(shown(header[at]) for at in (indexes["ids"], others[0]))
        problems.problem(f"{path}:1", f"has the ids in {either}; name the column with --ids-column")
        return None
    repeated = [header[at] for at in indexes.values() if plain.count(plain[at]) > 1]
    if repeated:
        problems.problem(f"{path}:1", f"has several columns {shown(repeated[0])}; give each a name of its own")
    return indexes if {"question", "ids"} <= set(indexes) and not repeated else None


def _other_ids(plain: Sequence[str], indexes: Mapping[str, int]) -> list[int]:
    """Return the other columns of ids if the name of the first may also mean grades."""
    if "ids" not in indexes or plain[indexes["ids"]] not in {"expected", "relevant"}:
        return []
    return [at for at, name in enumerate(plain) if name in NAMES["ids"] and at != indexes["ids"]]


def _no_column(column: str, name: str | None, header: Sequence[str]) -> str:
    there = f"the header has {beginning([*map(shown, header)], bounds.LISTED)}"
    if name is None:
        return f"no column for {MEANING[column]} is recognized; name it with --{column}-column; {there}"
    return f"no column {shown(name)} for {MEANING[column]}; {NearNames(header).advice(name, there)}"


def _separator(rows: Sequence[_Row], problems: Collector) -> str:
    """Return the separator of the ids in all cells; it is a problem if there are several."""
    first: dict[str, Location] = {}
    for row in rows:
        if not row.ids.startswith("["):
            for separator in SEPARATORS:
                if separator in row.ids:
                    first.setdefault(separator, row.location)
    if len(first) > 1:
        (earlier, _), (other, location), *_ = sorted(first.items(), key=lambda item: SEPARATORS.index(item[0]))
        message = (
            f"the expected ids have both {earlier!r} and {other!r} in them; say with --separator what separates ids"
        )
        problems.problem(location, message)
    return next(iter(first), SEPARATORS[0])


class _Questions:
    """Collects the rows of each question: those with the same id, or the same text if there is no column of ids."""

    def __init__(self, problems: Collector) -> None:
        self._problems = problems
        self.texts: dict[str, str] = {}
        self.locations: dict[str, Location] = {}
        self.grades: dict[str, dict[str, float]] = {}
        self.unanswerable: set[str] = set()
        self.repeated: list[Location] = []

    def add(self, row: _Row, doc_ids: list[str] | None) -> None:
        """Add a row; ``doc_ids`` is None for an empty cell."""
        key = row.id or same_question(row.question)
        first = self.locations.setdefault(key, row.location)
        text = self.texts.setdefault(key, row.question)
        if first != row.location:
            self.repeated.append(row.location)
            if same_question(text) != same_question(row.question):
                message = f"duplicate id {row.id!r} with another question, first defined at {first}"
                self._problems.problem(row.location, message)
        grades = self.grades.setdefault(key, {})
        for doc_id in doc_ids or []:
            if grades.setdefault(doc_id, row.grade) != row.grade:
                message = f"{shown(doc_id)} has the grade {row.grade:g} here and {grades[doc_id]:g} in an earlier row"
                self._problems.problem(row.location, message)
        if doc_ids == []:
            self.unanswerable.add(key)

    def has_only_zeros(self, key: str) -> bool:
        """Return whether documents are named for a question, and none is relevant; ``[]`` says so on purpose."""
        grades = self.grades[key]
        return bool(grades) and not any(grades.values()) and key not in self.unanswerable


def _queries(rows: Sequence[_Row], separator: str, problems: Collector) -> dict[str, Query]:
    has_ids = any(row.id for row in rows)
    questions = _Questions(problems)
    for row in rows:
        if has_ids and not 0 < len(row.id) <= bounds.ID:
            problems.problem(row.location, f"the id of the question: expected text of 1 to {bounds.ID:,} characters")
        else:
            questions.add(row, _doc_ids(row, separator, problems))
    keys = list(questions.texts)
    names = keys if has_ids else unique_slugs(questions.texts.values())
    _warn(questions, dict(zip(keys, names, strict=True)), problems)
    return {
        name: Query(
            id=name,
            text=questions.texts[key],
            grades=_grades(questions.grades[key], unanswerable=key in questions.unanswerable),
            location=questions.locations[key],
        )
        for key, name in zip(keys, names, strict=True)
    }


def _grades(grades: dict[str, float], *, unanswerable: bool) -> dict[str, float]:
    return grades or ({} if unanswerable else {PLACEHOLDER: float(RELEVANT_GRADE)})


def _warn(questions: _Questions, names: Mapping[str, str], problems: Collector) -> None:
    if questions.repeated:
        message = (
            f"{count(len(questions.repeated), 'row')} with a question of an earlier row: their ids are put together"
        )
        problems.warning(f"{questions.repeated[0]}: {message}")
    if empty := [key for key, grades in questions.grades.items() if not grades and key not in questions.unanswerable]:
        each = "it" if len(empty) == 1 else "each of them"
        way = "use `rag-contract label`, or write [] if nothing answers the question"
        advice = f"{PLACEHOLDER} is written for {each}; {way}"
        named = some(names[key] for key in empty)
        problems.warning(f"{questions.locations[empty[0]]}: {named} without an expected id: {advice}")
    if zero := [key for key in questions.grades if questions.has_only_zeros(key)]:
        advice = "nothing is expected for it; correct the grades, or write [] if nothing answers the question"
        named = some(names[key] for key in zero)
        problems.warning(f"{questions.locations[zero[0]]}: {named} with no grade but 0: {advice}")


def _doc_ids(row: _Row, separator: str, problems: Collector) -> list[str] | None:
    """Return the ids in a cell, which may be a JSON list; None for an empty cell."""
    if not row.ids:
        return None
    if row.ids.startswith("[") and row.ids.endswith("]"):
        try:
            return [as_id(doc_id) for doc_id in msgspec.json.decode(row.ids, type=list[Id])]
        except (msgspec.DecodeError, RecursionError):
            problems.problem(row.location, f"expected ids, or a JSON list of ids, found {shown(row.ids)}")
            return None
    doc_ids = [doc_id for part in row.ids.split(separator) if (doc_id := part.strip())]
    if long := next((doc_id for doc_id in doc_ids if len(doc_id) > bounds.ID), None):
        problems.problem(row.location, f"an id has at most {bounds.ID:,} characters, found {shown(long)}")
    return doc_ids or None


GRADES = ("relevance", "grade")
# Words in names of columns that may be grades. If every cell of such a column may be a grade, it is refused: otherwise,
# documents with a grade of 0 would be expected.
LIKE_GRADES = frozenset(
    {
        "correct", "gain", "grade", "grades", "judgement", "judgment", "label", "labels", "qrel", "rating", "rel",
        "relevance", "relevancy", "relevant", "score", "scores", "verdict",
    }
)  # fmt: skip
VERDICTS = frozenset({"yes", "no", "y", "n", "relevant", "irrelevant", "not relevant", "non relevant", "nonrelevant"})


class GradeColumn:
    """Reads the grade of each row; if no column has the name of grades, watches those that look like grades."""

    def __init__(self, path: str, header: Sequence[str], known: Mapping[str, int], problems: Collector) -> None:
        """Find the column of grades among those that are not ``known``; several are a problem."""
        self._header, self._where, self._problems = header, f"{path}:1", problems
        others = {at: column_name(name) for at, name in enumerate(header) if at not in known.values()}
        columns = [at for at, name in others.items() if name in GRADES]
        self._at = columns[0] if columns else None
        self._alike = [at for at, name in others.items() if _is_like_grades(name) and not columns]
        self._filled: set[int] = set()
        if columns[1:]:
            names = " and ".join(shown(header[at]) for at in columns)
            problems.problem(self._where, f"has several columns of grades, {names}; keep one")

    def grade(self, cells: Sequence[str], ids: str, location: Location) -> float | None:
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
        self._problems.problem(location.at(self._header[self._at]), f"{message}; rename the column if it has none")
        return None

    def conclude(self) -> None:
        """Refuse a column whose cells may all be grades: documents that are not relevant would be expected."""
        for at in sorted(self._filled.intersection(self._alike)):
            message = f"the column {shown(self._header[at])} looks like the grades of the documents"
            self._problems.problem(self._where, f"{message}; call it 'relevance' if it is, otherwise remove it")


def warn_of_unread(path: str, header: Sequence[str], known: Mapping[str, int], problems: Collector) -> None:
    """Warn of columns that are not read: they may say what is expected, under any name."""
    named = {at: name.strip() for at, name in enumerate(header) if at not in known.values()}
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


FORMAT = Format(
    read=read,
    gives={"csv": {"golden"}},
    options=("question_column", "ids_column", "id_column", "separator"),
)
