"""The work of a Spark worker, which evaluates each row with the plan and counts it, and the sums of all counts.

Workers yield counts by kind, number and key, which are summed over all workers. On the driver, small kinds are
collected at once, and large ones are queried.

=======================  =======================  ===================================  =================================
kind                     number                   key                                  rows
=======================  =======================  ===================================  =================================
outcome                  number of golden query   encoded outcome of a row             number of rows with this outcome
retrieved                number of golden query   encoded results of a row that        number of rows with these results
                                                  reports list
first                    number of golden query   packed first ids of a row            number of rows of a baseline with
                                                                                       these
latency                  bits of the              empty                                number of rows with this latency
                         milliseconds
version                  number of version field  version                              number with this version
unknown                                           query id without golden query        number of rows with this id
problem                                           message about a row                  number of rows with this problem
tally                                             one of ``TALLIES``                   total
name of an observation                            encoded key of the observation       its count
=======================  =======================  ===================================  =================================

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
from ragcontract.core.ids import as_id
from ragcontract.core.numbers import mebibytes
from ragcontract.core.phrase import NOT_SHOWN, without_values
from ragcontract.core.run import Latency, RunRow, versions_in
from ragcontract.core.safe_text import encodable
from ragcontract.evaluation.listed import ListedResults
from ragcontract.evaluation.observations import observations
from ragcontract.evaluation.plan import BesideRanks, Plan, RowOutcome
from ragcontract.evaluation.scoring import Observation, Scored, Scorer
from ragcontract.files.json_lines import UNDECODABLE, explained
from ragcontract.files.json_text import DoubledKeys, fault
from ragcontract.files.opening import UTF8_BOM
from ragcontract.files.parquet import Columns
from ragcontract.files.problems import Batch, Collector, MoreProblems, Problem, Warned
from ragcontract.files.schema import Mismatch, shown
from ragcontract.rules.ranks import RankRules
from ragcontract.runs.readers import UNREAD
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
TALLIES = ("rows", "measured", "unmeasured", "problems")
LINE, FILE = "line", "file"  # columns in addition to those of a run row
HELD = 100_000
AT_ONCE = 10_000

Key = tuple[str, int, bytes]


class Job:
    """The data that every worker gets: the plan, its observations, and a number for each golden query.

    With ``only_listed``, only the results of the queries that the plan lists are counted.
    """

    def __init__(self, plan: Plan, *, only_listed: bool = False) -> None:
        self.plan = plan
        self.only_listed = only_listed
        self.numbers = {query_id: number for number, query_id in enumerate(plan.golden)}
        self.observations = tuple([type(observed) for observed in observations(plan) if observed.on_cluster])


def of_columns(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Yield the counts of batches with the fields of run rows and ``file`` as columns."""
    part = _Part(job)
    columns: Columns[RunRow] | None = None
    for batch in batches:
        columns = columns or Columns(batch.schema, job.plan.row_type, UNREAD)
        for number, row in enumerate(columns.rows(batch)):
            if isinstance(row, list):
                query_id = batch.column("query_id")[number]
                part.refuse(_location(_file(batch, number), _id(query_id)), row)
            else:
                part.read(row, _file(batch, number))
        part.note()
        yield from part.handed_on(HELD)
    yield from part.handed_on(0)


def of_lines(batches: Iterable[pa.RecordBatch], job: Job) -> Iterator[pa.RecordBatch]:
    """Yield the counts of batches with the columns ``line``, a row as JSON, and ``file``."""
    part = _Part(job)
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
                part.refuse_line(line, _file(batch, number), [Mismatch((), too_long)])
                continue
            if (key := keys.of_row(line)) is not None:
                part.refuse_line(line, _file(batch, number), [Mismatch((), fault(key))])
                continue
            try:
                row = decode(line)
            except UNDECODABLE as error:
                part.refuse_line(line, _file(batch, number), explained(line, error, row_type))
                continue
            part.read(row, _file(batch, number))
        part.note()
        yield from part.handed_on(HELD)
    yield from part.handed_on(0)


class _Problems(Collector):
    """Counts the problems of rows without an order, and describes the first ``bounds.PROBLEMS`` of a part of a run."""

    def __init__(self, *, texts: bool) -> None:
        super().__init__()
        self._texts = texts
        self._described = 0
        self.counts: Counter[Key] = Counter()

    def add(self, event: Problem | MoreProblems | Warned) -> None:
        self.counts["tally", 0, b"problems"] += 1
        if self._described < bounds.PROBLEMS:
            self._described += 1
            problem = str(event) if self._texts else without_values(str(event))
            self.counts["problem", 0, problem.encode(errors="replace")] += 1


class _Part:
    """A part of a run: its rows, and their counts since they were last handed on."""

    def __init__(self, job: Job) -> None:
        self._job, self._plan = job, job.plan
        self._rows: dict[str, list[RunRow]] = {}  # by file; those that are read and not yet noted
        self._problems = _Problems(texts=job.plan.texts)
        self._scorer = Scorer(job.plan, self._problems)
        self._rules = RankRules(job.plan.rank_rules, job.plan.settings)
        self._listed = ListedResults(job.plan)
        self._handed_on = 0  # how many lists of results
        self._observed = [kind(job.plan) for kind in job.observations]
        self._outcomes: Counter[tuple[int, RowOutcome]] = Counter()
        self._others: Counter[Key] = Counter()

    def read(self, row: RunRow, file: str) -> None:
        self._rows.setdefault(file, []).append(row)

    def note(self) -> None:
        """Score and count the rows that were read."""
        for file, rows in self._rows.items():
            if self._job.only_listed:
                self._listed.note_listed(rows)
                continue
            self._others["tally", 0, b"rows"] += len(rows)
            for scored in self._scorer.rows(Batch(file, 0, rows)):
                self._note(scored)
        self._rows.clear()

    def _note(self, scored: Scored) -> None:
        for observation in self._observed:
            observation.note(scored)
        for query_id in scored.unknown:
            if query_id not in self._plan.not_judged:
                self._others["unknown", 0, query_id.encode()] += 1
        for row in scored.rows:
            if row.latency_ms is None:
                self._others["tally", 0, b"unmeasured"] += 1
            else:
                self._others["tally", 0, b"measured"] += 1
                self._others["latency", bits(row.latency_ms + 0.0), b""] += 1  # avoids -0.0, whose bits differ
        for values in map(versions_in, scored.rows):
            for field, value in enumerate(values):
                if value is not None:
                    self._others["version", field, as_id(value).encode()] += 1
        numbers = [self._job.numbers[query.id] for query in scored.queries]
        for number, packed_ids in zip(numbers, scored.first_ids, strict=False):  # not strict: only a baseline has them
            self._others["first", number, packed_ids[1:]] += 1  # without the head of a list of one
        for at, number in enumerate(numbers):
            self._note_outcome(number, scored, at)

    def _note_outcome(self, number: int, scored: Scored, at: int) -> None:
        query, score = scored.queries[at], scored.scores[at]
        beside = scored.beside[at] if scored.beside else BesideRanks()
        if beside is None:
            return
        overlap = scored.overlaps[at] if scored.overlaps else ()
        outcome = RowOutcome(score=score, overlap=overlap, values=beside.values, violations=beside.violations)
        self._outcomes[number, outcome] += 1
        if not self._plan.is_baseline and self._listed.has_room:
            of_ranks = self._rules.may_be_violated(query, score) and self._rules.violations(query, score)
            if beside.violations or of_ranks:
                self._listed.hold(query.id, scored.rows[at].results)

    def refuse_line(self, line: bytes, file: str, mismatches: Iterable[Mismatch]) -> None:
        """Report the problems of an invalid line, at its query or else, if texts may be shown, at its start."""
        try:
            location = _location(file, msgspec.json.decode(line)["query_id"])
        except (*UNDECODABLE, TypeError, KeyError, IndexError):
            start = shown(line[: bounds.VALUE_TEXT].decode(errors="replace").strip())
            location = f"{file}: the line {start if self._plan.texts else NOT_SHOWN}"
        self.refuse(location, mismatches)

    def refuse(self, location: str, mismatches: Iterable[Mismatch]) -> None:
        """Report the problems of an invalid row."""
        for mismatch in mismatches:
            self._problems.mismatch(location, mismatch)

    def handed_on(self, more_than: int) -> Iterator[pa.RecordBatch]:
        """Yield the counts and begin new ones, if there are more than ``more_than``."""
        observed = [observation.counts for observation in self._observed]
        held: list[Counter[Any]] = [self._outcomes, self._others, self._problems.counts, *observed]
        if sum(map(len, held)) + len(self._listed.held) - self._handed_on <= more_than:
            return
        yield from _batches(self._counts())
        for counts in held:
            counts.clear()

    def _counts(self) -> Iterator[tuple[Key, int]]:
        encoded: dict[RowOutcome, bytes] = {}
        for (number, outcome), rows in self._outcomes.items():
            if outcome not in encoded:
                encoded[outcome] = msgspec.msgpack.encode(outcome)
            yield ("outcome", number, encoded[outcome]), rows
        for query_id, results in list(self._listed.held.items())[self._handed_on :]:
            yield ("retrieved", self._job.numbers[query_id], msgspec.msgpack.encode(results)), 1
        self._handed_on = len(self._listed.held)
        for observation in self._observed:
            for key, count in observation.counts.items():
                yield (kind_of(type(observation)), 0, _encoded(key)), count
        yield from self._others.items()
        yield from self._problems.counts.items()


def _encoded(key: tuple[Any, ...]) -> bytes:
    try:
        return msgspec.msgpack.encode(key)
    except UnicodeEncodeError:  # half of a pair of surrogates
        return msgspec.msgpack.encode([encodable(part) if isinstance(part, str) else part for part in key])


def kind_of(observation: type[Observation[Any]]) -> str:
    """Return the kind of the counts of an observation."""
    return observation.__name__


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
