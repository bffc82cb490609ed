"""Turn what another tool measured into the rows of a scores file: names, ids of golden queries, missing values."""

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ragcontract.convert.collection import Collection, Source, golden_of
from ragcontract.core import bounds
from ragcontract.core.ids import as_id, some
from ragcontract.core.numbers import beginning
from ragcontract.core.phrase import Location
from ragcontract.core.questions import column_name, same_question
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown
from ragcontract.runs.scores_files import Check, ScoresRow

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?[Ii]nf(?:inity)?")
_BLANK = frozenset({"", "nan", "none", "null", "n/a", "na", "<na>"})  # as pandas and people write a missing value
_BOOLEAN = {"true": 1.0, "false": 0.0}
ERRORS = frozenset({"error", "errors", "error message", "exception"})  # columns of a table that say why a row failed


class Measured(Struct, frozen=True, kw_only=True):
    """What a tool measured of one query, under the tool's own names."""

    location: Location
    id: str | int | None = None  # as in the tool's file
    id_field: str = "id"  # where the file has the id
    question: str | None = None  # as in the tool's file
    question_field: str = "question"  # where the file has the question
    scores: Mapping[str, float | None]  # None or NaN was not measured
    checks: Mapping[str, Check] = {}
    reasons: Mapping[str, str] = {}
    scored_by: str | None = None
    error: str | None = None  # if set, the query failed and nothing was measured, whatever the scores are


class GoldenIds:
    """Finds golden queries by their ids, or by their questions."""

    def __init__(self, questions: Mapping[str, str]) -> None:
        self._ids = questions
        self._by_question: dict[str, list[str]] = {}
        for query_id, question in questions.items():
            self._by_question.setdefault(same_question(question), []).append(query_id)

    def find(self, measured: Measured) -> str:
        """Return the id of a golden query; raises ValueError with the reason if it is not certain which is meant."""
        name = None if measured.id is None else as_id(measured.id)
        asked = [] if measured.question is None else self._by_question.get(same_question(measured.question), [])
        if name is not None and name in self._ids:
            if asked and name not in asked:
                raise ValueError(f"is {shown(name)}, but the question is that of the golden query {shown(asked[0])}")
            return name
        if len(asked) == 1:
            return asked[0]
        if asked:
            raise ValueError(
                f"the question is that of {some(asked, 'golden query')}; give each row the id of its query"
            )
        shown_name = shown(measured.question if name is None else name)
        raise ValueError(f"no golden query has {shown_name} as its id or as its question; correct it or leave it out")


class ScoreRows:
    """Collects the rows of a scores file, and the problems with them."""

    def __init__(self, golden: GoldenIds | None, problems: Collector) -> None:
        """Prepare to collect; ``golden`` is None if the ids are not looked up."""
        self._golden = golden
        self._problems = problems
        self._rows: list[ScoresRow] = []
        self._locations: list[Location] = []
        self._names: dict[str, str | None] = {}  # by the tool's own name
        self._taken: dict[str, str] = {}
        self._scored: dict[str, None] = {}  # the names of all scores
        self._questions: dict[str, tuple[str | None, Location]] = {}  # the question of each id, and where it is
        self._nameless: list[tuple[Location, str]] = []  # location and question

    def add(self, measured: Measured) -> None:
        """Add a row, or the problem with it. A query that failed gets no scores, as if it had not been scored."""
        if measured.error is not None:
            measured = replace(measured, checks={}, reasons=dict.fromkeys(measured.scores, measured.error))
        query_id = self._query_id(measured)
        scores = {name: self._number(value, measured, name) for name, value in measured.scores.items()}
        named = {new: scores[old] for old, new in self._renamed(scores, measured) if new}
        checks = {new: measured.checks[old] for old, new in self._renamed(measured.checks, measured) if new}
        reasons = {new: _short(measured.reasons[old]) for old, new in self._renamed(measured.reasons, measured) if new}
        self._scored |= dict.fromkeys(named)
        if query_id is None:
            return
        self._locations.append(measured.location)
        self._rows.append(
            ScoresRow(
                query_id=query_id,
                scores=named if measured.error is None else {},
                checks={name: _plain(check) for name, check in checks.items()} or None,
                reasons=reasons or None,
                scored_by=measured.scored_by,
            )
        )

    def collection(self, files: Sequence[str], nothing: str) -> Collection:
        """Return the rows; a row without any score gets null for every name.

        If there is no score at all, ``nothing`` is the problem of the first of the files.
        """
        if self._problems.collected():
            return Collection(scores=self._rows)
        if not self._scored:
            self._problems.problem(files[0], nothing)
        every: dict[str, float | None] = dict.fromkeys(self._scored)
        rows = [row if row.scores else replace(row, scores=dict(every)) for row in self._rows]
        self._warn_of_questions()
        self._warn_of_nulls(rows)
        return Collection(scores=rows)

    def _query_id(self, measured: Measured) -> str | None:
        field = measured.question_field if measured.id is None else measured.id_field
        where = measured.location.at(field)
        if measured.id is None and measured.question is None:
            self._problems.problem(measured.location.at(measured.id_field), "is missing; expected a golden query's id")
            return None
        if self._golden is not None:
            try:
                query_id = self._golden.find(measured)
            except ValueError as error:
                self._problems.problem(where, str(error))
                return None
        else:
            query_id = as_id(measured.id) if measured.id is not None else measured.question or ""
            if not 0 < len(query_id) <= bounds.ID:
                advice = "; give --golden, to find the id of this question" if measured.id is None else ""
                expected = f"expected text of 1 to {bounds.ID:,} characters"
                self._problems.problem(where, f"{expected}, found {shown(query_id)}{advice}")
                return None
            if measured.id is None:
                self._nameless.append((measured.location, query_id))
        return query_id if self._is_one_query(query_id, measured) else None

    def _is_one_query(self, query_id: str, measured: Measured) -> bool:
        """Return whether the id had no other question before; if it had, add a problem."""
        question = None if measured.question is None else same_question(measured.question)
        before, location = self._questions.setdefault(query_id, (question, measured.location))
        if before == question:
            return True
        message = f"{shown(query_id)} has another question at {location}; give each query an id of its own"
        self._problems.problem(measured.location.at(measured.id_field), message)
        return False

    def _number(self, value: float | None, measured: Measured, name: str) -> float | None:
        if value is None or math.isnan(value):
            return None
        if math.isinf(value):
            self._problems.problem(measured.location.at(_shortened(name)), "is infinite; expected a number")
            return None
        return value

    def _renamed(self, names: Mapping[str, Any], measured: Measured) -> Iterator[tuple[str, str | None]]:
        for name in names:
            if name not in self._names:
                self._names[name] = self._new_name(name, measured.location)
            yield name, self._names[name]

    def _new_name(self, name: str, location: Location) -> str | None:
        new, where = metric_name(name), location.at(_shortened(name))
        if not new or len(new) > bounds.SCORE_NAME:
            expected = f"a letter from a to z and at most {bounds.SCORE_NAME - 1} more letters or digits"
            self._problems.problem(where, f"cannot be the name of a metric, which is {expected}; rename it")
        elif (other := self._taken.setdefault(new, name)) != name:
            self._problems.problem(where, f"becomes {new!r}, and so does {_shortened(other)}; rename one of them")
        elif len(self._taken) > bounds.SCORE_NAMES:
            self._problems.problem(where, f"is one name too many; expected at most {bounds.SCORE_NAMES:,} in all files")
        else:
            return new
        return None

    def _warn_of_questions(self) -> None:
        if self._nameless:
            named = some(dict.fromkeys(question for _, question in self._nameless))
            what = "without an id: the question is the id; give --golden, to find the ids by the questions"
            self._problems.warning(f"{self._nameless[0][0]}: {named} {what}")

    def _warn_of_nulls(self, rows: Sequence[ScoresRow]) -> None:
        missing: dict[str, list[int]] = {}
        for index, row in enumerate(rows):
            for name, value in (row.scores or {}).items():
                if value is None:
                    missing.setdefault(name, []).append(index)
        if not missing:
            return
        listed = [
            f"{name} of {some(dict.fromkeys(as_id(rows[index].query_id) for index in where))}"
            for name, where in list(missing.items())[: bounds.NAMES + 1]
        ]
        location = self._locations[min(where[0] for where in missing.values())]
        self._problems.warning(f"{location}: not measured, and written as null: {beginning(listed)}")


def score_rows(source: Source) -> ScoreRows:
    """Return what collects the scores of a source, with the ids of its golden files, if there are any."""
    if not source.files["golden"]:
        return ScoreRows(None, source.problems)
    questions = {query.id: query.query for query in golden_of(source).queries.values()}
    return ScoreRows(GoldenIds(questions), source.problems)


def metric_name(name: str) -> str:
    """Return a metric's name as limits use it: ``exact_match`` for "Exact Match"; empty if no letter comes first."""
    plain = "".join(char for char in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(char))
    new = re.sub("[^a-z0-9]+", "_", plain).strip("_")
    return new if new[:1].isalpha() else ""


def as_number(value: object) -> float | None:
    """Return the number in a cell of a table, None if it is missing; raises ValueError for anything else.

    True and false are 1 and 0, as in the means of every tool.
    """
    if value is None or isinstance(value, bool | float):
        return value if value is None else float(value)
    if isinstance(value, int):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if isinstance(value, str):
        text = value.strip()
        if text.casefold() in _BLANK:
            return None
        if text.casefold() in _BOOLEAN:
            return _BOOLEAN[text.casefold()]
        if _NUMBER.fullmatch(text):
            return float(text)
    raise ValueError(f"expected a number, found {shown(value)}")


def row_error(cells: Mapping[str, object], scores: Sequence[str] = ()) -> str | None:
    """Return the error in a row of a table; None if it did not fail. A column in ``scores`` does not count."""
    errors = (cells[name] for name in cells if column_name(name) in ERRORS and name not in scores)
    return next((error_text(error) for error in errors if _is_error(error)), None)


def _is_error(value: object) -> bool:
    """Return whether a cell is an error; a number is not, because it may be a measurement."""
    if value is True or (isinstance(value, str) and value.strip().casefold() == "true"):
        return True
    try:
        as_number(value)
    except ValueError:
        return bool(value)
    return False


def error_text(error: object, otherwise: str = "failed") -> str:
    """Return the text of a tool's error, which may be the message in an object."""
    if isinstance(error, dict):
        error = error.get("message") or error.get("reason")
    return error if isinstance(error, str) and error.strip() else otherwise


def _plain(check: Check) -> bool | Check:
    return check.passed if not check.reason else Check(passed=check.passed, reason=_short(check.reason))


def _short(reason: str) -> str:
    return shorten(encodable(reason), bounds.SCORE_REASON)


def _shortened(name: str) -> str:
    return repr(shorten(name, bounds.NAME))
