"""Scores of other tools on a cluster: in rows and in scores files, the same numbers as on a single machine."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from ragcontract import check as check_here
from ragcontract.core.errors import InputError
from ragcontract.spark import check
from tests.builders import golden, run, write_jsonl

pytestmark = pytest.mark.spark

CONFIG = """\
metrics:
  faithfulness: {from: scores}
  toxicity: {from: scores, better: lower, scale: [0, 10]}
minimums: {faithfulness: 0.5}
maximums: {toxicity: 9}
"""
MAPS = pa.schema(
    {
        "query_id": pa.string(),
        "results": pa.list_(pa.struct({"doc_id": pa.string()})),
        "scores": pa.map_(pa.string(), pa.float64()),
    }
)


def files(folder: Path, form: str, given: list[float | None]) -> dict[str, Any]:
    """Write a contract, a run with toxicity in its rows, in JSON lines or Parquet, and a file with faithfulness."""
    ids = [f"q{number}" for number in range(len(given))]
    rows = [run(one, "doc1", scores={"toxicity": number, "other": 1.0}) for number, one in enumerate(ids)]
    path = folder / f"run.{form}"
    if form == "jsonl":
        write_jsonl(path, rows)
    elif form == "map.parquet":
        pairs = [{**row, "scores": list(row["scores"].items())} for row in rows]
        pq.write_table(pa.Table.from_pylist(pairs, MAPS), path)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    (folder / "ragcontract.yml").write_text(CONFIG)
    scores = [{"query_id": one, "scores": {"faithfulness": value}} for one, value in zip(ids, given, strict=True)]
    return {
        "golden": write_jsonl(folder / "golden.jsonl", [golden(one, "doc1") for one in ids]),
        "run": path,
        "scores": write_jsonl(folder / "scores.jsonl", scores),
        "config": folder / "ragcontract.yml",
    }


@pytest.mark.parametrize("form", ["jsonl", "map.parquet", "struct.parquet"])
def test_they_are_the_same_numbers(form: str, spark: SparkSession, tmp_path: Path) -> None:
    inputs = files(tmp_path, form, [0.1, 0.5, 0.9])
    there, here = check(spark, **inputs), check_here(**inputs)
    assert there.metrics == here.metrics
    assert there.metrics["faithfulness"].current == pytest.approx(0.5)
    assert there.metrics["toxicity"].current == 1
    said = "scores has 'other', which no metric reads; declare it under metrics in ragcontract.yml"
    assert [warning.rpartition(f"run.{form}: ")[2] for warning in there.warnings] == [said]


def test_missing_scores_and_scores_in_two_places_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    inputs = files(tmp_path, "jsonl", [0.1, None, 0.9])
    with pytest.raises(InputError, match=r"1 of 3 queries has no such score \('q1'\)"):
        check(spark, **inputs)
    write_jsonl(tmp_path / "scores.jsonl", [{"query_id": "q2", "scores": {"toxicity": 1}}])
    with pytest.raises(InputError, match=r'query "q2": scores.toxicity: .*scores.jsonl:1 has it, too'):
        check(spark, **inputs)
