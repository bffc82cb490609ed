"""Scores files: numbers and checks that other tools computed for the queries of a run.

They are read before the run, and joined with its rows by the id of the query.
"""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from heapq import heappush, heappushpop
from math import fsum, isnan, nan
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from ragcontract.core import bounds
from ragcontract.core.ids import Id, as_id
from ragcontract.core.metric import Invalid, Metric
from ragcontract.core.phrase import Location
from ragcontract.core.run import RunRow, SourceFile, has_failed
from ragcontract.core.safe_text import encodable, shorten
from ragcontract.files.opening import Progress, no_progress
from ragcontract.files.paths import existing_files
from ragcontract.files.problems import Batch, Collector, FileRead, Problems
from ragcontract.files.rows import Places, read_rows


class Check(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A check with its reason; a check without one is a plain ``true`` or ``false``."""

    passed: Annotated[bool, Meta(description="Whether the check passed.")]
    reason: Annotated[str | None, Meta(description="Why.")] = None
    error: Annotated[Any, Meta(description="Why it could not be made; it has failed then.")] = None


class ScoresRow(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A line of a scores file. Several rows with the same ``query_id`` are repeated measurements of the query."""

    query_id: Annotated[Id, Meta(description="The id of a golden query.")]
    scores: Annotated[
        dict[str, float | None] | None, Meta(description="Numbers by name; null where something was not measured.")
    ] = None
    checks: Annotated[dict[str, bool | Check] | None, Meta(description="Checks by name.")] = None
    reasons: Annotated[dict[str, str] | None, Meta(description="Why a score or a check is as it is, by name.")] = None
    scored_by: Annotated[str | None, Meta(description="What computed them, and its version.")] = None


NOWHERE = -1
EXAMPLE = '{"query_id": "q1", "scores": {"faithfulness": 0.9}}'
ONCE = " (several rows per query are averaged with --repeats)"
NOTHING: Mapping[str, Any] = {}
Names = tuple[frozenset[str], frozenset[str]]  # of scores, and of checks


class Wanted(Struct, frozen=True, kw_only=True):
    """What a check reads from scores files."""

    golden: Collection[str]  # the ids of the golden queries
    not_judged: Collection[str] = ()  # the ids of further queries, whose rows are skipped
    metrics: Mapping[str, Metric]  # by name
    checks: bool = False  # whether checks are read
    checks_read: Mapping[str, Collection[str]] = {}  # by query id: the names of the checks that its rules read
    # The scores of several rows of a query in one file are averaged, and each of its checks must pass. A score or a
    # check that one of these rows lacks was not measured.
    repeats: bool = False
    reasons: bool = True  # whether the reasons of the worst scores are held; they quote answers


class Reason(NamedTuple):
    """Why a query has its score, in the words of the tool that computed it."""

    query_id: str
    value: float
    text: str


class GivenScores(Struct, frozen=True, kw_only=True):
    """The content of scores files."""

    files: tuple[SourceFile, ...]
    problems: Problems
    unknown: tuple[str, ...] = ()  # the first ids without a golden query
    unknown_rows: int = 0  # how many rows have such an id
    undeclared: tuple[str, ...] = ()  # the first names of scores that no metric reads
    unread_checks: Mapping[
        str, int
    ] = {}  # by name of a check: rows in which it failed, and no rule of the query reads it
    scored_by: tuple[str, ...] = ()
    reasons: Mapping[str, tuple[Reason, ...]]  # by metric: those of its worst scores, worst first
    table: "Table"

    def reason(self, metric: str, query_id: str) -> str | None:
        """Return the reason of a query's score, if the score is among the worst."""
        return next((reason.text for reason in self.reasons.get(metric, ()) if reason.query_id == query_id), None)


def read_scores(paths: Sequence[str], wanted: Wanted, progress: Progress = no_progress) -> GivenScores:
    """Read scores files or globs. Only the wanted numbers need memory: 16 bytes for each query and metric."""
    reader = _Reader(wanted)
    files, missing = existing_files(paths)
    for problem in missing:
        reader.problems.add(problem)
    for event in read_rows(files, ScoresRow, progress=progress):
        match event:
            case Batch():
                for index, row in enumerate(event.rows):
                    reader.row(row, event.path, event.line + index)
            case FileRead(file=file):
                reader.end(file)
            case _:
                reader.problems.add(event)
    return reader.result()


class _Reader:
    """Collects the rows of scores files."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._table = Table(wanted)
        self.files: list[SourceFile] = []
        self.problems = Collector()
        self._unknown: dict[str, None] = {}
        self._unknown_rows = 0
        self._undeclared: dict[str, None] = {}
        self._unread_checks: dict[str, int] = {}
        self._scored_by: dict[str, None] = {}
        self._reasons: dict[str, list[tuple[float, int, Reason]]] = {}
        self._rows = 0
        self._names: dict[int, Names] = {}  # of all rows of a query in this file
        self._without_any = True

    def row(self, row: ScoresRow, path: str, line: int) -> None:
        query_id, wanted = as_id(row.query_id), self._wanted
        self._rows += 1
        self._without_any = self._without_any and not row.scores and not row.checks
        if row.scored_by and len(self._scored_by) < bounds.SCORED_BY:
            self._scored_by[row.scored_by] = None
        number = self._table.numbers.get(query_id)
        if number is None:
            if query_id not in wanted.not_judged:
                self._unknown_rows += 1
                if len(self._unknown) < bounds.NAMES:
                    self._unknown[query_id] = None
            return
        at = self._table.places.at(path, line)
        self._note_names(number, row)
        for name, value in (row.scores or NOTHING).items():
            if name not in wanted.metrics:
                if len(self._undeclared) < bounds.NAMES:
                    self._undeclared[name] = None
            elif value is None:
                self._table.note_null(query_id, name, at)
            else:
                self._score(query_id, name, value, at)
                if wanted.reasons and (text := (row.reasons or NOTHING).get(name, "").strip()):
                    self._hold(name, value, query_id, text)
        self._note_unread(row.checks or NOTHING, wanted.checks_read.get(query_id, ()))
        if wanted.checks:
            for name, check in (row.checks or NOTHING).items():
                self._check(query_id, name, check, (row.reasons or NOTHING).get(name), at)

    def _note_unread(self, checks: Mapping[str, bool | Check], read: Collection[str]) -> None:
        for name, check in checks.items():
            failed = has_failed(check if isinstance(check, bool) else _as_in_rows(check))
            room = name in self._unread_checks or len(self._unread_checks) < bounds.NAMES
            if failed and name not in read and room:
                self._unread_checks[name] = self._unread_checks.get(name, 0) + 1

    def end(self, file: SourceFile) -> None:
        self.files.append(file)
        self._names.clear()
        if self._without_any and not self.problems.collected():
            self.problems.problem(encodable(file.path), f"has no scores and no checks; expected rows as {EXAMPLE}")
        self._without_any = True

    def _note_names(self, number: int, row: ScoresRow) -> None:
        """Note which names a row has. A name that some rows of its query lack was not measured."""
        if not self._wanted.repeats:
            return
        scores = frozenset(self._wanted.metrics.keys() & (row.scores or NOTHING).keys())
        checks = frozenset(row.checks or NOTHING) if self._wanted.checks else frozenset[str]()
        before = self._names.get(number)
        if before is None:
            self._names[number] = (scores, checks)
        elif before != (scores, checks):
            self._table.lacks(number, before[0] ^ scores, before[1] ^ checks)
            self._names[number] = (before[0] | scores, before[1] | checks)

    def _score(self, query_id: str, name: str, value: float, at: int) -> None:
        location = self._table.places.location(at).at("scores", name)
        if why := self._wanted.metrics[name].scale.fault(value):
            self.problems.problem(location, why)
        elif (first := self._table.note(query_id, name, value, at)) is not None:
            self._refuse(location, query_id, first, at)

    def _check(self, query_id: str, name: str, check: bool | Check, reason: str | None, at: int) -> None:  # noqa: FBT001
        if isinstance(check, bool):
            check = Check(passed=check, reason=reason)
        if (first := self._table.note_check(query_id, name, check, at)) is not None:
            location = self._table.places.location(at).at("checks", shorten(name, bounds.NAME))
            self._refuse(location, query_id, first, at)

    def _refuse(self, location: Location, query_id: str, first: int, at: int) -> None:
        same_file = self._table.places.in_one_file(first, at)
        once = ONCE if same_file and not self._wanted.repeats else "; leave one of them out"
        self.problems.problem(
            location, f"query {query_id!r} has it at {self._table.places.location(first)} already{once}"
        )

    def _hold(self, name: str, value: float, query_id: str, text: str) -> None:
        held = self._reasons.setdefault(name, [])
        badness = -value if self._wanted.metrics[name].better == "higher" else value
        entry = (badness, -self._rows, Reason(query_id, value, shorten(text, bounds.REASON)))
        (heappushpop if len(held) >= bounds.REASONS else heappush)(held, entry)

    def result(self) -> GivenScores:
        return GivenScores(
            files=tuple(self.files),
            problems=self.problems.collected(),
            unknown=tuple(self._unknown),
            unknown_rows=self._unknown_rows,
            undeclared=tuple(self._undeclared),
            unread_checks=self._unread_checks,
            scored_by=tuple(self._scored_by),
            reasons={
                name: tuple([reason for _, _, reason in sorted(held, reverse=True)])
                for name, held in self._reasons.items()
            },
            table=self._table,
        )


class _Column:
    """The scores of one metric, by the number of the query."""

    def __init__(self, queries: int) -> None:
        self.values = array("d", [nan]) * queries
        self.at = array("q", [NOWHERE]) * queries  # where each score, or else the last null, was read
        self.repeats: dict[int, list[float]] = {}
        self.nulls: set[int] = set()  # queries with a score and a null


class Table:
    """The scores and checks of golden queries, which are sent to the workers of a cluster."""

    def __init__(self, wanted: Wanted) -> None:
        self._repeats = wanted.repeats
        self.numbers = {query_id: number for number, query_id in enumerate(wanted.golden)}
        self._columns = {name: _Column(len(self.numbers)) for name in wanted.metrics}
        self._checks: dict[str, dict[str, tuple[Check, int]]] = {}
        self._lacking_checks: dict[int, frozenset[str]] = {}  # of queries that have them in other rows
        self.places = Places()

    def note(self, query_id: str, name: str, value: float, at: int) -> int | None:
        """Store a score, or return where the query's score was read already."""
        column, number = self._columns[name], self.numbers[query_id]
        first = column.at[number]
        if isnan(column.values[number]):
            column.values[number], column.at[number] = value, at
            if first != NOWHERE:
                column.nulls.add(number)
            return None
        if not self._repeats or not self.places.in_one_file(first, at):
            return first
        column.repeats.setdefault(number, [column.values[number]]).append(value)
        return None

    def note_null(self, query_id: str, name: str, at: int) -> None:
        """Store that a row of a query was not measured, so that its other rows do not pass for the score."""
        column, number = self._columns[name], self.numbers[query_id]
        if isnan(column.values[number]):
            column.at[number] = at
        else:
            column.nulls.add(number)

    def lacks(self, number: int, scores: Iterable[str], checks: frozenset[str]) -> None:
        """Store the scores and checks that one of the rows of a query lacks."""
        for name in scores:
            self._columns[name].nulls.add(number)
        if checks:
            self._lacking_checks[number] = self._lacking_checks.get(number, frozenset()) | checks

    def repeated(self, query_id: str) -> list[dict[str, float]]:
        """Return the scores of each row of a query that has several, in the order of the rows."""
        number = self.numbers[query_id]
        columns = {name: column for name, column in self._columns.items() if number not in column.nulls}
        several = {name: values for name, column in columns.items() if (values := column.repeats.get(number))}
        rows = max(map(len, several.values()), default=0)
        return [{name: values[row % len(values)] for name, values in several.items()} for row in range(rows)]

    def note_check(self, query_id: str, name: str, check: Check, at: int) -> int | None:
        """Store a check, or return where the query's check was read already. If one of several failed, that counts."""
        checks = self._checks.setdefault(query_id, {})
        known = checks.get(name)
        if known and (not self._repeats or not self.places.in_one_file(known[1], at)):
            return known[1]
        if known is None or (has_failed(_as_in_rows(check)) and not has_failed(_as_in_rows(known[0]))):
            checks[name] = (check, at)
        return None

    def merged(self, query_id: str, row: RunRow) -> RunRow | list[Invalid]:
        """Return a run row with the scores and checks of its query; names that both have are problems."""
        number = self.numbers[query_id]
        scores = {name: value for name in self._columns if (value := self._value(name, number)) is not None}
        read = {name: column.at[number] for name, column in self._columns.items() if not isnan(column.values[number])}
        checks = self._checks.get(query_id, NOTHING)
        if not read and not checks:
            return row
        changes: dict[str, Any] = {}
        clashes: list[Invalid] = []
        if read:
            own = row.scores or {}
            clashes += self._clashes("scores", read, [name for name, value in own.items() if value is not None])
            changes["scores"] = {**own, **scores}
        if checks:
            mine = row.checks or {}
            clashes += self._clashes("checks", {name: at for name, (_, at) in checks.items()}, mine)
            lacking = self._lacking_checks.get(number, frozenset())
            whole = {name: _as_in_rows(check) for name, (check, _) in checks.items() if name not in lacking}
            changes["checks"] = {**mine, **whole}
        return clashes or replace(row, **changes)

    def _value(self, name: str, number: int) -> float | None:
        column = self._columns[name]
        if number in column.nulls:
            return None
        if repeats := column.repeats.get(number):
            return fsum(repeats) / len(repeats)
        value = column.values[number]
        return None if isnan(value) else value

    def _clashes(self, field: str, where: Mapping[str, int], own: Iterable[str]) -> list[Invalid]:
        both = [name for name in own if name in where]
        return [
            Invalid(f"{field}.{name}", f"{self.places.location(where[name])} has it, too; leave one of them out")
            for name in both
        ]


def _as_in_rows(check: Check) -> bool | dict[str, Any]:
    if check.reason is None and not check.error:
        return check.passed
    more = {"reason": check.reason, "error": check.error}
    return {"passed": check.passed, **{name: why for name, why in more.items() if why is not None}}
