"""The work of a Spark worker, which evaluates each row with the plan and counts it, and the sums of all counts.

Workers yield counts by kind, number and key, which are summed over all workers. On the driver, small kinds are
collected at once, and large ones are queried.

==========  =========================  ============================  ========================================
kind        number                     key                           rows
==========  =========================  ============================  ========================================
outcome     number of golden query     encoded outcome of a row      number of rows with this outcome
short       number of golden query                                   number with fewer than k documents,
                                                                     because some repeat
unknown                                id without golden query       number with this id
latency     bits of the milliseconds                                 number with this latency
version     number of version field    version                       number with this version
otherwise   number of golden query                                   number with other questions than its turns
failed      number of golden query                                   number of rows with an error in place of
                                                                     their fields
unordered                              file                          number whose scores do not descend
depth       number of results                                        number with as many results
retrieved   number of golden query     encoded results of a row      number of rows with these results
                                       that reports list
first       number of golden query     packed first ids of a row     number of rows of a baseline with these
undeclared                             name of a score that no       number with this score
                                       metric reads
problem                                message about a row           number with this problem
tally                                  one of ``TALLIES``            total
==========  =========================  ============================  ========================================

Counts are yielded whenever there are many, to limit the memory of a worker whatever the rows contain. Percentiles of
latencies (nearest rank) are exact, although the latencies are not collected.
"""

import struct
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from ragcontract.core import bounds
from ragcontract.core.golden import GoldenQuery
from ragcontract.core.ids import EVERYTHING, as_id, first_of, packed
from ragcontract.core.numbers import mebibytes
from ragcontract.core.phrase import NOT_SHOWN, without_values
from ragcontract.core.run import Latency, RunRow, lacks_results, versions_in
from ragcontract.evaluation.fold import without_results
from ragcontract.evaluation.id_diagnostics import ForbiddenForms
from ragcontract.evaluation.listed import ListedResults
from ragcontract.evaluation.observations import DuplicateCounter, ScoreGaps
from ragcontract.evaluation.plan import Plan, RowOutcome, asks_otherwise
from ragcontract.files.json_lines import UNDECODABLE, explained
from ragcontract.files.json_text import DoubledKeys, fault
from ragcontract.files.opening import UTF8_BOM
from ragcontract.files.parquet import Columns
from ragcontract.files.problems import Problem
from ragcontract.files.schema import Mismatch, shown
from ragcontract.runs.readers import UNREAD, descending, falls, rises
from ragcontract.statistics.means import rank_of

FEW = 20_000  # maximum number of counts of a kind that the driver collects in full


class Counted(NamedTuple):
    """One count; see :mod:`ragcontract.cluster.workers` for the meaning of its number and key."""

    number: int
    key: bytes
    rows: int


class Size(NamedTuple):
    """The number of counts of a kind, the largest ``rows`` among them, and the highest ``number``."""

    counts: int
    most: int
    highest: int


class Counts:
    """Counts by kind, from a data frame with one row per kind, number and key.

    All counts of ``whole`` kinds are collected, and those of each other kind with at most ``few`` counts.
    """

    def __init__(self, frame: DataFrame, *, whole: Collection[str], few: int = FEW) -> None:
        self._frame = frame
        sizes = frame.groupBy("kind").agg(sql.count("*"), sql.max("rows"), sql.max("number")).collect()
        self._sizes = {kind: Size(*size) for kind, *size in sizes}
        self._here: dict[str, list[Counted]] = {
            kind: [] for kind, size in self._sizes.items() if kind in whole or size.counts <= few
        }
        for kind, number, key, rows in frame.filter(sql.col("kind").isin(list(self._here))).collect():
            self._here[kind].append(Counted(number, bytes(key), rows))

    def size(self, kind: str) -> Size:
        return self._sizes.get(kind, Size(0, 0, 0))

    def here(self, kind: str) -> list[Counted] | None:
        """Return all counts of a kind, sorted, or None if they were not collected."""
        return sorted(self._here.get(kind, [])) if self.size(kind).counts == 0 or kind in self._here else None

    def there(self, kind: str) -> DataFrame:
        return self._frame.filter(sql.col("kind") == kind)

    def lowest(self, kind: str, most: int) -> list[Counted]:
        """Return the first ``most`` counts of a kind by number and key."""
        if (here := self.here(kind)) is not None:
            return here[:most]
        ordered = self.there(kind).orderBy("number", "key").limit(most).collect()
        return [Counted(row.number, bytes(row.key), row.rows) for row in ordered]

    def first(self, kind: str, most: int, *, number: int = 0, rows: int = 1) -> list[Counted]:
        """Return the first ``most`` counts by key, of a kind and ``number``, with at least that many ``rows``."""
        if (here := self.here(kind)) is not None:
            return [counted for counted in here if counted.number == number and counted.rows >= rows][:most]
        matching = self.there(kind).filter((sql.col("number") == number) & (sql.col("rows") >= rows))
        ordered = matching.orderBy("key").limit(most).collect()
        return [Counted(row.number, bytes(row.key), row.rows) for row in ordered]


COUNTS = "kind string, number long, key binary, rows long"
TALLIES = ("rows", "measured", "unmeasured", "results", "repeated", "problems", "unordered", "rising", "falling")
LINE, FILE = "line", "file"  # columns in addition to those of a run row
HELD = 100_000
AT_ONCE = 10_000

Key = tuple[str, int, bytes]


class Job:
    """The data that every worker gets: the plan, and a number for each golden query.

    With ``only_listed``, only the results of the queries that the plan lists are counted.
    """

    def __init__(self, plan: Plan, *, only_listed: bool = False) -> None:
        self.plan = plan
        self.only_listed = only_listed
        self.numbers = {query_id: number for number, query_id in enumerate(plan.golden)}


def of_columns(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Yield the counts of batches with the fields of run rows and ``file`` as columns."""
    counts = _Counts(job)
    columns: Columns[RunRow] | None = None
    for batch in batches:
        columns = columns or Columns(batch.schema, job.plan.row_type, UNREAD)
        for number, row in enumerate(columns.rows(batch)):
            if isinstance(row, list):
                query_id = batch.column("query_id")[number]
                counts.bad(_location(_file(batch, number), _id(query_id)), row)
            else:
                counts.note(row, _file(batch, number))
        yield from counts.handed_on(HELD)
    yield from counts.handed_on(0)


def of_lines(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Yield the counts of batches with the columns ``line``, a row as JSON, and ``file``."""
    counts = _Counts(job)
    row_type = job.plan.row_type
    decode = msgspec.json.Decoder(row_type).decode
    keys = DoubledKeys(bounds.RUN_KEYS_COMPARED)
    for batch in batches:
        for number, raw in enumerate(batch.column(LINE).to_pylist()):
            line = raw.removeprefix(UTF8_BOM)
            if not line or line.isspace():
                continue
            if len(line) > bounds.LINE:
                too_long = f"the line is longer than {mebibytes(bounds.LINE)}"
                counts.bad_line(line, _file(batch, number), [Mismatch((), too_long)])
                continue
            if (key := keys.of_row(line)) is not None:
                counts.bad_line(line, _file(batch, number), [Mismatch((), fault(key))])
                continue
            try:
                row = decode(line)
            except UNDECODABLE as error:
                counts.bad_line(line, _file(batch, number), explained(line, error, row_type))
                continue
            counts.note(row, _file(batch, number))
        yield from counts.handed_on(HELD)
    yield from counts.handed_on(0)


class _Counts:
    """The counts of one part of a run since the last ones were yielded."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._outcomes: Counter[tuple[int, RowOutcome]] = Counter()
        self._unknown: Counter[str] = Counter()
        self._latencies: Counter[float] = Counter()
        self._versions: Counter[tuple[Any, ...]] = Counter()
        self._others: Counter[Key] = Counter()
        self._duplicates = DuplicateCounter(job.plan.k)
        self._listed = ListedResults(job.plan)
        self._gaps = ScoreGaps(job.plan.scores)
        self._forbidden_forms = ForbiddenForms.of(job.plan)
        self._reads_scores = bool(job.plan.scores)
        self._yielded = 0  # how many lists of results have been yielded
        self._described = 0

    def note(self, row: RunRow, file: str) -> None:
        if self._job.only_listed:
            if (query_id := as_id(row.query_id)) in self._job.plan.listed:
                self._listed.hold(query_id, row.results)
            return
        self._others["tally", 0, b"rows"] += 1
        scores = [result.score for result in row.results]
        if not descending(scores):
            self._others["unordered", 0, file.encode()] += 1
            self._others["tally", 0, b"unordered"] += 1
            self._others["tally", 0, b"rising"] += rises(scores)
        else:
            self._others["tally", 0, b"falling"] += falls(scores)
        if (query := self._query(row, file)) is None:
            return
        number, doc_ids = self._job.numbers[query.id], row.doc_ids
        self._others["depth", len(doc_ids), b""] += 1
        if self._forbidden_forms and query.forbidden_doc_ids:
            self.bad(_location(file, query.id), self._forbidden_forms.unknown(query, row))
            self.bad(_location(file, query.id), self._forbidden_forms.faults(query, doc_ids))
        if (outcome := self._outcome(query, row, doc_ids, file)) is not None:
            self._outcomes[number, outcome] += 1
            if row.error and self._job.plan.has_failed(query, row, outcome.values):
                self._others["failed", number, b""] += 1
            if self._job.plan.is_baseline:
                k, by_document = self._job.plan.k, self._job.plan.ranking.by_document
                self._others["first", number, packed(first_of(doc_ids, k, by_document=by_document))] += 1
            elif self._listed.has_room and (outcome.violations or self._listed.breaks(query, outcome.score)):
                self._listed.hold(query.id, row.results)
        if self._duplicates.note(query.id, doc_ids):
            self._others["short", number, b""] += 1
        if row.latency_ms is None:
            self._others["tally", 0, b"unmeasured"] += 1
        else:
            self._others["tally", 0, b"measured"] += 1
            self._latencies[row.latency_ms + 0.0] += 1  # avoids -0.0, whose bits differ
        self._versions[versions_in(row)] += 1

    def _query(self, row: RunRow, file: str) -> GoldenQuery | None:
        """Return the golden query to score a row for. If there is none, return None and count the row."""
        query_id = as_id(row.query_id)
        query = self._job.plan.golden.get(query_id)
        if query is None:
            if query_id not in self._job.plan.not_judged:
                self._unknown[query_id] += 1
        elif lacks_results(row) and query.needs_results:
            self.bad(_location(file, query.id), [without_results(query)])
            return None
        elif self._job.plan.turns and asks_otherwise(query, row):
            self._others["otherwise", self._job.numbers[query.id], b""] += 1
            return None if self._job.plan.is_baseline else query
        return query

    def _outcome(self, query: GoldenQuery, row: RunRow, doc_ids: list[str], file: str) -> RowOutcome | None:
        """Return the outcome of a row. If the row lacks something, return None and count the problem."""
        plan = self._job.plan
        score = plan.ranking.score(query, doc_ids, EVERYTHING if plan.is_baseline else plan.pools.get(query.id))
        overlap = plan.overlap_with_baseline(query, doc_ids)
        if not plan.families and not plan.row_rules:
            return RowOutcome(score=score, overlap=overlap)
        beside = plan.beside_ranks(query, row)
        if isinstance(beside, list):
            location = _location(file, query.id)
            self.bad(location, [Mismatch((fault.field,) if fault.field else (), fault.why) for fault in beside])
            return None
        for name in self._gaps.unread(row.scores) if self._reads_scores else ():
            self._others["undeclared", 0, name.encode(errors="replace")] += 1
        return RowOutcome(
            score=score, overlap=overlap, values=beside.values, violations=beside.violations, lacking=beside.lacking
        )

    def bad_line(self, line: bytes, file: str, mismatches: Iterable[Mismatch]) -> None:
        """Count the problems of an invalid line, at its query or else, if texts may be shown, at its start."""
        try:
            location = _location(file, msgspec.json.decode(line)["query_id"])
        except (*UNDECODABLE, TypeError, KeyError, IndexError):
            start = shown(line[: bounds.VALUE_TEXT].decode(errors="replace").strip())
            location = f"{file}: the line {start if self._job.plan.texts else NOT_SHOWN}"
        self.bad(location, mismatches)

    def bad(self, location: str, mismatches: Iterable[Mismatch]) -> None:
        """Count the problems of an invalid row, and describe the first ``bounds.PROBLEMS`` of each part of a run."""
        for mismatch in mismatches:
            self._others["tally", 0, b"problems"] += 1
            if self._described < bounds.PROBLEMS:
                self._described += 1
                problem = str(Problem.of(location, mismatch))
                problem = problem if self._job.plan.texts else without_values(problem)
                self._others["problem", 0, problem.encode(errors="replace")] += 1

    def handed_on(self, more_than: int) -> Iterator[pa.RecordBatch]:
        """Yield the counts and reset them if there are more than ``more_than``."""
        held: list[Counter[Any]] = [self._outcomes, self._unknown, self._latencies, self._versions, self._others]
        if sum(map(len, held)) + len(self._listed.held) - self._yielded <= more_than:
            return
        duplicates = self._duplicates.result()
        self._others["tally", 0, b"results"] += duplicates.results
        self._others["tally", 0, b"repeated"] += duplicates.repeated
        self._duplicates = DuplicateCounter(self._job.plan.k)
        yield from _batches(self._all())
        for counter in held:
            counter.clear()

    def _all(self) -> Iterator[tuple[Key, int]]:
        encoded: dict[RowOutcome, bytes] = {}
        for (number, outcome), rows in self._outcomes.items():
            if outcome not in encoded:
                encoded[outcome] = msgspec.msgpack.encode(outcome)
            yield ("outcome", number, encoded[outcome]), rows
        for query_id, results in list(self._listed.held.items())[self._yielded :]:
            yield ("retrieved", self._job.numbers[query_id], msgspec.msgpack.encode(results)), 1
        self._yielded = len(self._listed.held)
        for query_id, rows in self._unknown.items():
            yield ("unknown", 0, query_id.encode()), rows
        for milliseconds, rows in self._latencies.items():
            yield ("latency", bits(milliseconds), b""), rows
        for values, rows in self._versions.items():
            for field, value in enumerate(values):
                if value is not None:
                    yield ("version", field, as_id(value).encode()), rows
        yield from self._others.items()


def bits(number: float) -> int:
    """Return the bits of a number as an integer; for numbers of at least 0, this preserves their order."""
    (whole,) = struct.unpack("<q", struct.pack("<d", number))
    return int(whole)


def from_bits(whole: int) -> float:
    """Return the number with these bits."""
    (number,) = struct.unpack("<d", struct.pack("<q", whole))
    return float(number)


def _batches(counts: Iterable[tuple[Key, int]]) -> Iterator[pa.RecordBatch]:
    schema = pa.schema({"kind": pa.string(), "number": pa.int64(), "key": pa.binary(), "rows": pa.int64()})
    rows = [(*key, count) for key, count in counts]
    for start in range(0, len(rows), AT_ONCE):
        columns = zip(*rows[start : start + AT_ONCE], strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(column, of) for column, of in zip(columns, schema.types, strict=True)], schema=schema
        )


def _file(batch: pa.RecordBatch, number: int) -> str:
    return str(batch.column(FILE)[number])


def _id(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return None


def _location(file: str, query_id: object) -> str:
    return f"{file}: query {shown(query_id)}" if isinstance(query_id, str | int) else f"{file}: a row"


STEPS = (40, 20, 0)  # number of low bits ignored; each step yields at most about a million groups


class Group(NamedTuple):
    """Numbers with the same high bits: their count, the lowest and the highest."""

    prefix: int
    rows: int
    lowest: int
    highest: int


def latency_of(counts: Counts, rows: int) -> Latency | None:
    """Return the latency summary of ``rows`` latencies, or None if there are none."""
    if not rows:
        return None
    here = counts.here("latency")
    groups = None if here is None else [Group(each.number, each.rows, each.number, each.number) for each in here]

    def percentile(percent: int) -> float:
        rank = rank_of(rows, percent)
        number = at_rank(counts.there("latency"), rank) if groups is None else _holding(groups, rank)[0].lowest
        return from_bits(number)

    return Latency(
        rows=rows,
        p50_ms=percentile(50),
        p95_ms=percentile(95),
        max_ms=from_bits(counts.size("latency").highest),
    )


def at_rank(counts: DataFrame, rank: int) -> int:
    """Return the ``number`` at a 1-based rank, where each number occurs ``rows`` times.

    The numbers are grouped by their high bits, then by more bits within the group that contains the rank.
    """
    lowest = 0
    for shift in STEPS:
        prefix = sql.shiftright("number", shift)
        grouped = counts.groupBy(prefix.alias("prefix"))
        sums = grouped.agg(sql.sum("rows"), sql.min("number"), sql.max("number")).collect()
        group, rank = _holding(sorted(Group(*row) for row in sums), rank)
        lowest = group.lowest
        if lowest == group.highest:
            break
        counts = counts.filter(prefix == group.prefix)
    return lowest


def _holding(groups: Iterable[Group], rank: int) -> tuple[Group, int]:
    """Return the group that contains a rank, and the rank within that group."""
    for group in groups:
        if rank <= group.rows:
            return group, rank
        rank -= group.rows
    raise ValueError("there are fewer numbers than that")
