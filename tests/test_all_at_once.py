"""What is wrong with one input hides nothing that is wrong with another, and nothing is wrong that is not judged."""

from pathlib import Path

import pytest

from tests.builders import golden, good_workspace, run, write_jsonl
from tests.process import rag_contract

WAIVERS = """\
fail_on:
  mrr_drop_gt: 0.1
waivers:
  - {query: q1, reason: known, owner: ann, expires: 2099-01-01}
  - {gate: fail_on.mrr_drop_gt, reason: known, owner: ann, expires: 2099-01-01}
  - {query: q2, reason: known, owner: ann, expires: 2020-01-01}
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(good_workspace(tmp_path))
    return tmp_path


def problems(*argv: str) -> list[str]:
    ended = rag_contract(*argv)
    assert ended.code == 2, ended.out
    return [line.removeprefix("error: ") for line in ended.err.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize("command", ["score", "baseline", "suggest", "diff"])
def test_where_nothing_is_judged_no_waiver_is_warned_about(command: str) -> None:
    Path("ragcontract.yml").write_text(WAIVERS)
    assert rag_contract("check").err.count("warning: ragcontract.yml") == 3
    ended = rag_contract(command, *(["--force"] if command == "baseline" else []))
    assert (ended.code, "waive" in ended.err, "ragcontract.yml" in ended.err) == (0, False, False)


def test_an_unknown_key_hides_no_other_limit() -> None:
    Path("ragcontract.yml").write_text(
        "bogus: 1\nfail_on:\n  mrr_drop: 0.1\ntags:\n  ghost:\n    minimums:\n      mrr_at_k: 0.5\n"
    )
    found = problems("check")
    assert [problem.split(" ")[0] for problem in found] == [
        "ragcontract.yml:1:",
        "ragcontract.yml:3:",
        "ragcontract.yml:7:",
    ]
    assert found[2].endswith("no golden query has the tag 'ghost'")


def test_a_wrong_entry_of_a_list_hides_none_of_the_others() -> None:
    Path("ragcontract.yml").write_text(WAIVERS.replace("query: q1", "query: [q1]") + "latency:\n  p95_ms: 5\n")
    found = problems("check")
    assert found[0].startswith("ragcontract.yml:4: waivers[0].query: ")
    assert "no row of the run has latency_ms" in found[1]


def test_a_broken_baseline_hides_no_limit_on_the_run() -> None:
    Path("baseline.json").write_text("{")
    Path("ragcontract.yml").write_text("latency:\n  p95_ms: 5\n  p95_increase_gt: 5\nfail_on:\n  mrr_drop_gt: 0.1\n")
    found = problems("check")
    assert [problem.split(":")[0] for problem in found] == ["baseline.json", "ragcontract.yml"]
    assert "latency.p95_ms cannot be judged" in found[1]


def test_a_broken_golden_row_hides_no_missing_run_row() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2"), {"id": "q3"}])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "doc1"), run("q3", "doc3")])
    found = problems("check")
    assert [problem.split(":")[0] for problem in found] == ["golden.jsonl"] * (len(found) - 1) + ["current_run.jsonl"]
    assert "has no row for golden query 'q2'" in found[-1]


def test_a_broken_run_row_makes_no_query_missing() -> None:
    Path("current_run.jsonl").write_text('{"query_id": "q1", "results": [{"doc_id": "doc1"}]}\n{"query_id"\n')
    assert len(problems("check")) == 1


@pytest.mark.parametrize("number", ["1e400", "9" * 5_001, "-1", "null"])
def test_a_format_version_that_is_no_number_is_a_problem_of_the_file(number: str) -> None:
    Path("baseline.json").write_text(f'{{"format_version": {number}}}')
    assert problems("check")[0].startswith("baseline.json")


@pytest.mark.parametrize("escape", ["\\U00110000", "\\UFFFFFFFF"])
def test_an_escape_that_is_no_character_is_a_problem_of_the_file(escape: str) -> None:
    Path("ragcontract.yml").write_text(f'k: "{escape}"\n')
    assert problems("check") == [r"ragcontract.yml:1: has an escape \U… that is not a character"]


def test_of_several_rules_that_one_cause_breaks_the_accepted_sentence_is_there_once() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", must_rank_at_most=1), golden("q2", "doc2")])
    write_jsonl(Path("current_run.jsonl"), [run("q1", "x"), run("q2", "doc2")])
    ended = rag_contract("baseline", "--update", "--accept-regressions", "why not")
    assert ended.code == 0, ended.err
    assert Path("baseline.json").read_text().count("q1: expected doc1 in top 1") == 1


def test_a_query_that_may_pass_is_not_said_to_never_pass() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", forbidden_doc_ids=["doc1"]), golden("q2", "doc2")])
    assert "so it can never pass" in rag_contract("check").err
    Path("ragcontract.yml").write_text("per_query: {enforce_forbidden_docs: false}\n")
    ended = rag_contract("check")
    assert (ended.code, "never pass" in ended.err) == (0, False)


def test_all_runs_that_suggest_cannot_read_are_reported() -> None:
    Path("bad1.jsonl").write_text("{\n")
    Path("bad2.jsonl").write_text("[\n")
    found = problems("suggest", "--run", "bad1.jsonl", "--run", "current_run.jsonl", "--run", "bad2.jsonl")
    assert [problem.split(":")[0] for problem in found] == ["bad1.jsonl", "bad2.jsonl"]


def test_both_reasons_why_a_limit_cannot_be_judged_are_reported() -> None:
    Path("baseline.json").unlink()
    Path("ragcontract.yml").write_text("tags:\n  ghost:\n    fail_on:\n      mrr_drop_gt: 0.1\n")
    found = problems("check")
    assert [problem.split("cannot be judged: ")[1][:24] for problem in found] == [
        "no golden query has the ",
        "there is no baseline; ma",
    ]


def test_lint_refuses_limits_that_no_run_can_meet() -> None:
    Path("ragcontract.yml").write_text("tags:\n  ghost:\n    fail_on:\n      mrr_drop_gt: 0.1\n")
    assert problems("lint") == [
        "ragcontract.yml:4: tags.ghost.fail_on.mrr_drop_gt cannot be judged: no golden query has the tag 'ghost'"
    ]
