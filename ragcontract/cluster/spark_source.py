"""The Spark source: evaluates a plan on the workers of a cluster, and builds a side on the driver from their counts.

Runs are Parquet, JSON lines or a data frame. Only the required columns are read.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import repeat
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from msgspec.structs import replace
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.storagelevel import StorageLevel

from ragcontract.cluster.workers import (
    COUNTS,
    FEW,
    FILE,
    LINE,
    TALLIES,
    Counted,
    Counts,
    Job,
    kind_of,
    latency_of,
    of_columns,
    of_lines,
)
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import together
from ragcontract.core.numbers import count, more
from ragcontract.core.rule import RowRule
from ragcontract.core.rule import names_of as names_of_rule
from ragcontract.core.run import VERSION_FIELDS, ListedResult, RunRow, SourceFile, row_type
from ragcontract.evaluation.listed import Listed
from ragcontract.evaluation.observations import (
    Latencies,
    Measured,
    Unknown,
    UnknownQueries,
    Versions,
)
from ragcontract.evaluation.plan import Plan, RowOutcome
from ragcontract.evaluation.query_scores import ScoreTable
from ragcontract.evaluation.scoring import Observation
from ragcontract.evaluation.side import Side, side_of
from ragcontract.files.json_lines import UNDECODABLE, strange_fields
from ragcontract.files.parquet import Columns
from ragcontract.files.problems import Collector, Problems
from ragcontract.runs.baseline_contract import REFERENCES
from ragcontract.runs.readers import UNREAD

DATA_FRAME = "(data frame)"
JSON_LINES = (".jsonl", ".ndjson", ".json")
PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
STRICT = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}  # otherwise, rows could be missing unnoticed

Rows = Sequence[str] | DataFrame
Work = Callable[[Iterator[pa.RecordBatch], Job], Iterator[pa.RecordBatch]]


class Part(NamedTuple):
    """Rows of one format, and the function with which workers process them."""

    rows: DataFrame
    work: Work


def names_of(rows: Rows) -> list[str]:
    """Return the names of a run's inputs, for messages and reports."""
    return [DATA_FRAME] if isinstance(rows, DataFrame) else list(rows)


def parts_of(session: SparkSession, rows: Rows, plan: Plan, problems: Collector) -> list[Part]:
    """Open a run; ``problems`` collects the inputs that cannot be opened."""
    if isinstance(rows, DataFrame):
        return _of_frame(rows, DATA_FRAME, plan, problems)
    lines = [path for path in rows if is_json_lines(path)]
    columns = [path for path in rows if not is_json_lines(path)]
    parts = []
    try:
        if columns:
            frame = session.read.options(**STRICT).parquet(*columns)
            parts += _of_frame(frame, columns[0], plan, problems)
        if lines:
            text = session.read.options(**STRICT, lineSep="\n").text(lines)
            _check_spelling(text, lines[0], problems)
            parts.append(Part(text.select(sql.col("value").cast("binary").alias(LINE), _file("")), of_lines))
    except AnalysisException as error:
        if "PATH_NOT_FOUND" not in str(error) and "UNABLE_TO_INFER_SCHEMA" not in str(error):
            raise
        problems.problem(", ".join(rows), f"cannot be read ({first_line(error)})")
    return parts


def is_json_lines(path: str) -> bool:
    """Return whether a file, folder or pattern is JSON lines according to its name. Everything else is Parquet."""
    name = path.lower().rstrip("/*.")
    for suffix in PACKED:
        name = name.removesuffix(suffix)
    return name.endswith(JSON_LINES)


def first_line(error: object) -> str:
    """Return the first line of an error message from Spark."""
    return str(error).strip().partition("\n")[0].rstrip(". ")


def _of_frame(frame: DataFrame, name: str, plan: Plan, problems: Collector) -> list[Part]:
    columns = Columns(_arrow_schema(frame), plan.row_type, UNREAD)
    for mismatch in columns.mismatches:
        problems.mismatch(name, mismatch)
    if columns.mismatches:
        return []
    for strange, meant in strange_fields(columns.example, RunRow):
        problems.warning(f"{name}: unknown field {strange!r} is not read; did you mean {meant!r}?")
    of_row = [field for field in plan.row_type.__struct_fields__ if field in columns.example and field != "results"]
    needed = [sql.col(field) for field in of_row]
    # Select single fields, so that Spark reads no other fields of the results, and zip them to results again.
    wanted = ["doc_id", "score", *(need.removeprefix("results.") for need in sorted(plan.needs) if "." in need)]
    read = [field for field in wanted if field in columns.example["results"][0]]
    results = sql.arrays_zip(*[sql.col(f"results.{field}").alias(field) for field in read]).alias("results")
    return [Part(frame.select(*needed, results, _file(name)), of_columns)]


def _file(otherwise: str) -> SparkColumn:
    """Return the column with the file of each row, or ``otherwise`` for shuffled rows, whose file is unknown."""
    file = sql.regexp_replace(sql.input_file_name(), "^file:/+", "/")
    return sql.when(file == "", sql.lit(otherwise)).otherwise(file).alias(FILE)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    fields = []
    for field in frame.schema:
        try:
            fields.append(pa.field(field.name, to_arrow_type(field.dataType)))
        except Exception:  # noqa: BLE001 (the exception differs between Spark versions; no such type fits a row)
            fields.append(pa.field(field.name, pa.binary()))
    return pa.schema(fields)


def _check_spelling(text: DataFrame, name: str, problems: Collector) -> None:
    reported = set()
    for row in text.limit(bounds.SPELL_CHECKED).collect():
        try:
            value = msgspec.json.decode(row.value)
            msgspec.convert(value, row_type())
        except (*UNDECODABLE, msgspec.ValidationError):
            continue  # the worker that processes the row reports its problems
        for strange, meant in strange_fields(value, RunRow):
            if strange not in reported:
                reported.add(strange)
                problems.warning(f"{name}: unknown field {strange!r} is not read; did you mean {meant!r}?")


NOT_INSTALLED = (
    "rag-contract is not installed where Spark's workers run; install it there, or send it along: "
    "docs/guides/parquet-and-spark.md says how"
)
WITHOUT_SPARK = "and Spark judges documents and scores only; check this contract without Spark"
WHOLE = ("outcome", "first", "tally")  # kinds of counts whose number does not grow with the number of rows


class OnSpark:
    """A run that Spark reads. Kinds with at most ``few`` counts are collected on the driver in full."""

    def __init__(self, session: SparkSession, rows: Rows, *, few: int = FEW) -> None:
        self._session = session
        self._rows = rows
        self._few = few

    def evaluate(self, plan: Plan) -> Side:
        """Score the rows on the workers, and build the side from the sum of their counts."""
        if refused := not_on_spark(plan):
            raise InputError([refused])
        problems, job = Collector(), Job(replace(plan, judge=None))
        with self._counts(job, problems) as counts:
            return side_from(counts, names_of(self._rows), job, problems)

    def listed(self, plan: Plan) -> Listed:
        """Return the results of the listed queries, which the workers find in another pass over the rows."""
        job = Job(replace(plan, judge=None), only_listed=True)
        with self._counts(job, Collector()) as counts:
            return Listed(retrieved=retrieved_of(counts, job))

    @contextmanager
    def _counts(self, job: Job, problems: Collector) -> Iterator[Counts]:
        """Yield the sums of the workers' counts; ``problems`` collects the inputs that cannot be opened."""
        with _errors_translated(names_of(self._rows)[0]):
            frame = self._counted(parts_of(self._session, self._rows, job.plan, problems), job)
            # The counts are queried several times, but the run must be read only once.
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                yield Counts(frame, whole=(*WHOLE, *map(kind_of, job.observations)), few=self._few)
            finally:
                frame.unpersist()

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:  # noqa: ARG002
        """Raise InputError, because the rows stay where they are."""
        raise InputError(["--report-v2: lists every answer, so it needs --engine local, which reads the run here"])

    def _counted(self, parts: list[Part], job: Job) -> DataFrame:
        """Return the sums of the counts of all workers.

        Each worker first sums up its own counts, so even a query with most of the rows contributes only a few counts
        per worker. Only counts are shuffled. Counts depend on the rows alone, so the work of a lost worker can be
        repeated.
        """
        held = self._session.sparkContext.broadcast(job)

        def counted(part: Part) -> DataFrame:
            work = part.work
            return part.rows.mapInArrow(lambda batches: work(batches, held.value), COUNTS)

        if not parts:
            return self._session.createDataFrame([], COUNTS)
        everything = reduce(DataFrame.unionAll, map(counted, parts))
        keys = ("kind", "number", "key")
        # A persisted frame retains the default number of partitions, usually hundreds, even for a small run.
        several = min(
            sum(part.rows.rdd.getNumPartitions() for part in parts),
            int(self._session.conf.get("spark.sql.shuffle.partitions") or 1),
        )
        added_up = everything.repartition(max(1, several), *keys).groupBy(*keys).sum("rows")
        return added_up.withColumnRenamed("sum(rows)", "rows")


def not_on_spark(plan: Plan) -> str | None:
    """Return the message about the first golden row that Spark cannot check; None if it can check all of them.

    Answers, texts, tool calls and turns are checked on one machine only. So nothing that a judge would confirm in a
    second pass, and no counts of it, ever have to come back from the workers.
    """
    refused = tuple(rule for rule in plan.row_rules if not rule.on_spark)
    fields = {family.switch for family in plan.families if isinstance(family.switch, str)} & set(REFERENCES)
    judged = [metric for family in plan.families for metric in family.metrics if metric.task]
    for query in plan.golden.values():
        rules = (rule.inner for rule in query.rules if isinstance(rule, RowRule))
        names = [names_of_rule(type(rule))[0] for rule in rules if isinstance(rule, refused)]
        names += [field for field in sorted(fields) if getattr(query.answer, field, None) is not None]
        if names:
            return f"{query.location}: {names[0]}: is about the answer, {WITHOUT_SPARK}"
        if wanted := [metric for metric in judged if getattr(query.answer, metric.asks or "", None)]:
            return f"{query.location}: {wanted[0].asks}: {wanted[0].key} is what a judge said of texts, {WITHOUT_SPARK}"
    return None


def side_from(counts: Counts, names: Sequence[str], job: Job, problems: Collector) -> Side:
    """Build the side of a run from its counts; ``names`` are its inputs, ``problems`` those from opening it.

    Memory use is proportional to the number of golden queries and their distinct outcomes, not to the size of the run.
    """
    plan = job.plan
    location = names[0] + more(len(names), 1, "file", " (and {})")
    tally = dict.fromkeys(TALLIES, 0) | {counted.key.decode(): counted.rows for counted in counts.here("tally") or ()}
    _report(counts, tally, location, problems)
    table = ScoreTable(plan)
    rows = _note_outcomes(table, job, counts.here("outcome") or ())
    if not plan.repeats:
        _refuse_repeats(counts, rows, location, problems)
    first_ids = _first_ids(counts, job)
    table.first_ids.note([*first_ids], [*first_ids.values()])
    table.listed.held.update(retrieved_of(counts, job))
    observed = [kind(plan) for kind in job.observations]
    for observation in observed:
        observation.merge(_counts_of(observation, counts, job))
    unknown = tuple([counted.key.decode() for counted in counts.first("unknown", bounds.UNKNOWN)])
    results: dict[type, Any] = {
        UnknownQueries: Unknown(listed=unknown, more=counts.size("unknown").counts - len(unknown)),
        Latencies: Measured(latency=latency_of(counts, tally["measured"]), unmeasured=tally["unmeasured"]),
    }
    late = Collector()  # its warnings follow those of the observations
    results[Versions] = few_versions(_versions(counts), location, late)
    files = [SourceFile(path=name, sha256="") for name in names]
    side = side_of(plan, table, observed, problems, files=files, results=results)
    return replace(side, problems=side.problems + late.collected())


def _counts_of(observation: Observation[Any], counts: Counts, job: Job) -> dict[tuple[Any, ...], int]:
    """Return the counts of an observation, those of queries in the order of the golden set, others sorted by text."""
    kind, decode = kind_of(type(observation)), msgspec.msgpack.Decoder(tuple[Any, ...]).decode
    here, numbers = counts.here(kind), job.numbers
    rows = {decode(counted.key): counted.rows for counted in (counts.lowest(kind, FEW) if here is None else here)}
    return dict(sorted(rows.items(), key=lambda item: [(numbers.get(part, -1), str(part)) for part in item[0]]))


def _versions(counts: Counts) -> dict[str, list[str]]:
    """Return one value of each version field more than are kept, if there are so many."""
    versions = {}
    for number, field in enumerate(VERSION_FIELDS):
        if values := [counted.key.decode() for counted in counts.first("version", bounds.VERSIONS + 1, number=number)]:
            versions[field] = values
    return versions


def _note_outcomes(table: ScoreTable, job: Job, counts: Sequence[Counted]) -> dict[str, int]:
    """Store the combined outcomes of each query in the table; return the number of rows of each query."""
    ids, decode = list(job.plan.golden), msgspec.msgpack.Decoder(RowOutcome).decode
    decoded = {key: decode(key) for key in {counted.key for counted in counts}}  # shared by queries of equal ranks
    by_query: dict[int, list[Counted]] = {}
    for counted in counts:
        by_query.setdefault(counted.number, []).append(counted)
    for number, several in by_query.items():
        table.note_outcomes(ids[number], [decoded[each.key] for each in several], [each.rows for each in several])
    return table.unordered_rows


def _first_ids(counts: Counts, job: Job) -> dict[str, bytes]:
    """Return the packed first ids of a baseline's rows by query. Rows have no order here, so they are sorted."""
    ids, by_query = list(job.plan.golden), dict[str, list[Counted]]()
    for counted in counts.here("first") or ():
        by_query.setdefault(ids[counted.number], []).append(counted)
    return {
        query_id: together(key for counted in several for key in repeat(counted.key, counted.rows))
        for query_id, several in by_query.items()
    }


def retrieved_of(counts: Counts, job: Job) -> dict[str, tuple[ListedResult, ...]]:
    """Return the results that reports list, in the order of the golden queries.

    Rows have no order here, but of several rows of a query, the same one is always chosen.
    """
    ids = list(job.plan.golden)
    decode = msgspec.msgpack.Decoder(tuple[ListedResult, ...]).decode
    results: dict[str, tuple[ListedResult, ...]] = {}
    for counted in counts.lowest("retrieved", bounds.RETRIEVED_QUERIES):
        if ids[counted.number] not in results:
            results[ids[counted.number]] = decode(counted.key)
    return results


def _refuse_repeats(counts: Counts, rows: dict[str, int], location: str, problems: Collector) -> None:
    """Add a problem for each query id with several rows, whether or not it is a golden query."""
    several = [(query_id, number) for query_id, number in rows.items() if number > 1]
    if counts.size("unknown").most > 1:
        unknown = counts.first("unknown", bounds.PROBLEMS, rows=2)
        several += [(counted.key.decode(), counted.rows) for counted in unknown]
    for query_id, number in several:
        problems.problem(
            f"{location}: query_id",
            f"{query_id!r} occurs in {count(number, 'row')} (several rows per query are averaged with --repeats)",
        )


def _report(counts: Counts, tally: dict[str, int], location: str, problems: Collector) -> None:
    """Add the problems that the workers counted."""
    if not tally["rows"] and not tally["problems"] and not problems.collected():
        problems.problem(location, "has no rows")
    described = tuple(counted.key.decode() for counted in counts.first("problem", bounds.PROBLEMS))
    problems.include(Problems(problems=described, more=tally["problems"] - len(described)))


def few_versions(versions: dict[str, list[str]], location: str, problems: Collector) -> dict[str, list[str]]:
    """Return at most ``bounds.VERSIONS`` values of each field; ``problems`` gets a warning if there are more."""
    for field, values in versions.items():
        if len(values) > bounds.VERSIONS:
            problems.warning(
                f"{location}: has more than {bounds.VERSIONS:,} values of {field}; the others are left out"
            )
    return {field: values[: bounds.VERSIONS] for field, values in versions.items()}


@contextmanager
def _errors_translated(name: str) -> Iterator[None]:
    """Turn Spark's errors about unreadable files or a failed cluster into :class:`InputError`.

    Exceptions in a worker's Python code are bugs and are raised unchanged.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        text = str(error)
        if "No module named 'ragcontract" in text or "No module named 'msgspec" in text:
            raise InputError([NOT_INSTALLED]) from error
        if isinstance(error, PythonException):
            raise
        raise InputError([f"{name}: Spark cannot read it: {_reason(text)}"]) from error


def _reason(text: str) -> str:
    """Return the most specific sentence of Spark's message, which for unreadable files is among other text."""
    match = re.search(r"\[(?:FAILED_READ_FILE|CANNOT_READ)[^\n]*", text)
    return match[0] if match else first_line(text)
