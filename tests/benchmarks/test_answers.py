from pathlib import Path

import pytest

from benchmarks import answers
from tests.process import rag_contract


def test_no_rule_is_broken_and_most_references_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(answers.make(200, tmp_path))
    done = rag_contract(
        "check", "--golden", "golden.jsonl", "--run", "current_run.jsonl", "--config", "ragcontract.yml"
    )
    assert "PASS  nothing broken in 200 queries and 1 gate" in done.out, done
    for read in (answers.read, answers.decode):
        read("golden.jsonl", "current_run.jsonl")
