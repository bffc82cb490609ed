"""The session that the command line works in: the one that spark-submit configures, or one of this machine's own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ragcontract.core.errors import InputError
from ragcontract.evaluation.scored import Elsewhere
from ragcontract.pipeline import Paths

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INSTALL = "install it: pip install 'rag-contract[spark]'"


@contextmanager
def on_spark(paths: Paths) -> Iterator[Elsewhere]:
    """Start a session, or take the one that is there, and give what scores the runs of ``paths`` in it.

    A session that was started is stopped at the end. Raises :class:`InputError` where none can be.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError([f"--engine spark: needs pyspark; {INSTALL}"]) from error
    was_there = SparkSession.getActiveSession() is not None
    try:
        session = SparkSession.builder.getOrCreate()
    except (PySparkException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError([f"--engine spark: Spark does not start ({reason}); is there a Java?"]) from error
    try:
        yield _engine(session, paths)
    finally:
        if not was_there:
            session.stop()


def _engine(session: "SparkSession", paths: Paths) -> Elsewhere:
    from ragcontract.cluster.python_api import engine_for

    return engine_for(session, paths.run, paths.baseline, repeats=paths.repeats)
