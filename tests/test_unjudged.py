"""``rag-contract unjudged``: what to judge first, from a red check to a green one."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

HOSTILE = "a\x1b[31m\u202e\x07\r\n::error::b"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a contract of four questions, whose labels are from what an older retriever returned."""
    monkeypatch.chdir(tmp_path)
    contract(*[golden(f"q{number}", "old", must_include_any=True) for number in range(1, 5)])
    returned(*[run(f"q{number}", "old", "other") for number in range(1, 5)])
    Path("ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.05}\nper_query: {enforce_must_include: false}\n")
    assert rag_contract("baseline").code == 0
    returned(*[run(f"q{number}", "new", "old", "other") for number in range(1, 5)])
    return tmp_path


def contract(*rows: Row) -> None:
    write_jsonl(Path("golden.jsonl"), rows)


def returned(*rows: Row) -> None:
    write_jsonl(Path("current_run.jsonl"), rows)


def unjudged(*argv: str) -> Ended:
    ended = rag_contract("unjudged", *argv)
    assert (ended.code, ended.err) == (0, "")
    return ended


@pytest.mark.parametrize(("baseline", "mrr"), [(["old"], 0.5), ([], 0.5), (["old", "other"], 1.0)])
def test_only_what_somebody_knows_as_not_relevant_lets_the_rest_be_skipped(baseline: list[str], mrr: float) -> None:
    """With nothing but relevant documents in the baseline, every list would be perfect once the others are left out."""
    Path("ragcontract.yml").write_text("unjudged: skip\nminimums: {mrr_at_k: 0.9}\n")
    contract(golden("q1", "old"))
    write_jsonl(Path("good_run.jsonl"), [{"query_id": "q1", "results": [{"doc_id": doc_id} for doc_id in baseline]}])
    returned(run("q1", "new", "old"))
    assert rag_contract("check", "--baseline", "good_run.jsonl").code == (0 if mrr == 1 else 1)
    assert json.loads(Path("report.json").read_bytes())["metrics"]["mrr_at_5"]["current"] == mrr


def labels() -> list[dict[str, Any]]:
    rows = map(json.loads, Path("golden.jsonl").read_text().splitlines())
    return [{key: row[key] for key in ("relevant_doc_ids", "relevance") if key in row} for row in rows]


def metrics() -> dict[str, float]:
    assert rag_contract("check").code in {0, 1}
    found = json.loads(Path("report.json").read_text())["metrics"]
    means = {f"{side} {key}": one[side] for key, one in found.items() for side in ("current", "baseline")}
    return {key: mean for key, mean in means.items() if "judged" not in key}


def test_from_a_red_check_over_ticked_documents_to_a_green_one() -> None:
    assert rag_contract("check").code == 1
    file = unjudged("--format", "checklist").out
    assert file.count("- [?] new") == 4
    assert "# Nobody has judged 4 of the 12 documents in the top 5 of 4 queries with relevant documents." in file
    assert "# MRR@5 fell by 0.50, allowed drop 0.05: at least 4 of these must be relevant to bring it within" in file
    Path("ticked.txt").write_text(file.replace("[?] new", "[x] new"))
    assert rag_contract("label", "--ticked", "ticked.txt").out == "labelled 4 questions in golden.jsonl\n"
    assert labels() == [{"relevance": {"old": 1, "new": 1}}] * 4
    assert rag_contract("check").code == 0
    assert (
        unjudged().out
        == "Nothing to judge: every document in the top 5 of 4 queries with relevant documents is judged.\n"
    )


def test_the_table_shows_rank_effect_and_text() -> None:
    returned(
        *[run(f"q{number}", "new", "old") for number in range(1, 4)], _with_text("q4", "new", "Refunds take days.")
    )
    lines = unjudged("--top", "2").out.splitlines()
    assert [re.split(r"\s{2,}", line) for line in lines[:3]] == [
        ["query", "document", "rank", "if relevant", "chance"],
        ["q1", "new", "1", "MRR@5 +0.1250, 28% of what it lacks", "67%"],
        ["q2", "new", "1", "MRR@5 +0.1250, 28% of what it lacks", "67%"],
    ]
    assert "The first 2 of 4 are listed; --top lists more." in lines
    assert "Refunds take days." in unjudged().out


def _with_text(query_id: str, doc_id: str, text: str) -> Row:
    return {"query_id": query_id, "results": [{"doc_id": doc_id, "text": text, "score": 0.5}, {"doc_id": "old"}]}


def test_lines_of_json_have_everything() -> None:
    returned(_with_text("q1", "new", "t"), *[run(f"q{number}", "old") for number in range(2, 5)])
    ended = rag_contract("unjudged", "--format", "jsonl")
    (line,) = map(json.loads, ended.out.splitlines())
    assert line.pop("move") == pytest.approx(0.125)
    assert line.pop("share") == pytest.approx(0.125 / 0.075)
    assert 0 < line.pop("chance") < 1
    assert line == {
        "query_id": "q1",
        "query": "What about q1?",
        "doc_id": "new",
        "rank": 1,
        "score": 0.5,
        "text": "t",
        "limit": "fail_on.mrr_drop_gt",
    }
    assert "Nobody has judged 1 of the 5 documents" in ended.err


def test_what_is_crossed_is_judged_and_what_is_left_open_is_asked_again() -> None:
    before = metrics()
    file = unjudged("--format", "checklist").out
    Path("t.txt").write_text(file.replace("[?] new", "[-] new", 2))
    assert rag_contract("label", "--ticked", "t.txt").out == "labelled 2 questions in golden.jsonl\n"
    assert labels()[:3] == [{"relevance": {"old": 1, "new": 0}}] * 2 + [{"relevant_doc_ids": ["old"]}]
    assert metrics() == before
    assert [line.split()[0] for line in unjudged().out.splitlines()[1:3]] == ["q3", "q4"]


@pytest.mark.parametrize("gain", ["linear", "exponential"])
@pytest.mark.parametrize("level", [1, 2, 3, 0.5])
def test_documents_that_are_not_relevant_change_no_metric_of_a_row(gain: str, level: float) -> None:
    contract(golden("q1", "old", "b", must_include_any=True), golden("q2", "c"))
    returned(run("q1", "x", "b", "y", "old"), run("q2", "z", "d", "c"))
    Path("ragcontract.yml").write_text(f"{{gain: {gain}, relevance_level: {level}}}\n")
    before = metrics()
    Path("t.txt").write_text(unjudged("--format", "checklist").out.replace("[?]", "[-]"))
    assert rag_contract("label", "--ticked", "t.txt").code == 0
    assert metrics() == pytest.approx(before, abs=1e-15)
    if level == 1:
        assert metrics() == before


def test_an_empty_checklist_has_nothing_to_mark() -> None:
    Path("t.txt").write_text(unjudged("--format", "checklist").out)
    before = Path("golden.jsonl").read_bytes()
    assert rag_contract("label", "--ticked", "t.txt").out == "nothing is marked in t.txt\n"
    assert Path("golden.jsonl").read_bytes() == before


def test_golden_files_and_config_are_named_where_they_are_not_the_default() -> None:
    Path("golden.jsonl").rename("a.jsonl")
    write_jsonl(Path("b.jsonl"), [golden("q9", "old")])
    returned(*[run(f"q{number}", "new", "old") for number in (1, 2, 3, 4, 9)])
    Path("ragcontract.yml").rename("c.yml")
    options = "--golden", "a.jsonl", "b.jsonl", "--config", "c.yml"
    file = unjudged(*options, "--format", "checklist").out
    assert "# Then: rag-contract label --ticked FILE --golden a.jsonl b.jsonl --config c.yml\n" in file
    Path("t.txt").write_text(file.replace("[?]", "[x]"))
    assert rag_contract("label", "--ticked", "t.txt", *options).out == "labelled 5 questions in a.jsonl, b.jsonl\n"
    assert json.loads(Path("b.jsonl").read_text())["relevance"] == {"old": 1, "new": 1}


def test_without_a_baseline_everything_without_a_label_is_open() -> None:
    Path("baseline.json").unlink()
    out = unjudged().out
    assert "Nobody has judged 8 of the 12 documents in the top" in out
    assert "No limit on a ranking metric is broken" in out


def test_no_document_is_shown_as_relevant_for_certain_before_it_is_judged() -> None:
    contract(*[golden(f"q{number}", "a", "b", "c") for number in range(30)])
    returned(*[run(f"q{number}", *(("new",) if number == 1 else ()), "a", "b", "c") for number in range(30)])
    Path("baseline.json").unlink()
    Path("ragcontract.yml").unlink()
    cells = unjudged().out.splitlines()[1].split()
    assert cells[:3] == ["q1", "new", "1"]
    assert cells[-1] == "99%"


def test_rows_of_repeats_are_averaged() -> None:
    returned(*[run(f"q{number}", *ids) for number in range(1, 5) for ids in (("new", "old"), ("old", "newer"))])
    lines = unjudged("--repeats").out.splitlines()
    assert [line.split()[:3] for line in lines[1:3]] == [["q1", "new", "1"], ["q2", "new", "1"]]
    assert "MRR@5 +0.0625" in lines[1]


def test_only_a_tag_is_judged_where_one_is_named() -> None:
    contract(
        *[
            golden(f"q{number}", "old", tags=["t"] if number == 2 else [], must_include_any=True)
            for number in range(1, 5)
        ]
    )
    Path("ragcontract.yml").write_text("tags: {t: {minimums: {mrr_at_k: 0.9}}}\n")
    assert [line.split()[0] for line in unjudged("--tag", "t").out.splitlines()[1:2]] == ["q2"]
    assert "(tag t): at least 1 of these" in unjudged("--tag", "t").out


def test_inputs_that_cannot_be_judged_are_refused_like_in_a_check() -> None:
    returned(run("q1", "new"))
    assert rag_contract("unjudged").code == 2


def test_hostile_ids_and_texts_are_shown_as_escapes() -> None:
    contract(golden("q1", "old", query=HOSTILE), *[golden(f"q{number}", "old") for number in range(2, 5)])
    returned(_with_text("q1", HOSTILE, HOSTILE), *[run(f"q{number}", "old") for number in range(2, 5)])
    Path("ragcontract.yml").unlink()
    for form in ("table", "checklist", "jsonl"):
        ended = rag_contract("unjudged", "--format", form)
        assert ended.code == 0
        assert not set("\x1b\u202e\x07\r") & set(ended.out)
        assert not re.search("^::error", ended.out, re.MULTILINE)
    Path("t.txt").write_text(rag_contract("unjudged", "--format", "checklist").out.replace("[?]", "[x]"))
    assert rag_contract("label", "--ticked", "t.txt").code == 0
    assert labels()[0]["relevance"] == {"old": 1, HOSTILE: 1}
