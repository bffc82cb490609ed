"""What was retrieved instead of what a broken query wanted: from the files of a check to its reports."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.evaluation.source import Inputs
from ragcontract.pipeline import check
from tests.builders import golden, run, stored_query, write_baseline, write_jsonl
from tests.process import rag_contract
from tests.records import NOW
from tests.report.html.parsed import Parsed
from tests.report.page import Page


def result(doc_id: str, **fields: Any) -> dict[str, Any]:
    return {"doc_id": doc_id, **fields}


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A query whose document gave way to a forbidden one and another, and one that is fine."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("sso", "doc_sso", forbidden_doc_ids=["old"]), golden("fine", "A")])
    now = [result("old", score=0.9), result("pricing", score=0.51234567, chunk_id="pricing#7")]
    write_jsonl(tmp_path / "current_run.jsonl", [run("sso") | {"results": now}, run("fine", "A")])
    before = [result("doc_sso", score=0.8, chunk_id="doc_sso#1"), result("glossary")]
    write_jsonl(tmp_path / "good.jsonl", [run("sso") | {"results": before}, run("fine", "A")])
    return tmp_path


def queries() -> dict[str, Any]:
    return {query["id"]: query for query in json.loads(Path("report.json").read_text())["queries"]}


def lists() -> list[list[list[str]]]:
    return Page(Path("report.md").read_text()).retrieved


def test_report_json_lists_the_results_of_a_broken_query_before_and_now() -> None:
    assert rag_contract("check", "--baseline", "good.jsonl").code == 1
    found = queries()
    assert found["sso"]["retrieved"] == [
        {"doc_id": "old", "score": 0.9, "contract": "forbidden"},
        {"doc_id": "pricing", "score": 0.51234567, "chunk_id": "pricing#7"},
    ]
    assert found["sso"]["baseline_retrieved"] == [
        {"doc_id": "doc_sso", "score": 0.8, "chunk_id": "doc_sso#1", "contract": "relevant"},
        {"doc_id": "glossary"},
    ]
    assert not {"retrieved", "baseline_retrieved"} & found["fine"].keys()


def test_report_md_shows_both_sides_rank_by_rank_with_the_contracts_documents_marked() -> None:
    rag_contract("check", "--baseline", "good.jsonl")
    assert "<summary>What was retrieved: top 5, before and now</summary>" in Path("report.md").read_text()
    assert lists() == [
        [
            ["", "Before", "Now"],
            ["1", "✅ doc_ssodoc_sso#1 · 0.8", "⛔ old0.9"],
            ["2", "glossary", "pricingpricing#7 · 0.5123"],
        ]
    ]


def test_a_stored_baseline_has_neither_scores_nor_chunks(workspace: Path) -> None:
    write_baseline(workspace / "baseline.json", stored_query("sso", "doc_sso", "glossary"), stored_query("fine", "A"))
    rag_contract("check")
    assert queries()["sso"]["baseline_retrieved"] == [
        {"doc_id": "doc_sso", "contract": "relevant"},
        {"doc_id": "glossary"},
    ]
    assert lists()[0][1][1] == "✅ doc_sso"


def test_without_a_baseline_only_the_run_is_listed() -> None:
    rag_contract("check")
    assert lists()[0][0] == ["", "Now"]
    assert "baseline_retrieved" not in queries()["sso"]


def test_a_query_that_is_new_has_no_list_of_before(workspace: Path) -> None:
    write_baseline(workspace / "baseline.json", stored_query("fine", "A"))
    rag_contract("check")
    assert lists()[0][0] == ["", "Now"]
    assert "<summary>What was retrieved: top 5</summary>" in Path("report.md").read_text()


def test_a_run_that_returned_nothing_is_said_to(workspace: Path) -> None:
    write_jsonl(workspace / "current_run.jsonl", [{"query_id": "sso", "results": []}, run("fine", "A")])
    rag_contract("check")
    assert queries()["sso"]["retrieved"] == []
    assert lists() == [[["", "Now"], ["", "nothing"]]]


def test_a_waived_query_is_listed_too(workspace: Path) -> None:
    waiver = "{query: sso, reason: known, owner: ann, expires: 2999-01-01}"
    (workspace / "ragcontract.yml").write_text(f"waivers:\n  - {waiver}\n")
    assert rag_contract("check").code == 0
    assert len(lists()) == len(queries()["sso"]["retrieved"]) - 1 == 1


def test_of_several_rows_the_first_that_breaks_a_rule_is_listed_and_the_report_says_so(workspace: Path) -> None:
    write_jsonl(
        workspace / "current_run.jsonl", [run("sso", "doc_sso"), run("sso", "x"), run("fine", "A"), run("fine", "A")]
    )
    rag_contract("check", "--repeats")
    assert queries()["sso"]["retrieved"] == [{"doc_id": "x"}]
    assert "Of several rows, the first that breaks a rule is shown" in Path("report.md").read_text()


def test_a_contract_that_holds_lists_nothing(workspace: Path) -> None:
    write_jsonl(workspace / "current_run.jsonl", [run("sso", "doc_sso"), run("fine", "A")])
    assert rag_contract("check", "--baseline", "good.jsonl").code == 0
    assert "What was retrieved" not in Path("report.md").read_text()
    assert all("retrieved" not in query for query in queries().values())


TEXTS = {
    "old": "Old\nuse <b>nothing</b>.",
    "pricing": "Prices " * 100,
    "doc_sso": "Turn on SSO.",
    "glossary": "Words.",
    "both": "Both have this.",
}


def with_texts(query_id: str, *doc_ids: str) -> dict[str, Any]:
    return run(query_id) | {"results": [result(name, text=TEXTS[name]) for name in doc_ids]}


def passages() -> dict[str, str]:
    """Return the texts that the page shows beside documents of the broken query."""
    queries = Parsed(Path("report.html").read_bytes()).data()["queries"]
    (sso,) = [query for query in queries if query["i"] == "sso"]
    return {each[0]: each[3] for side in "no" for each in sso.get(side, []) if len(each) > 3}


def test_the_page_shows_the_texts_of_documents_that_entered_or_left() -> None:
    write_jsonl(Path("current_run.jsonl"), [with_texts("sso", "old", "both", "pricing"), run("fine", "A")])
    write_jsonl(Path("good.jsonl"), [with_texts("sso", "doc_sso", "both", "glossary"), run("fine", "A")])
    rag_contract("check", "--baseline", "good.jsonl", "--report-html", "report.html")
    shown = passages()
    assert shown.pop("pricing") == ("Prices " * 100)[: bounds.PASSAGE - 1] + "…"
    assert shown == {name: TEXTS[name] for name in ("old", "doc_sso", "glossary")}
    rag_contract("check", "--baseline", "good.jsonl", "--report-html", "report.html", "--no-answers")
    assert passages() == {}


def test_a_stored_baseline_has_no_texts_of_what_left() -> None:
    write_jsonl(Path("current_run.jsonl"), [with_texts("sso", "old"), run("fine", "A")])
    write_baseline(Path("baseline.json"), stored_query("sso", "doc_sso"), stored_query("fine", "A"))
    rag_contract("check", "--report-html", "report.html")
    assert passages() == {"old": TEXTS["old"]}


def test_a_run_without_texts_in_its_first_rows_is_not_searched_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "ROWS_WITHOUT_TEXTS", 1)
    write_jsonl(Path("current_run.jsonl"), [run("fine", "A"), run("other", "B"), with_texts("sso", "old")])
    outcome = check(Inputs.named(golden=["golden.jsonl"], run=["current_run.jsonl"], baseline=["good.jsonl"]), now=NOW)
    assert outcome.passages() == {}
    monkeypatch.setattr(bounds, "ROWS_WITHOUT_TEXTS", 3)
    assert outcome.passages() == {"sso": {"old": TEXTS["old"]}}
