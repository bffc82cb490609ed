"""A key or a field twice in Parquet: of its values, none is the one that somebody meant."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

GRADES = pa.map_(pa.string(), pa.float64())
TEXT = pa.string()
IDS = pa.list_(pa.string())
TWICE = [("doc1", 3.0), ("doc2", 0.0), ("doc1", 0.0)]
LEAVE = "in one object; leave one of the two values"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("current_run.jsonl"), [run("q0", "doc1"), run("q1", "doc1")])


def golden_parquet(column: str, values: list[Any], of_type: pa.DataType) -> None:
    """Write two golden rows with a column of their own."""
    columns = {"id": ["q0", "q1"], "query": ["?", "?"], "relevant_doc_ids": pa.array([["doc1"], ["doc1"]], IDS)}
    table = pa.table(columns)
    pq.write_table(table.append_column(column, pa.array(values, of_type)), "golden.parquet")


def with_a_field_twice(values: list[list[int]]) -> pa.StructArray:
    return pa.StructArray.from_arrays([pa.array(column) for column in values], names=["doc1", "doc1"])


@pytest.mark.parametrize("command", ["check", "validate", "lint"])
def test_a_map_with_a_key_twice_is_refused_with_its_row(command: str) -> None:
    golden_parquet("relevance", [[("doc1", 3.0)], TWICE], GRADES)
    ended = rag_contract(command, "--golden", "golden.parquet")
    assert (ended.code, f"golden.parquet:2: duplicate key 'doc1' {LEAVE}" in ended.err) == (2, True)
    golden_parquet("relevance", [[("doc1", 3.0)], TWICE[:2]], GRADES)
    assert rag_contract(command, "--golden", "golden.parquet").code == 0


def test_json_text_with_a_key_twice_is_refused_with_its_row() -> None:
    golden_parquet("relevance", ['{"doc1": 3}', '{"doc1": 3, "doc1": 1}'], TEXT)
    ended = rag_contract("check", "--golden", "golden.parquet")
    assert (ended.code, f"golden.parquet:2: duplicate key 'doc1' {LEAVE}" in ended.err) == (2, True)


@pytest.mark.parametrize("nested", [False, True])
def test_a_struct_with_a_field_twice_is_refused_with_its_column(*, nested: bool) -> None:
    struct: pa.Array = with_a_field_twice([[3, 3], [0, 0]])
    name = "relevance"
    if nested:
        name, struct = "metadata", pa.StructArray.from_arrays([struct], names=["inner"])
    columns = {"id": ["q0", "q1"], "query": ["?", "?"], "relevant_doc_ids": pa.array([["doc1"], ["doc1"]], IDS)}
    pq.write_table(pa.table({**columns, name: struct}), "golden.parquet")
    ended = rag_contract("check", "--golden", "golden.parquet")
    assert ended.code == 2
    assert f"golden.parquet: {name}: has two fields named 'doc1'; rename one of them" in ended.err


def test_the_scores_of_a_run_have_each_name_once() -> None:
    Path("ragcontract.yml").write_text("metrics: {faith: {from: scores}}\nminimums: {faith: 0.5}\n")
    write_jsonl(Path("golden.jsonl"), [golden("q0", "doc1")])
    results = pa.array([[{"doc_id": "doc1"}]])
    scores = pa.array([[("faith", 0.1), ("faith", 0.9)]], GRADES)
    pq.write_table(pa.table({"query_id": ["q0"], "results": results, "scores": scores}), "run.parquet")
    ended = rag_contract("check", "--run", "run.parquet")
    assert (ended.code, f"run.parquet:1: duplicate key 'faith' {LEAVE}" in ended.err) == (2, True)
    struct = pa.StructArray.from_arrays([pa.array([0.1]), pa.array([0.9])], names=["faith", "faith"])
    pq.write_table(pa.table({"query_id": ["q0"], "results": results, "scores": struct}), "run.parquet")
    ended = rag_contract("check", "--run", "run.parquet")
    assert (ended.code, "run.parquet: scores: has two fields named 'faith'" in ended.err) == (2, True)


def test_a_column_that_is_not_read_may_be_as_it_is() -> None:
    columns = {"id": ["q0", "q1"], "query": ["?", "?"], "relevant_doc_ids": pa.array([["doc1"], ["doc1"]], IDS)}
    of_my_own = with_a_field_twice([[1, 1], [2, 2]])
    pq.write_table(pa.table({**columns, "of_my_own": of_my_own}), "golden.parquet")
    assert rag_contract("check", "--golden", "golden.parquet").code == 0
