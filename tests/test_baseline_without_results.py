"""A stored baseline of rows without results says nothing of the documents that were labelled since."""

import json
from pathlib import Path

import pytest

from tests.process import Ended, rag_contract

ANSWERED = {"type": "must_contain", "value": "14 days"}
DROP = "{per_query: {enforce_must_include: false}, fail_on: {mrr_drop_gt: 0.1}}"
NO_RESULTS = "baseline.json: no results of 1 query that names documents since, so its documents are not compared: 'q2'"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, *rows: dict[str, object]) -> None:
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def labelled_since(first: list[str], second: list[str], config: str = DROP, answer: str = "14 days") -> Ended:
    """Check a run that returned these documents; the baseline knows those of the first query, `a`, only."""
    labels: dict[str, object] = {"relevant_doc_ids": ["a"]}
    golden: list[dict[str, object]] = [{"id": f"q{n}", "query": f"?{n}", "rules": [ANSWERED]} for n in (1, 2)]
    answers: list[dict[str, object]] = [{"query_id": f"q{n}", "response": answer} for n in (1, 2)]
    write("golden.jsonl", golden[0] | labels, golden[1])
    write("current_run.jsonl", answers[0] | {"results": [{"doc_id": "a"}]}, answers[1])
    made = rag_contract("baseline")
    assert made.code == 0, made
    write("golden.jsonl", *(query | labels for query in golden))
    results = [{"results": [{"doc_id": doc_id} for doc_id in ids]} for ids in (first, second)]
    write("current_run.jsonl", *(answer | found for answer, found in zip(answers, results, strict=True)))
    Path("ragcontract.yml").write_text(config)
    return rag_contract("check")


def test_a_drop_is_not_hidden_by_a_query_that_was_compared_with_nothing() -> None:
    ended = labelled_since(["b", "a"], ["a"])
    assert ended.code == 1, ended
    assert "1.00 -> 0.50" in " ".join(ended.out.split()).replace("→", "->")
    assert NO_RESULTS in " ".join(ended.err.split())


def test_a_run_that_is_as_good_where_the_documents_are_known_passes() -> None:
    ended = labelled_since(["a"], ["b"])
    assert ended.code == 0, ended
    assert NO_RESULTS in " ".join(ended.err.split())


def test_a_document_that_is_missing_now_was_not_missing_in_the_baseline() -> None:
    ended = labelled_since(["a"], ["b"], "per_query: {fail_on: new}")
    assert ended.code == 1, ended
    assert "Expected a in top 5" in ended.out
    assert "not in the baseline" not in ended.out


def test_an_answer_that_was_broken_in_the_baseline_is_still_known_to_be() -> None:
    ended = labelled_since(["a"], ["a"], "per_query: {fail_on: new}", answer="No idea.")
    assert ended.code == 0, ended


def test_a_question_that_nothing_answers_is_compared_with_the_nothing_that_was_found() -> None:
    write("golden.jsonl", {"id": "q1", "query": "?1", "relevant_doc_ids": []})
    write("current_run.jsonl", {"query_id": "q1", "results": []})
    assert rag_contract("baseline").code == 0
    write("current_run.jsonl", {"query_id": "q1", "results": [{"doc_id": "a"}]})
    Path("ragcontract.yml").write_text("minimums: {overlap_at_k: 0.5}")
    ended = rag_contract("check")
    assert (ended.code, "no results" in ended.err) == (1, False), ended
