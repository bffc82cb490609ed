"""The Python API for runs on a Spark cluster: ``ragcontract.spark.check`` and ``ragcontract.spark.score``."""

from ragcontract.cluster.python_api import check, score

__all__ = ["check", "score"]
