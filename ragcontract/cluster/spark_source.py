"""Spark as a source: carries out a plan on a cluster's workers, where the rows are, and adds up what they count."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from ragcontract.cluster.collect import WHOLE, side_of
from ragcontract.cluster.counts import FEW, Counts
from ragcontract.cluster.frames import Part, Rows, first_line, names_of, parts_of
from ragcontract.cluster.workers import COUNTS, Job
from ragcontract.core.errors import InputError
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector

NOT_INSTALLED = (
    "rag-contract is not installed where Spark's workers run; install it there, or send it along: "
    "docs/beyond-one-machine.md says how"
)


class OnSpark:
    """A run that Spark reads."""

    def __init__(self, session: SparkSession, rows: Rows, *, few: int = FEW) -> None:
        """Take the rows, and how many ``few`` counts of a kind are: so many are brought to the driver at once."""
        self._session = session
        self._rows = rows
        self._few = few

    def evaluate(self, plan: Plan) -> Side:
        """Score the rows on the workers, and add up what they count."""
        names = names_of(self._rows)
        problems = Collector()
        with _errors_translated(names[0]):
            parts = parts_of(self._session, self._rows, plan, problems)
            job = Job(plan)
            frame = self._counted(parts, job)
            # Several questions are asked of the counts, and the run is read but once.
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                return side_of(Counts(frame, whole=WHOLE, few=self._few), names, job, problems)
            finally:
                frame.unpersist()

    def _counted(self, parts: list[Part], job: Job) -> DataFrame:
        """Return the counts of all workers, added up by what they count.

        A worker adds up its own first, so a query that most rows are about is but a few rows of each worker here. They
        are all that is moved. Nothing but the rows says what is counted: what a lost worker had done, another does.
        """
        held = self._session.sparkContext.broadcast(job)

        def counted(part: Part) -> DataFrame:
            work = part.work
            return part.rows.mapInArrow(lambda batches: work(batches, held.value), COUNTS)

        if not parts:
            return self._session.createDataFrame([], COUNTS)
        everything = reduce(DataFrame.unionAll, map(counted, parts))
        keys = ("kind", "number", "key")
        # A held frame keeps the session's hundreds of parts even where the run has few.
        several = min(
            sum(part.rows.rdd.getNumPartitions() for part in parts),
            int(self._session.conf.get("spark.sql.shuffle.partitions") or 1),
        )
        added_up = everything.repartition(max(1, several), *keys).groupBy(*keys).sum("rows")
        return added_up.withColumnRenamed("sum(rows)", "rows")


@contextmanager
def _errors_translated(name: str) -> Iterator[None]:
    """Turn what Spark says of files that it cannot read, or of a cluster that gave up, into :class:`InputError`.

    An exception in a worker's Python is a bug, and goes on.
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
    """Return the sentence that says most: of a file that cannot be read Spark speaks within a longer story."""
    found = re.search(r"\[(?:FAILED_READ_FILE|CANNOT_READ)[^\n]*", text)
    return found[0] if found else first_line(text)
