"""Opens runs in Spark, from Parquet, JSON lines or a data frame, and reads only the required columns."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import to_arrow_type

from ragcontract.cluster.workers import FILE, LINE, Job, of_columns, of_lines
from ragcontract.core import bounds
from ragcontract.core.run import RunRow, row_type
from ragcontract.evaluation.plan import Plan
from ragcontract.files.json_lines import UNDECODABLE, strange_fields
from ragcontract.files.parquet import Columns
from ragcontract.files.problems import Collector
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


def _file(otherwise: str) -> Column:
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
