"""A result that failed, or that its tool set aside, has no score, whatever the tool wrote beside it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.process import rag_contract

ID = {"id": "q1", "input": "Who?"}


def inspect_log(**fields: Any) -> dict[str, Any]:
    sample = {**ID, "epoch": 1, "scores": {"match": {"value": "C"}}} | fields
    return {"version": 2, "status": "success", "eval": {"packages": {}}, "samples": [sample]}


def promptfoo_output(**fields: Any) -> dict[str, Any]:
    grading = {"componentResults": [{"pass": True, "score": 1, "assertion": {"metric": "match"}}]}
    result = {"vars": {"query_id": "q1"}, "namedScores": {"match": 1}, "gradingResult": grading} | fields
    return {"results": {"version": 3, "results": [result]}}


def deepeval_run(**fields: Any) -> dict[str, Any]:
    return {"testCases": [{"name": "q1", "input": "Who?", "metricsData": [{"name": "match", "score": 1} | fields]}]}


def table(**fields: Any) -> list[dict[str, Any]]:
    return [{"id": "q1", "user_input": "Who?", "match": 1.0} | fields]


def converted(tool: str, document: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    """Return the row that the command writes, and what it prints beside."""
    monkeypatch.chdir(folder)
    Path("results.json").write_text(json.dumps(document))
    named = ["--score", "match"] if tool == "table" else []
    code, out, err = rag_contract(
        "convert", "--from", tool, *named, "--results", "results.json", "--scores-out", "scores.jsonl"
    )
    assert code == 0, out + err
    return json.loads(Path("scores.jsonl").read_text()), err


@pytest.mark.parametrize(
    ("tool", "document", "reason"),
    [
        ("inspect", inspect_log(error={"message": "RuntimeError: tool crashed"}), "RuntimeError: tool crashed"),
        ("inspect", inspect_log(error={}), "failed"),
        ("inspect", inspect_log(error={"message": "crashed"}, scores={"match": {"value": "maybe"}}), "crashed"),
        ("inspect", inspect_log(invalidation={"author": "Ana", "reason": "wrong key"}), "wrong key"),
        ("inspect", inspect_log(invalidation={"author": "Ana"}), "invalidated"),
        ("promptfoo", promptfoo_output(error="API error 500", failureReason=2), "API error 500"),
        ("promptfoo", promptfoo_output(failureReason=2), "failed"),
        ("promptfoo", promptfoo_output(error="API error 500", gradingResult=None), "API error 500"),
        ("deepeval", deepeval_run(error="Timeout"), "Timeout"),
        ("deepeval", deepeval_run(error=""), "failed"),
        ("table", table(error="Timeout"), "Timeout"),
        ("table", table(error=True), "failed"),
        ("table", table(error_message="Timeout"), "Timeout"),
        ("table", table(Error={"type": "Timeout"}), "failed"),
        ("ragas", table(error="Timeout"), "Timeout"),
    ],
)
def test_a_result_that_failed_is_null_with_its_error_as_the_reason(
    tool: str, document: object, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, err = converted(tool, document, tmp_path, monkeypatch)
    assert (row["scores"], row.get("checks"), row["reasons"]) == ({"match": None}, None, {"match": reason})
    assert "not measured, and written as null: match of 1 query ('q1')" in err


@pytest.mark.parametrize(
    ("tool", "document"),
    [
        ("inspect", inspect_log(error=None, invalidation=None)),
        ("promptfoo", promptfoo_output(error="Expected 7", failureReason=1)),
        ("promptfoo", promptfoo_output(error="Expected 7")),  # of a version that gives no reason of a failure
        ("promptfoo", promptfoo_output(error="", failureReason=0)),
        ("deepeval", deepeval_run(error=None)),
        ("table", table(error=None)),
        ("table", table(error="")),
        ("table", table(error="none")),
        ("table", table(error=0.25)),
        ("ragas", table(error=None)),
        ("ragas", table(error=0.25)),
    ],
)
def test_a_result_that_did_not_fail_keeps_its_score(
    tool: str, document: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert converted(tool, document, tmp_path, monkeypatch)[0]["scores"]["match"] == 1.0


def test_a_result_that_failed_before_some_of_its_scores_is_null_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = inspect_log(error={"message": "crashed"})
    log["samples"].append({"id": "q2", "scores": {"match": {"value": "C"}, "pair": {"value": 1}}})
    monkeypatch.chdir(tmp_path)
    Path("log.json").write_text(json.dumps(log))
    code, _, err = rag_contract("convert", "--from", "inspect", "--results", "log.json", "--scores-out", "s.jsonl")
    rows = [json.loads(line) for line in Path("s.jsonl").read_text().splitlines()]
    assert (code, [row["scores"] for row in rows]) == (0, [{"match": None, "pair": None}, {"match": 1.0, "pair": 1.0}])
    assert "match of 1 query ('q1'), pair of 1 query ('q1')" in err
