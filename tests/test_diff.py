"""``rag-contract diff``: what changed since the baseline, as text, Markdown and JSON."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import Ended, rag_contract
from tests.report.markdown.test_gfm import NASTY
from tests.report.page import Page

# Surrogates that stand alone are no JSON, and a blank id is refused.
WRITTEN = [value for value in NASTY if value.strip() and value == value.encode(errors="replace").decode()]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One query lost its document, one slipped without breaking a rule, one got better, one is new."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden(name, "A") for name in ("lost", "slipped", "better", "new")])
    now = [run("lost", "x", "y"), run("slipped", "x", "A"), run("better", "A"), run("new", "A")]
    write_jsonl(tmp_path / "current_run.jsonl", [row | {"index_version": 2} for row in now])
    before = [run("lost", "A"), run("slipped", "A"), run("better", "x", "A"), run("gone", "A")]
    write_jsonl(tmp_path / "good.jsonl", [row | {"index_version": 1} for row in before])
    return tmp_path


def diff(*argv: str) -> Ended:
    ended = rag_contract("diff", "--baseline", "good.jsonl", *argv)
    assert ended.code == 0, ended.err
    return ended


def test_a_broken_query_has_the_results_of_both_sides_below_it_and_another_has_none() -> None:
    worse = diff().out.partition("Better")[0]
    assert worse == (
        "Worse (2)\n"
        "  lost  What about lost?\n"
        "    A: 1 -> missing\n"
        "    Retrieved, top 5:\n"
        "       before        now\n"
        "    1  A (relevant)  x\n"
        "    2                y\n"
        "  slipped  What about slipped?\n"
        "    A: 1 -> 2\n\n"
    )


def test_a_side_that_returned_nothing_is_said_to(workspace: Path) -> None:
    rows = [{"query_id": "lost", "results": []}, *(run(name, "A") for name in ("slipped", "better", "new"))]
    write_jsonl(workspace / "current_run.jsonl", rows)
    assert "before        now: nothing\n    1  A (relevant)\n" in diff().out


def test_markdown_has_the_same_in_tables() -> None:
    page = Page(diff("--format", "md").out)
    assert page.text.startswith("Since the baseline: 2 worse, 1 better, 0 the same")
    worse, better, versions, metrics = page.tables
    assert worse[1:] == [["What about lost?lost", "A 1 → missing"], ["What about slipped?slipped", "A 1 → 2"]]
    assert better[1:] == [["What about better?better", "A 2 → 1"]]
    assert page.retrieved == [[["", "Before", "Now"], ["1", "✅ A", "x"], ["2", "", "y"]]]
    assert versions[1:] == [["index version", "1", "2"]]
    assert metrics[0] == ["Metric", "Baseline", "Current", "Change"]
    assert "New: 1 query: " in page.text


def test_json_has_the_same_and_fits_its_schema() -> None:
    found = json.loads(diff("--format", "json").out)
    schema = json.loads(rag_contract("schema", "diff").out)
    jsonschema.Draft202012Validator(schema).validate(found)
    lost, slipped = found["worse"]
    assert (lost["id"], lost["change"], lost["location"]) == ("lost", -1.0, "golden.jsonl:1")
    assert lost["steps"] == [{"doc_id": "A", "before": 1, "now": None, "forbidden": False}]
    assert lost["retrieved"] == [{"doc_id": "x"}, {"doc_id": "y"}]
    assert lost["baseline_retrieved"] == [{"doc_id": "A", "contract": "relevant"}]
    assert "retrieved" not in slipped
    assert [query["id"] for query in found["better"]] == ["better"]
    assert (found["new"], found["gone"], found["same"]) == (["new"], ["gone"], 0)
    assert found["versions"] == {"index_version": {"before": "1", "now": "2"}}
    assert found["metrics"]["mrr_at_5"]["delta"] == pytest.approx(-1 / 3)


@pytest.mark.parametrize("command", ["diff", "compare", "score"])
def test_no_text_in_printed_json_acts_on_a_terminal_or_a_runner(command: str, workspace: Path) -> None:
    hostile = "a\x9b31m\x9d0;title\x9c\x7f\u202e##[error]"
    write_jsonl(workspace / "golden.jsonl", [golden(hostile, "A", tags=[hostile])])
    for name, doc_id in (("good.jsonl", "A"), ("current_run.jsonl", "B")):
        write_jsonl(workspace / name, [run(hostile, doc_id)])
    argv = {"diff": ["--baseline", "good.jsonl"], "compare": ["good.jsonl", "current_run.jsonl"], "score": []}
    ended = rag_contract(command, *argv[command], "--format", "json")
    assert ended.code == 0, ended
    assert not re.search("[\x7f-\x9f\u202e]|##\\[", ended.out)
    assert hostile in json.dumps(json.loads(ended.out), ensure_ascii=False)


def test_notes_on_the_run_are_in_every_format() -> None:
    note = "The run has at most 2 results a query, so Recall@5 is Recall@2; export at least 5, or lower k."
    assert note in diff().out
    assert note in Page(diff("--format", "md").out).text
    assert json.loads(diff("--format", "json").out)["run_notes"] == [note]


def test_likely_mistakes_come_first_in_markdown(workspace: Path) -> None:
    write_jsonl(workspace / "current_run.jsonl", [run(name, "A#1") for name in ("lost", "slipped", "better", "new")])
    (said,) = Page(diff("--format", "md").out).items
    assert said.startswith("1 of 1 relevant id never occurs in the run; 1 would match without the suffix #n")


def test_a_diff_gives_no_verdict_although_rules_are_broken_and_limits_cannot_be_judged(workspace: Path) -> None:
    (workspace / "ragcontract.yml").write_text("minimums: {mrr_at_k: 0.99}\n")
    for form in ("text", "md", "json"):
        diff("--format", form)


@pytest.mark.parametrize("value", WRITTEN)
def test_nothing_from_a_file_changes_what_the_markdown_is(workspace: Path, value: str) -> None:
    def tags(name: str) -> list[str]:
        write_jsonl(workspace / "golden.jsonl", [golden(name, f"{name}1", query=name)])
        result = {"doc_id": f"{name}2", "chunk_id": f"{name}3", "score": 1}
        write_jsonl(workspace / "current_run.jsonl", [{"query_id": name, "results": [result]}])
        write_jsonl(workspace / "good.jsonl", [run(name, f"{name}1")])
        page = Page(diff("--format", "md").out)
        assert page.links() == []
        return page.tags

    assert tags(value) == tags("plain")
