"""Runs that are written as Parquet."""

from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ragcontract import InputError, RunWriter
from ragcontract.core.run import VERSION_FIELDS
from ragcontract.evaluation.observations import Versions
from ragcontract.files.problems import Problems
from tests.runs.sides import read_run, side_of


def test_rows_have_a_column_for_every_field(tmp_path: Path) -> None:
    path = tmp_path / "run.parquet"
    with RunWriter(path, embedding_model="e", index_version=3) as run:
        run.write("q1", ["a", 7])
        run.write(2, [{"doc_id": "b", "score": 1, "chunk_id": 1, "metadata": {"x": None}}], latency_ms=3)
    nothing = {"score": None, "chunk_id": None, "metadata": None}
    versions = dict.fromkeys(VERSION_FIELDS) | {"embedding_model": "e", "index_version": "3"}
    assert pq.read_table(path).to_pylist() == [
        {
            "query_id": "q1",
            "results": [{"doc_id": "a"} | nothing, {"doc_id": "7"} | nothing],
            "latency_ms": None,
            **versions,
        },
        {
            "query_id": "2",
            "results": [{"doc_id": "b", "score": 1.0, "chunk_id": "1", "metadata": '{"x":null}'}],
            "latency_ms": 3.0,
            **versions,
        },
    ]
    assert read_run(path) == ([("q1", ["a", "7"]), ("2", ["b"])], Problems())
    side = side_of(path, "q1", "2")
    assert side.observed(Versions) == {"embedding_model": ["e"], "index_version": ["3"]}
    assert side.problems == Problems()


def test_a_row_group_is_written_as_soon_as_it_is_full(tmp_path: Path) -> None:
    """It is full with half a million results and rows."""
    results = [f"d{number}" for number in range(9_999)]
    sizes = []
    with RunWriter(tmp_path / "run.parquet") as run:
        for number in range(60):
            run.write(f"q{number}", results)
            sizes.append(sum(path.stat().st_size for path in tmp_path.iterdir()))
    assert [number for number, (before, after) in enumerate(pairwise(sizes), 1) if after > before] == [49]
    groups = pq.ParquetFile(tmp_path / "run.parquet").metadata
    assert [groups.row_group(group).num_rows for group in range(groups.num_row_groups)] == [50, 10]
    assert pq.read_table(tmp_path / "run.parquet")["query_id"].to_pylist() == [f"q{number}" for number in range(60)]


def test_equal_runs_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        with RunWriter(tmp_path / name) as run:
            run.write("q1", ["a"])
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def test_an_answer_is_not_written_and_never_left_out_silently(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run.parquet") as run:
        run.write("q1", ["a"])
        with pytest.raises(InputError, match=r"response: is not written to Parquet; name the file something\.jsonl"):
            run.write("q2", ["a"], response="30 days.")
