"""A row without `results` where the contract names documents: nothing that is missing passes."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract import InputError, check
from tests.builders import Row, golden, run, write_jsonl
from tests.process import rag_contract

ANSWER = {"query_id": "q1", "response": "Hello."}
SAID = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
TALK = {"query_id": "q1", "messages": SAID}
WRITTEN = {"id": "q1", "query": "Hi", "answer_must_include": ["Hello"], "forbidden_doc_ids": ["secret"]}
SPOKEN = {
    "id": "q1",
    "query": "Hi",
    "turns": [{"query": "Hi", "answer_must_include": ["Hello"]}],
    "forbidden_doc_ids": ["secret"],
}
OF_ANSWERS = {"id": "q2", "query": "Bye", "answer_must_include": ["Bye"]}
OTHER = {"query_id": "q2", "response": "Bye."}
ADVICE = 'is missing, and query "q1" names documents; export what was retrieved, [] where nothing was'


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(*golden_rows: Row, rows: list[Row]) -> None:
    write_jsonl(Path("golden.jsonl"), golden_rows)
    write_jsonl(Path("current_run.jsonl"), rows)


@pytest.mark.parametrize(("asked", "answer"), [(WRITTEN, ANSWER), (SPOKEN, TALK)], ids=["an answer", "turns"])
def test_a_row_that_could_have_forbidden_documents_needs_results(asked: Row, answer: Row) -> None:
    files(asked, rows=[answer])
    ended = rag_contract("check")
    assert (ended.code, "current_run.jsonl:1: results: is missing" in ended.err) == (2, True)
    files(asked, rows=[answer | {"results": None}])
    ended = rag_contract("check")
    assert (ended.code, "current_run.jsonl:1: results: expected" in ended.err) == (2, True)
    for doc_ids, code in (([], 0), (["other"], 0), (["secret"], 1)):
        files(asked, rows=[answer | {"results": [{"doc_id": doc_id} for doc_id in doc_ids]}])
        assert rag_contract("check").code == code


def test_beside_queries_without_documents_the_row_says_which_query_names_some() -> None:
    files(WRITTEN, OF_ANSWERS, rows=[OTHER, ANSWER])
    ended = rag_contract("check")
    assert (ended.code, f"current_run.jsonl:2: results: {ADVICE}" in ended.err) == (2, True)
    files(WRITTEN | {"forbidden_doc_ids": []}, OF_ANSWERS, rows=[OTHER, ANSWER])
    assert rag_contract("check").code == 0


def test_null_in_parquet_is_no_list_of_results() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    files(WRITTEN, OF_ANSWERS, rows=[])
    results = arrow.list_(arrow.struct([("doc_id", arrow.string())]))
    schema = arrow.schema([("query_id", arrow.string()), ("response", arrow.string()), ("results", results)])
    rows = [OTHER, ANSWER | {"results": None}]
    parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), "run.parquet")
    ended = rag_contract("check", "--run", "run.parquet")
    assert (ended.code, f"run.parquet:2: results: {ADVICE}" in ended.err) == (2, True)


@pytest.mark.parametrize("given", [{"response": "Hello."}, {"response": "Hello.", "results": None}])
def test_a_run_in_memory_needs_results_too(given: dict[str, Any]) -> None:
    files(WRITTEN, OF_ANSWERS, rows=[])
    with pytest.raises(InputError, match="results"):
        check(golden="golden.jsonl", run={"q1": given, "q2": {"response": "Bye."}})


def test_a_good_run_and_a_recording_need_results_too() -> None:
    files(WRITTEN, OF_ANSWERS, rows=[ANSWER | {"results": []}, OTHER])
    write_jsonl(Path("good.jsonl"), [ANSWER, OTHER])
    ended = rag_contract("check", "--baseline", "good.jsonl")
    assert (ended.code, f"good.jsonl:1: results: {ADVICE}" in ended.err) == (2, True)
    Path("app.py").write_text("def answer(question):\n    return {'response': 'Hello. Bye.'}\n")
    ended = rag_contract("record", "app.py:answer", "--out", "current_run.jsonl")
    assert "1 row without `results`, although golden queries name documents" in ended.err
    assert rag_contract("check").code == 2


def test_all_rows_are_judged_where_a_query_only_forbids_documents() -> None:
    files(WRITTEN, golden("q3", "doc3"), rows=[ANSWER | {"results": []}, run("q3", "doc3")])
    assert rag_contract("check").code == 0
    files(WRITTEN, golden("q3", "doc3"), rows=[ANSWER, run("q3", "doc3")])
    assert rag_contract("check").code == 2
