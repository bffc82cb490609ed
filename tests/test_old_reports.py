"""A check without a verdict leaves no report of an earlier one, which a later step would publish."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import files_in, rag_contract

REPORTS = ("report.md", "report.json", "junit.xml", "report.html")
CHECK = ("check", "--report-html", "report.html")
BREAK: dict[str, Callable[[], object]] = {
    "a broken run": lambda: Path("current_run.jsonl").write_text("{"),
    "a missing run": lambda: Path("current_run.jsonl").unlink(),
    "a wrong configuration": lambda: Path("ragcontract.yml").write_text("minimums: {mrr_at_k: 0,95}\n"),
}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a contract that holds, and the reports that say so."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("golden.jsonl"), [golden("q1")])
    write_jsonl(Path("current_run.jsonl"), [run("q1")])
    Path("ragcontract.yml").write_text("k: 5\n")
    assert rag_contract(*CHECK).code == 0


@pytest.mark.parametrize("what", BREAK)
def test_no_report_says_that_the_contract_holds(what: str) -> None:
    BREAK[what]()
    ended = rag_contract(*CHECK, "--name", "docs")
    assert ended.code == 2
    written = json.loads(Path("report.json").read_text())
    assert (written["verdict"], written["source"]["contract"]) == ("error", "docs")
    assert [f"error: {problem}" for problem in written["problems"]] == ended.err.splitlines()
    assert "could not be judged" in Path("report.md").read_text()
    assert "could not be judged" in Path("report.html").read_text()
    assert 'errors="1"' in Path("junit.xml").read_text()


def test_an_empty_path_a_wrong_plugin_and_a_wrong_output_are_errors_in_the_other_reports() -> None:
    for wrong in (("--config", ""), ("--plugin", "nowhere.py"), ("--report-v2", "golden.jsonl")):
        assert rag_contract("check").code == 0
        assert rag_contract("check", *wrong).code == 2
        assert json.loads(Path("report.json").read_text())["verdict"] == "error"
        assert json.loads(Path("golden.jsonl").read_text())["id"] == "q1"


def test_no_input_is_replaced_even_if_an_option_names_it_as_a_report() -> None:
    before = files_in(Path())
    for path in ("golden.jsonl", "current_run.jsonl", "ragcontract.yml"):
        ended = rag_contract("check", "--report-md", path, "--report-json", "", "--junit", "", "--config", "")
        assert ended.code == 2
    assert files_in(Path()) == before


def test_where_no_report_is_none_is_written() -> None:
    for name in REPORTS:
        Path(name).unlink()
    BREAK["a broken run"]()
    assert rag_contract(*CHECK, "--report-json", "/dev/stdout").out == ""
    assert {*files_in(Path())} == {"golden.jsonl", "current_run.jsonl", "ragcontract.yml"}
