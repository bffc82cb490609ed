"""Scores in the rows of a run that no metric reads do not pass in silence."""

import json
from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract

ADVICE = "which no metric reads; declare it under metrics in ragcontract.yml"
BAD = {"rouge_l": 0.1, "faithfulness": 0.05}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1", reference="thirty days"), golden("q2")])
    Path("ragcontract.yml").write_text("minimums: {rouge_l: 0.5}\n")


def checked(scores: object) -> tuple[int, str]:
    """Check a run whose first row has scores; return the exit code and what was printed beside the result."""
    write_jsonl(Path("current_run.jsonl"), [run("q1", response="thirty days", scores=scores), run("q2")])
    ended = rag_contract("check")
    return ended.code, ended.err


def test_scores_are_named_where_no_metric_is_a_score() -> None:
    code, err = checked(BAD)
    warning = f"current_run.jsonl:1: scores has 'rouge_l', 'faithfulness', {ADVICE}"
    assert (code, warning in err) == (0, True), err
    assert warning in json.loads(Path("report.json").read_text())["warnings"]


def test_scores_and_failed_checks_are_both_named() -> None:
    write_jsonl(Path("current_run.jsonl"), [run("q1", scores=BAD, checks={"pii": False}), run("q2")])
    err = rag_contract("check").err
    assert "scores has 'rouge_l', 'faithfulness'" in err
    assert "checks has 'pii', which failed" in err


def test_scores_are_named_once_where_all_rows_have_them() -> None:
    rows = [run("q1", response="thirty days", scores=BAD), run("q2", scores=BAD)]
    write_jsonl(Path("current_run.jsonl"), rows)
    assert rag_contract("check").err.count(ADVICE) == 1


def test_the_score_that_is_declared_is_not_named() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", tags=["answers"]), golden("q2")])
    Path("ragcontract.yml").write_text("metrics: {faithfulness: {from: scores, tags: [answers]}}\n")
    code, err = checked(BAD)
    assert (code, f"current_run.jsonl: scores has 'rouge_l', {ADVICE}" in err) == (0, True), err
    assert "'faithfulness'" not in err


@pytest.mark.parametrize("scores", [None, {}])
def test_rows_without_scores_need_no_warning(scores: object) -> None:
    assert checked(scores) == (0, "")
