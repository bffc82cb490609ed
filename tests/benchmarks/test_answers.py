import sys
from pathlib import Path

import pytest

from benchmarks import answers
from tests.process import rag_contract


def test_the_run_of_many_rows_a_query_is_longer_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "REPEATED", 20)
    monkeypatch.chdir(tmp_path)  # where the reports are written
    made = answers.repeated(tmp_path)
    commands = answers.repeated_commands(made, Path(sys.executable).parent, {})
    sizes = []
    for command in commands.values():
        _, *check = command.arguments
        done = rag_contract(*check)
        assert "PASS  20 queries and 1 limit hold" in done.out, done
        sizes.append(Path(check[check.index("--run") + 1]).stat().st_size)
    assert sizes[1] == 16 * sizes[0]


def test_no_rule_is_broken_and_most_references_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(answers.make(200, tmp_path))
    done = rag_contract(
        "check", "--golden", "golden.jsonl", "--run", "current_run.jsonl", "--config", "ragcontract.yml"
    )
    assert "PASS  200 queries and 1 limit hold" in done.out, done
    for read in (answers.read, answers.decode):
        read("golden.jsonl", "current_run.jsonl")
