"""What is wrong with a contract for the metrics that it asks for, as a check says it."""

import sys
from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import Ended, rag_contract

JARO = "is low for jaro: unrelated sentences count as retrieved; set it to 0.9 or more"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(folder: Path, config: str, *references: str) -> Ended:
    """Check a run that retrieved a sentence."""
    write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1", reference_contexts=references or ["a b c"])])
    write_jsonl(folder / "current_run.jsonl", [run("q1", "doc1", retrieved_contexts=["a b c"])])
    (folder / "ragcontract.yml").write_text(config)
    return rag_contract("check")


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("metrics:\n  context_recall_text:\n    measure: jaro\n    threshold: 0.5\n", 4),
        ("metrics:\n  context_recall_text:\n    measure: jaro\n", 2),
    ],
)
def test_a_warning_about_an_option_names_its_line_or_that_of_the_entry(config: str, line: int, folder: Path) -> None:
    ended = check(folder, config)
    assert ended.code == 0
    assert f"ragcontract.yml:{line}: metrics.context_recall_text.threshold {JARO}" in ended.err


def test_a_reference_without_words_is_refused_with_its_line_once(folder: Path) -> None:
    ended = check(folder, "k: 5\n", "a b c", "?!")
    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert "golden.jsonl:1: reference_contexts[1]: has no words to search for; give a text with words, or" in ended.err
    assert check(folder, "metrics: {context_recall_text: {measure: levenshtein}}\n", "?!").code == 0


def test_a_distance_without_rapidfuzz_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    config = "metrics: {context_recall_text: {measure: levenshtein}}\n"
    ended = check(folder, config)
    assert ended.code == 2
    assert (
        "ragcontract.yml:1: metrics.context_recall_text.measure: levenshtein needs rapidfuzz; install it: pip"
        in ended.err
    )


def test_a_metric_that_nothing_asks_for_has_no_complaints(folder: Path) -> None:
    write_jsonl(folder / "golden.jsonl", [golden("q1", "doc1")])
    write_jsonl(folder / "current_run.jsonl", [run("q1", "doc1")])
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (0, "")
