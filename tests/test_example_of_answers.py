"""The example of a contract over answers: what its two prompts say, and what `examples/README.md` says of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scripts import docs
from tests.process import Ended, rag_contract, spawn

EXAMPLE = docs.ROOT / "examples" / "answers"
README = (docs.ROOT / "examples" / "README.md").read_text().partition("## A contract over answers\n")[2]
NAMES = ("golden", "config", "baseline")
FILES = ("golden.jsonl", "ragcontract.yml", "baseline.json")
CONTRACT = [part for name, file in zip(NAMES, FILES, strict=True) for part in (f"--{name}", str(EXAMPLE / file))]


def check(prompt: str, folder: Path) -> tuple[Ended, dict[str, Any]]:
    """Answer with a prompt, and check the run."""
    recorded = spawn("record", f"{EXAMPLE / 'assistant.py'}:{prompt}", "--golden", CONTRACT[1], cwd=folder)
    assert recorded.code == 0, recorded.err
    assert recorded.out == "recorded 14 answers in current_run.jsonl\n"
    ended = rag_contract("check", *CONTRACT)
    return ended, json.loads((folder / "report.json").read_bytes())


def test_the_careful_prompt_passes_although_one_answer_is_wrong_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, report = check("careful", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    assert "KNOWN 1 already in the baseline: startup-discount" in ended.out
    assert [gate["status"] for gate in report["gates"]] == ["pass"] * 4


def test_the_helpful_prompt_breaks_what_the_readme_says_and_no_metric_of_retrieval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended, report = check("helpful", tmp_path)
    assert (ended.code, ended.err) == (1, "")
    rows = re.findall(r"^\| `(.*?)` \|.*\| (.*) \|$", README, re.MULTILINE)
    said = {query: set(re.findall("`(.*?)`", rules)) for query, rules in rows}
    broken = {
        query["id"]: {one["rule"] for one in query["violations"]}
        for query in report["queries"]
        if query["status"] == "fail"
    }
    assert broken == said
    metrics = {key: (metric["baseline"], metric["current"]) for key, metric in report["metrics"].items()}
    assert metrics["mrr_at_3"] == metrics["recall_at_3"] == metrics["context_recall_text"] == (1, 1)
    before, after = metrics["false_answer_rate"]
    assert f"rises from {before:.2f} to {after:.2f}" in README
    pass_rate = float(re.findall(r"^Pass rate +(\S+) ", ended.out, re.MULTILINE)[0])
    assert f"falls to {pass_rate:.2f}, so two limits break" in README
    assert sum(gate["status"] == "fail" for gate in report["gates"]) == 2


def test_the_contract_has_no_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rag_contract("lint", *CONTRACT[:4], "--without-run", "--strict").out.startswith("no findings")
