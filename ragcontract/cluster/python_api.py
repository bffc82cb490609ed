"""The Python API on a cluster: what :func:`ragcontract.check` does, with rows that Spark reads."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path as LocalPath

from pyspark.sql import DataFrame, SparkSession

from ragcontract import pipeline
from ragcontract.api import Path, named, valid_k
from ragcontract.cluster.engine import OnSpark
from ragcontract.cluster.frames import Source, names_of
from ragcontract.model import Report
from ragcontract.runs.stored import RUN_SUFFIXES

Rows = Path | Sequence[Path] | DataFrame


def check(
    session: SparkSession,
    *,
    golden: Path | Sequence[Path],
    run: Rows,
    baseline: Rows | None = None,
    config: Path | None = None,
    k: int | None = None,
    repeats: bool = False,
) -> Report:
    """Judge a run against its contract, as :func:`ragcontract.check` does, and return the report.

    ``run`` is what ``session`` can read: paths, folders and patterns of Parquet or (by their names) JSON lines, or a
    data frame with the columns of a run's rows. So is a ``baseline``, unless it is a file that ``rag-contract
    baseline`` stored. Those, the golden queries and the configuration are files of the driver. Raises
    :class:`~ragcontract.InputError` if it cannot be judged.
    """
    source, before = _source(run, "run"), None if baseline is None else _source(baseline, "baseline")
    paths = _paths(golden, source, before, config, repeats=repeats)
    engine = engine_for(session, source, before, repeats=repeats)
    return pipeline.check(paths, clock=_clock, k=valid_k(k), elsewhere=engine)


def score(
    session: SparkSession,
    *,
    golden: Path | Sequence[Path],
    run: Rows,
    config: Path | None = None,
    k: int | None = None,
    repeats: bool = False,
) -> Report:
    """Report the same numbers as :func:`check` without a baseline and without judging them: always a pass."""
    source = _source(run, "run")
    paths = _paths(golden, source, None, config, repeats=repeats)
    return pipeline.compare(paths, clock=_clock, k=valid_k(k), elsewhere=OnSpark(session, source, repeats=repeats))


def engine_for(session: SparkSession, run: Source, baseline: Source | None, *, repeats: bool) -> OnSpark:
    """Return what scores the run, and the baseline unless that is a stored file."""
    return OnSpark(session, run, None if baseline is None or _is_stored(baseline) else baseline, repeats=repeats)


def _is_stored(baseline: Source) -> bool:
    """Tell whether a baseline is one file of this machine that is no run by its name."""
    if isinstance(baseline, DataFrame) or len(baseline) > 1:
        return False
    (path,) = baseline
    return not path.lower().endswith(RUN_SUFFIXES) and (path.lower().endswith(".json") or LocalPath(path).is_file())


def _source(rows: Rows, what: str) -> Source:
    return rows if isinstance(rows, DataFrame) else named(rows, what)


def _paths(
    golden: Path | Sequence[Path], run: Source, baseline: Source | None, config: Path | None, *, repeats: bool
) -> pipeline.Paths:
    return pipeline.Paths(
        golden=named(golden, "golden"),
        run=names_of(run),
        baseline=None if baseline is None else names_of(baseline),
        config=None if config is None else os.fspath(config),
        repeats=repeats,
    )


def _clock() -> datetime:
    return datetime.now(UTC)
