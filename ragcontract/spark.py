"""The Python API for runs that a Spark cluster reads: ``ragcontract.spark.check`` and ``ragcontract.spark.score``."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path as LocalPath

from pyspark.sql import DataFrame, SparkSession

from ragcontract import pipeline
from ragcontract.api import Report, inputs_of, named
from ragcontract.cluster.spark_source import OnSpark, Rows
from ragcontract.core.ids import Path
from ragcontract.evaluation.past import NOT_ASKED
from ragcontract.evaluation.source import Local, Source
from ragcontract.runs.readers import is_run, open_stored

RunOnCluster = Path | Sequence[Path] | DataFrame


def check(
    session: SparkSession,
    *,
    golden: Path | Sequence[Path],
    run: RunOnCluster,
    baseline: RunOnCluster | None = None,
    scores: Path | Sequence[Path] = (),
    config: Path | None = None,
    k: int | None = None,
    tags: str | Sequence[str] = (),
    repeats: bool = False,
) -> Report:
    """Check a run against its contract, like :func:`ragcontract.check`, and return the report.

    ``run`` is anything that ``session`` can read: paths, folders and patterns of Parquet or (by their names) JSON
    lines, or a data frame with the columns of a run row. So is ``baseline``, unless it is a file that ``rag-contract
    baseline`` stored. Stored baselines, scores files, the golden queries and the configuration are read from the
    driver's file system. With ``tags``, only the queries with one of them and the limits of these tags are checked.
    Raises :class:`~ragcontract.InputError` if the input cannot be evaluated.
    """
    inputs = inputs_of(
        golden=golden,
        run=source_of(session, _rows(run, "run")),
        baseline=None if baseline is None else source_of(session, _rows(baseline, "baseline"), may_be_stored=True),
        scores=scores,
        config=config,
        k=k,
        tags=tags,
        repeats=repeats,
        past=NOT_ASKED,
    )
    return Report.of(pipeline.check(inputs, now=datetime.now(UTC)).report)


def score(
    session: SparkSession,
    *,
    golden: Path | Sequence[Path],
    run: RunOnCluster,
    scores: Path | Sequence[Path] = (),
    config: Path | None = None,
    k: int | None = None,
    repeats: bool = False,
) -> Report:
    """Return the metrics of :func:`check`, without a baseline, rules or limits; the verdict is always a pass."""
    source = source_of(session, _rows(run, "run"))
    inputs = inputs_of(golden=golden, run=source, scores=scores, config=config, k=k, repeats=repeats, decides=False)
    return Report.of(pipeline.check(inputs, now=datetime.now(UTC)).report)


def source_of(session: SparkSession, rows: Rows, *, may_be_stored: bool = False) -> Source:
    """Return the source of a side; a baseline may be a stored file on the driver."""
    if may_be_stored and not isinstance(rows, DataFrame) and len(rows) == 1 and _is_stored(rows[0]):
        return Local(open_stored(rows[0]))
    return OnSpark(session, rows)


def _is_stored(path: str) -> bool:
    return not is_run(path) and (path.lower().endswith(".json") or LocalPath(path).is_file())


def _rows(run: RunOnCluster, what: str) -> Rows:
    return run if isinstance(run, DataFrame) else named(run, what)


__all__ = ["check", "score"]
