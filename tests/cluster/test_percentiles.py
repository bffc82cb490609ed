"""Percentiles that are found on a cluster are those of one machine."""

import random
from array import array

import pytest
from pyspark.sql import SparkSession

from ragcontract.cluster.workers import at_rank, bits, from_bits
from ragcontract.statistics.means import nearest_rank, rank_of

pytestmark = pytest.mark.spark

CLOSE = [second + n * 2**-51 for second in (1, 2, 3) for n in range(200)]  # which differ in the last bits alone
APART = [0.0, 0.0, 1e-9, *[random.Random(5).lognormvariate(3, 1) for _ in range(500)], 1e9]


def test_it_is_the_number_at_that_rank(spark: SparkSession) -> None:
    values = CLOSE + APART
    ascending = array("d", sorted(values))
    rows = [(bits(value), values.count(value)) for value in set(values)]
    counts = spark.createDataFrame(rows, "number long, rows long").coalesce(1).cache()
    for percent, among in ((1, CLOSE), (95, APART)):
        assert nearest_rank(ascending, percent) in among
        assert from_bits(at_rank(counts, rank_of(len(values), percent))) == nearest_rank(ascending, percent)
    counts.unpersist()
