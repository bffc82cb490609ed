"""Spark source: evaluates a plan on the workers of a cluster and adds up their counts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce

from msgspec.structs import replace
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from ragcontract.cluster.collect import WHOLE, retrieved_of, side_of
from ragcontract.cluster.counts import FEW, Counts
from ragcontract.cluster.frames import Part, Rows, first_line, names_of, parts_of
from ragcontract.cluster.workers import COUNTS, Job
from ragcontract.core.errors import InputError
from ragcontract.core.rule import RowRule
from ragcontract.core.rule import names_of as names_of_rule
from ragcontract.core.run import RunRow
from ragcontract.evaluation.listed_results import Listed
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.side import Side
from ragcontract.files.problems import Collector
from ragcontract.runs.past import REFERENCES

NOT_INSTALLED = (
    "rag-contract is not installed where Spark's workers run; install it there, or send it along: "
    "docs/beyond-one-machine.md says how"
)
WITHOUT_SPARK = "and Spark judges documents and scores only; check this contract without Spark"


class OnSpark:
    """A run that Spark reads."""

    def __init__(self, session: SparkSession, rows: Rows, *, few: int = FEW) -> None:
        """Store the rows; kinds with at most ``few`` counts are collected on the driver in full."""
        self._session = session
        self._rows = rows
        self._few = few

    def evaluate(self, plan: Plan) -> Side:
        """Score the rows on the workers, and build the side from the sum of their counts."""
        if refused := not_on_spark(plan):
            raise InputError([refused])
        problems, job = Collector(), Job(replace(plan, second_pass=None))
        with self._counts(job, problems) as counts:
            return side_of(counts, names_of(self._rows), job, problems)

    def listed(self, plan: Plan) -> Listed:
        """Return the results of the listed queries, which the workers find in another pass over the rows."""
        job = Job(plan, only_listed=True)
        with self._counts(job, Collector()) as counts:
            return Listed(retrieved=retrieved_of(counts, job))

    @contextmanager
    def _counts(self, job: Job, problems: Collector) -> Iterator[Counts]:
        """Yield the sums of what the workers count; ``problems`` collects what cannot be opened."""
        with _errors_translated(names_of(self._rows)[0]):
            frame = self._counted(parts_of(self._session, self._rows, job.plan, problems), job)
            # The counts are queried several times, but the run must be read only once.
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                yield Counts(frame, whole=WHOLE, few=self._few)
            finally:
                frame.unpersist()

    def rows(self, record: type[RunRow]) -> Iterator[RunRow]:  # noqa: ARG002
        """Raise InputError: the rows stay where they are."""
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
    """Return which golden row first asks for what only one machine judges: answers, texts, tool calls and turns.

    So nothing that a judge would confirm in a second pass, or counts of it, ever has to come back from the workers.
    """
    refused = tuple(rule for rule in plan.row_rules if not rule.on_spark)
    fields = {family.switch for family in plan.families if isinstance(family.switch, str)} & set(REFERENCES)
    judged = [metric for family in plan.families for metric in family.metrics if metric.task]
    for query in plan.golden.values():
        rules = (rule.judged for rule in query.rules if isinstance(rule, RowRule))
        found = [names_of_rule(type(rule))[0] for rule in rules if isinstance(rule, refused)]
        found += [field for field in sorted(fields) if getattr(query.answer, field, None) is not None]
        if found:
            return f"{query.location}: {found[0]}: is about the answer, {WITHOUT_SPARK}"
        if said := [one for one in judged if getattr(query.answer, one.asks or "", None)]:
            return f"{query.location}: {said[0].asks}: {said[0].key} is what a judge said of texts, {WITHOUT_SPARK}"
    return None


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
    """Return the most specific sentence: for unreadable files, Spark's message has it among other text."""
    found = re.search(r"\[(?:FAILED_READ_FILE|CANNOT_READ)[^\n]*", text)
    return found[0] if found else first_line(text)
