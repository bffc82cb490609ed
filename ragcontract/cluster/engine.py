"""Scores runs on a cluster, in the place of :func:`ragcontract.evaluation.scored.score_run`."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import reduce

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.storagelevel import StorageLevel

from ragcontract.cluster.collect import WHOLE, scored_run
from ragcontract.cluster.counts import FEW, Counts
from ragcontract.cluster.frames import Part, Source, first_line, names_of, parts_of
from ragcontract.cluster.workers import COUNTS, Job
from ragcontract.core.errors import InputError
from ragcontract.evaluation.scored import ScoredBaseline, ScoredRun
from ragcontract.files.problems import Diagnostics
from ragcontract.metrics.ranking import Scorer
from ragcontract.model import GoldenQuery

NOT_INSTALLED = (
    "rag-contract is not installed where Spark's workers run; install it there, or send it along: "
    "docs/beyond-one-machine.md says how"
)


class OnSpark:
    """Runs that Spark reads. The baseline is one of them, or None where it is none or a file that was stored."""

    def __init__(
        self,
        session: SparkSession,
        run: Source,
        baseline: Source | None = None,
        *,
        repeats: bool = False,
        few: int = FEW,
    ) -> None:
        """Take where the rows are, whether a query may have several, and how many ``few`` counts of a kind are."""
        self._session = session
        self._run = run
        self._baseline = baseline
        self._repeats = repeats
        self._few = few

    def score_run(
        self, golden: Mapping[str, GoldenQuery], scorer: Scorer, k: int, diagnostics: Diagnostics
    ) -> ScoredRun:
        """Score the run; golden queries without a row count as having retrieved nothing."""
        return self._scored(self._run, golden, scorer, k, diagnostics)

    def score_baseline(
        self, golden: Mapping[str, GoldenQuery], scorer: Scorer, k: int, diagnostics: Diagnostics
    ) -> ScoredBaseline | None:
        """Score the baseline, if it is a run."""
        if self._baseline is None:
            return None
        run = self._scored(self._baseline, golden, scorer, k, diagnostics)
        absent = set(run.missing)
        scores = {query_id: score for query_id, score in run.scores.items() if query_id not in absent}
        return ScoredBaseline(
            scores=scores,
            versions=run.versions,
            files=run.files,
            queries=len(scores) + len(run.unknown) + run.more_unknown,
            created_at=None,
            k=None,
            new=run.missing,
            changed=[],
            gone=run.unknown,
            latency=run.latency,
        )

    def _scored(
        self, source: Source, golden: Mapping[str, GoldenQuery], scorer: Scorer, k: int, diagnostics: Diagnostics
    ) -> ScoredRun:
        names = names_of(source)
        with _errors_told(names[0]):
            parts = parts_of(self._session, source, diagnostics)
            job = Job(golden, scorer, k)
            frame = self._counted(parts, job)
            # Several questions are asked of the counts, and the run is read but once.
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                counts = Counts(frame, whole=WHOLE, few=self._few)
                return scored_run(counts, names, job, diagnostics, repeats=self._repeats)
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
def _errors_told(name: str) -> Iterator[None]:
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
