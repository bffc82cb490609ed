"""Runs that live on a cluster: the contract is read here, the rows are scored by Spark, the numbers are the same."""

from ragcontract.spark.api import check, score

__all__ = ["check", "score"]
