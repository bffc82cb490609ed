"""Rows with an error and no results: an export that failed is neither a bad retriever nor a good baseline."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import rag_contract

QUERIES = [f"q{number}" for number in range(10)]
DROP = "per_query: {enforce_must_include: false}\nfail_on: {mrr_drop_gt: 0.1}\n"
RECORD_AGAIN = "5 queries ('q0', 'q1', 'q2' and 2 more)"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def failed(query_id: str, **fields: Any) -> Row:
    return {"query_id": query_id, "results": [], "error": "503 from the vector database", **fields}


def half_failed(path: str = "base.jsonl") -> None:
    """Write a run that has five rows with an error, and five good ones."""
    write_jsonl(Path(path), [*map(failed, QUERIES[:5]), *map(run, QUERIES[5:])])


def documents(config: str = DROP) -> None:
    """Write a contract over documents, and a run that has each document at rank 3."""
    write_jsonl(Path("golden.jsonl"), map(golden, QUERIES))
    write_jsonl(Path("current_run.jsonl"), [run(query_id, "a", "b", "doc1") for query_id in QUERIES])
    Path("ragcontract.yml").write_text(config)


@pytest.mark.parametrize("config", [DROP, "per_query: {fail_on: new}\n"])
def test_a_run_that_failed_in_part_is_refused_as_the_baseline(config: str) -> None:
    documents(config)
    half_failed()
    ended = rag_contract("check", "--baseline", "base.jsonl")
    assert ended.code == 2
    assert f"base.jsonl: has rows with an error for {RECORD_AGAIN}, so it cannot be the baseline; record" in ended.err
    ended = rag_contract("baseline", "--run", "base.jsonl")
    assert (ended.code, Path("baseline.json").exists()) == (2, False)
    assert f"base.jsonl: has rows with an error for {RECORD_AGAIN}, so it cannot be a baseline; record" in ended.err


def test_a_run_that_failed_in_part_does_not_update_the_baseline_whatever_the_reason() -> None:
    documents()
    assert rag_contract("baseline").code == 0
    half_failed()
    update = ("baseline", "--run", "base.jsonl", "--update", "--accept-regressions", "a new index")
    assert (rag_contract(*update).code, rag_contract("baseline", "--run", "base.jsonl", "--force").code) == (2, 2)


def test_one_failed_row_among_several_good_runs_or_repeats_is_enough() -> None:
    documents()
    half_failed()
    both = ("--run", "base.jsonl", "--run", "current_run.jsonl")
    assert rag_contract("baseline", *both).code == 2
    assert rag_contract("baseline", *both, "--repeats").code == 2


def test_a_failed_row_of_parquet_is_found() -> None:
    documents()
    rows = [{"error": None, **run(query_id)} for query_id in QUERIES[1:]]
    pq.write_table(pa.Table.from_pylist([*rows, failed("q0", results=[])]), "base.parquet")
    ended = rag_contract("check", "--baseline", "base.parquet")
    assert (ended.code, "an error for 1 query ('q0')" in ended.err) == (2, True)


def test_a_baseline_may_lack_the_rows_that_failed() -> None:
    documents()
    write_jsonl(Path("base.jsonl"), map(run, QUERIES[5:]))
    assert rag_contract("check", "--baseline", "base.jsonl").code == 1


@pytest.mark.parametrize("error", [None, "", False])
def test_an_empty_error_is_none(error: object) -> None:
    documents("per_query: {enforce_must_include: false}\n")
    write_jsonl(Path("base.jsonl"), [failed(query_id, error=error) for query_id in QUERIES])
    assert rag_contract("check", "--baseline", "base.jsonl")[::2] == (0, "")
    assert rag_contract("check", "--run", "base.jsonl")[::2] == (0, "")


@pytest.mark.parametrize("error", ["503", {"code": 503}, 503, True])
def test_rows_of_the_run_with_an_error_are_a_warning(error: object) -> None:
    documents("per_query: {enforce_must_include: false}\n")
    write_jsonl(Path("current_run.jsonl"), [failed("q0", error=error), *map(run, QUERIES[1:])])
    ended = rag_contract("check")
    assert ended.code == 0
    why = (
        "has rows with an error for 1 query ('q0'), which count as if nothing was found or answered; record them again"
    )
    assert f"current_run.jsonl: {why}" in ended.err
    assert why in Path("report.md").read_text()


def test_a_query_that_nothing_answers_is_warned_about() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2") | {"relevant_doc_ids": []}])
    write_jsonl(Path("current_run.jsonl"), [run("q1"), failed("q2")])
    ended = rag_contract("check")
    assert (ended.code, "an error for 1 query ('q2')" in ended.err) == (0, True)


def test_rules_that_are_broken_say_it_already() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2")])
    write_jsonl(Path("current_run.jsonl"), [run("q1"), failed("q2")])
    ended = rag_contract("check")
    assert (ended.code, "with an error" in ended.err) == (1, False)
    Path("ragcontract.yml").write_text("per_query: {fail_on: new}\n")
    write_jsonl(Path("base.jsonl"), [run("q1"), run("q2", "other")])
    ended = rag_contract("check", "--baseline", "base.jsonl")
    assert (ended.code, "with an error for 1 query ('q2')" in ended.err) == (0, True)


@pytest.mark.parametrize(
    ("asked", "config"),
    [
        ({"reference": "thirty days"}, "fail_on: {rouge_l_drop_gt: 0.1}\n"),
        ({"rules": [{"type": "must_contain", "value": "thirty"}]}, "per_query: {fail_on: new}\n"),
    ],
)
@pytest.mark.parametrize("results", [[], [{"doc_id": "doc1"}]])
def test_an_answer_that_failed_is_compared_with_nothing(asked: Row, config: str, results: list[Row]) -> None:
    write_jsonl(Path("golden.jsonl"), [golden(query_id, **asked) for query_id in QUERIES])
    Path("ragcontract.yml").write_text(
        f"per_query: {{enforce_must_include: false}}\n{config}" if "drop" in config else config
    )
    rows = [run(query_id, response="thirty days") for query_id in QUERIES]
    write_jsonl(Path("current_run.jsonl"), rows)
    half = [failed(query_id, response=None, results=results) for query_id in QUERIES[:5]]
    write_jsonl(Path("base.jsonl"), [*half, *rows[5:]])
    for argv in (("check", "--baseline", "base.jsonl"), ("baseline", "--run", "base.jsonl")):
        ended = rag_contract(*argv)
        assert (ended.code, RECORD_AGAIN in ended.err) == (2, True)


def test_results_may_stay_where_only_the_answer_failed_and_is_not_compared() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1"), golden("q2", reference="thirty days")])
    Path("ragcontract.yml").write_text("fail_on: {rouge_l_drop_gt: 0.1, mrr_drop_gt: 0.1}\n")
    for path in ("base.jsonl", "current_run.jsonl"):
        write_jsonl(Path(path), [run("q1", error="429"), run("q2", response="thirty days")])
    assert rag_contract("check", "--baseline", "base.jsonl")[::2] == (0, "")
    assert rag_contract("baseline").code == 0
