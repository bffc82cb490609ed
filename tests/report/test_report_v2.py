"""The report with run_eval_rag's schema version 2, from the files of a check."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

CONTEXT_TOO_LONG = {"status_code": 400, "content_type": "application/json", "response_snippet": "too many tokens"}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four cases: one passes, one lacks a phrase, one has no answer, one is only a warning."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(
        tmp_path / "golden.jsonl",
        [
            golden("fine", "doc_a", answer_must_include=["30 days"], tags=["refunds"]),
            golden("lacks", "doc_b", answer_must_include=["receipt", "original packaging"]),
            golden("down", "doc_c", answer_must_include=["two years"]),
            golden("minor", "doc_d", answer_must_include=["blue"], severity="warn"),
        ],
    )
    write_run(
        tmp_path,
        run("down", "doc_c", response=None, error="HTTP 400", error_detail=CONTEXT_TOO_LONG, context_chars=12000),
        run("lacks", "doc_b", "doc_x", response="Keep the receipt.", context_chars=800),
        {"query_id": "fine", "results": [{"doc_id": "doc_a", "score": 0.91}], "response": "You have 30 days."},
        run("minor", "doc_d", response="It is red."),
    )
    return tmp_path


def write_run(folder: Path, *rows: dict[str, Any]) -> None:
    write_jsonl(folder / "current_run.jsonl", [{**row, "llm_model": "m-7"} for row in rows])


def written(*options: str, code: int = 1) -> dict[str, Any]:
    ended = rag_contract("check", "--report-v2", "v2.json", *options)
    assert ended.code == code, ended.out + ended.err
    found: dict[str, Any] = json.loads(Path("v2.json").read_text())
    return found


def test_each_case_is_an_item_with_a_severity_and_the_worst_come_first() -> None:
    found = written()
    assert found["schema_version"] == 2
    assert (found["tool"], found["root"]) == ("rag-contract", "")
    assert [(item["title"], item["status_label"], item["severity_level"]) for item in found["items"]] == [
        ("down", "ERROR", 4),
        ("lacks", "FAIL", 3),
        ("minor", "WARN", 2),
        ("fine", "PASS", 0),
    ]
    assert found["items"][1]["message"] == (
        'answer_must_include: expected original packaging; found: "Keep the receipt."'
    )
    assert found["items"][1]["loc"] == "golden.jsonl:2"


def test_the_summary_counts_the_labels_and_has_the_code_of_the_worst() -> None:
    assert written()["summary"] == {
        "overall_status_label": "ERROR",
        "overall_rc": 3,
        "max_severity_level": 4,
        "counts": {"PASS": 1, "INFO": 0, "WARN": 1, "FAIL": 1, "ERROR": 1},
        "total_items": 4,
    }


def test_cases_say_what_is_missing_and_what_the_model_got() -> None:
    data = written()["data"]
    assert data["k"] == 5
    assert data["llm"] == {"model_field": "m-7"}
    assert data["metrics"] == {"cases": 4, "passed_cases": 1, "pass_rate": 0.25}
    down, lacks, fine, minor = data["cases"]
    assert (down["llm_call_ok"], down["error"], down["error_detail"]) == (False, "HTTP 400", CONTEXT_TOO_LONG)
    assert (down["passed"], down["context_chars"], down["answer"]) == (False, 12000, "")
    assert (lacks["must_include"], lacks["missing"]) == (["receipt", "original packaging"], ["original packaging"])
    assert [one["source"] for one in lacks["topk"]] == ["doc_b", "doc_x"]
    assert fine["topk"] == [{"rank": 1, "source": "doc_a", "distance": None, "score": 0.91}]
    assert (fine["passed"], fine["llm_call_ok"], fine["answer"]) == (True, True, "You have 30 days.")
    assert fine["tags"] == ["refunds"]
    assert (minor["passed"], minor["missing"]) == (False, ["blue"])


def test_a_run_that_keeps_the_contract_has_the_code_0(workspace: Path) -> None:
    write_jsonl(workspace / "golden.jsonl", [golden("fine", "doc_a", answer_must_include=["30 days"])])
    write_run(workspace, run("fine", "doc_a", response="You have 30 days."))
    summary = written(code=0)["summary"]
    assert (summary["overall_status_label"], summary["overall_rc"]) == ("PASS", 0)


def test_a_broken_limit_fails_although_every_case_passes(workspace: Path) -> None:
    write_jsonl(workspace / "golden.jsonl", [golden("fine", "doc_a", must_include_any=True)])
    write_run(workspace, run("fine", "x", "doc_a"))
    (workspace / "ragcontract.yml").write_text("minimums: {mrr_at_k: 0.9}\n")
    found = written()
    assert [(item["title"], item["status_label"]) for item in found["items"]] == [
        ("minimums.mrr_at_k", "FAIL"),
        ("fine", "PASS"),
    ]
    assert found["summary"]["overall_rc"] == 2
    assert found["data"]["cases"][0]["llm_call_ok"] is None, "a run of documents says nothing of an answer"


def test_a_waived_case_is_no_failure_and_did_not_pass(workspace: Path) -> None:
    waivers = "".join(
        f"  - {{query: {name}, reason: known, owner: me, expires: 2999-01-01}}\n" for name in ("lacks", "down", "minor")
    )
    (workspace / "ragcontract.yml").write_text(f"waivers:\n{waivers}")
    found = written(code=0)
    assert found["summary"]["counts"] == {"PASS": 1, "INFO": 3, "WARN": 0, "FAIL": 0, "ERROR": 0}
    assert found["data"]["metrics"]["pass_rate"] == 0.25


def test_a_query_without_a_row_has_no_answer(workspace: Path) -> None:
    (workspace / "ragcontract.yml").write_text("missing_queries: zero\n")
    write_run(workspace, run("fine", "doc_a", response="You have 30 days."))
    cases = {case["id"]: case for case in written()["data"]["cases"]}
    assert (cases["lacks"]["llm_call_ok"], cases["lacks"]["topk"]) == (False, [])
    assert cases["lacks"]["missing"] == ["receipt", "original packaging"]


def test_no_text_of_an_answer_is_written_where_answers_are_left_out() -> None:
    text = json.dumps(written("--no-answers"))
    assert not [said for said in ("You have", "Keep the", "It is", "HTTP 400", "too many tokens") if said in text]
    assert written("--no-answers")["data"]["cases"][0]["missing"] == ["two years"], "the contract may be shown"


def test_input_that_cannot_be_judged_is_an_error(workspace: Path) -> None:
    found = written(code=1)
    assert found["summary"]["overall_rc"] == 3
    write_run(workspace, run("fine"))
    ended = rag_contract("check", "--report-v2", "v2.json")
    assert ended.code == 2
    [item] = json.loads(Path("v2.json").read_text())["items"]
    assert (item["title"], item["status_label"]) == ("input", "ERROR"), (
        "as with all reports, an earlier one is replaced"
    )


def test_a_cluster_has_no_answers_to_list() -> None:
    ended = rag_contract("check", "--report-v2", "v2.json", "--engine", "spark")
    assert ended.code == 2
    assert "--report-v2 lists every answer, so it needs --engine local" in ended.err
