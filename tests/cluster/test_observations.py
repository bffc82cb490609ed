"""An observation is a class and a line; it counts the same on one machine, of several good runs, and on a cluster."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ragcontract.cluster.spark_source import OnSpark
from ragcontract.evaluation.observations import OBSERVATIONS
from ragcontract.evaluation.plan import Plan
from ragcontract.evaluation.scoring import Observation, Scored
from ragcontract.evaluation.source import GoodRuns, Local
from ragcontract.runs.readers import open_run
from tests.builders import Row, run, write_jsonl
from tests.records import query
from tests.runs.sides import plan_of

pytestmark = pytest.mark.spark


class WithoutScore(Observation[float | None]):
    """The share of the results that have no score."""

    def note(self, scored: Scored) -> None:
        for row in scored.rows:
            self.counts["results",] += len(row.results)
            self.counts["without",] += sum(result.score is None for result in row.results)

    def result(self) -> float | None:
        results = self.counts["results",]
        return self.counts["without",] / results if results else None


WANTED: dict[type[Observation[float | None]], Callable[[Plan], bool]] = {WithoutScore: lambda _: True}


def test_a_new_observation_needs_a_class_and_a_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragcontract.evaluation.observations.OBSERVATIONS", OBSERVATIONS | WANTED)
    ids = [f"q{number}" for number in range(40)]
    rows: list[Row] = [
        run(query_id) | {"results": [{"doc_id": "a", "score": 0.5}, {"doc_id": "b"}, {"doc_id": "c"}]}
        for query_id in ids
    ]
    write_jsonl(tmp_path / "run.jsonl", rows[:25])
    write_jsonl(tmp_path / "more.jsonl", rows[25:])
    plan = plan_of([query(query_id, "a") for query_id in ids])
    files = [str(tmp_path / name) for name in ("run.jsonl", "more.jsonl")]
    for source in (Local(open_run(files)), GoodRuns(open_run(files)), OnSpark(spark, files)):
        assert source.evaluate(plan).observed(WithoutScore) == pytest.approx(2 / 3)
