"""The Spark session of the command line: the one that spark-submit configures, or a new local one."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ragcontract.core.errors import InputError
from ragcontract.evaluation.source import Source

INSTALL = "install it: pip install 'rag-contract[spark]'"


@contextmanager
def on_spark(run: Sequence[str], baseline: Sequence[str] | None) -> Iterator[tuple[Source, Source | None]]:
    """Yield the sources of the run and the baseline in the active Spark session or a new one.

    A new session is stopped at the end. Raises :class:`InputError` if none can be started.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        from ragcontract.cluster.python_api import source_of  # needs an optional dependency
    except ImportError as error:
        raise InputError([f"--engine spark: needs pyspark; {INSTALL}"]) from error
    was_there = SparkSession.getActiveSession() is not None
    try:
        session = SparkSession.builder.getOrCreate()
    except (PySparkException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"--engine spark: Spark does not start ({reason}); is Java installed?"]) from error
    try:
        yield source_of(session, run), None if baseline is None else source_of(session, baseline, may_be_stored=True)
    finally:
        if not was_there:
            session.stop()
