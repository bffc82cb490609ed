"""What holds where there is nothing to judge: no call, no row. The pages on rules and on files say the same."""

import json
from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("metrics", "code"),
    [("[tool_precision]", 0), ("[tool_f1]", 1), ("[tool_recall]", 1), ("[tool_precision, tool_f1]", 2)],
)
def test_a_composite_has_no_part_in_a_query_whose_only_metric_is_not_defined(metrics: str, code: int) -> None:
    asked = {"id": "q1", "query": "Refund me.", "reference_tool_calls": [{"name": "refund"}]}
    write_jsonl(Path("golden.jsonl"), [asked])
    write_jsonl(Path("current_run.jsonl"), [{"query_id": "q1", "tool_calls": []}])
    Path("ragcontract.yml").write_text(f"answers: {{composite: {{metrics: {metrics}, minimum: 0.8}}}}\n")
    ended = rag_contract("check")
    assert ended.code == code
    if code == 2:
        assert 'query "q1" has no tool_precision, which composite needs' in ended.err


def test_a_query_without_a_row_that_only_forbids_documents_holds_where_missing_queries_are_zero() -> None:
    forbids = {"relevant_doc_ids": [], "forbidden_doc_ids": ["secret"]}
    write_jsonl(Path("golden.jsonl"), [golden("q1") | forbids, golden("q2")])
    write_jsonl(Path("current_run.jsonl"), [run("q2")])
    assert rag_contract("check").code == 2
    Path("ragcontract.yml").write_text("missing_queries: zero\nminimums: {pass_rate: 1}\n")
    ended = rag_contract("check")
    assert (ended.code, "no row for 1 golden query, scored 0: 'q1'" in ended.err) == (0, True)
    assert json.loads(Path("report.json").read_text())["verdict"] == "pass"
    write_jsonl(Path("golden.jsonl"), [golden("q1", forbidden_doc_ids=["secret"]), golden("q2")])
    assert rag_contract("check").code == 1


def test_an_error_without_results_is_refused_where_documents_are_only_forbidden() -> None:
    forbids = {"relevant_doc_ids": [], "forbidden_doc_ids": ["secret"]}
    write_jsonl(Path("golden.jsonl"), [golden("q1") | forbids, golden("q2")])
    failed = {"query_id": "q1", "results": [], "error": "timeout"}
    write_jsonl(Path("current_run.jsonl"), [failed, run("q2")])
    ended = rag_contract("check")
    assert ended.code == 2
    assert "current_run.jsonl:1: error: leaves unknown what would have been retrieved, and the query" in ended.err
    for row, code in (
        ({**failed, "error": None}, 0),  # nothing was found
        (run("q1", "other", error="timeout"), 0),  # the answer failed, and not the retrieval
        (run("q1", "secret", error="timeout"), 1),
    ):
        write_jsonl(Path("current_run.jsonl"), [row, run("q2")])
        assert rag_contract("check").code == code
    write_jsonl(Path("golden.jsonl"), [golden("q1", rules=[{"type": "must_not_refuse"}]) | forbids, golden("q2")])
    write_jsonl(Path("current_run.jsonl"), [failed, run("q2")])
    assert rag_contract("check").code == 1  # the answer failed, which a rule about it says
