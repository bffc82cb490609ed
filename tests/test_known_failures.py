"""From a known-good run that breaks rules to a check that fails only for what is new: as a team meets it."""

import json
import re
from pathlib import Path

import pytest

from tests.builders import as_jsonl, golden, run
from tests.process import rag_contract, spawn

BROKEN = [run("q1", "doc1"), run("q2", "x"), run("q3", "y", "doc9")]


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with three queries and a known-good run that breaks rules of two of them."""
    monkeypatch.chdir(tmp_path)
    rows = [golden("q1", "doc1"), golden("q2", "doc2"), golden("q3", "doc3", forbidden_doc_ids=["doc9"])]
    Path("golden.jsonl").write_text(as_jsonl(*rows))
    returned(*BROKEN)
    return tmp_path


def returned(*rows: dict[str, object]) -> None:
    """Let the retriever return something else."""
    Path("current_run.jsonl").write_text(as_jsonl(*rows))


def configured(text: str) -> None:
    """Write the configuration."""
    Path("ragcontract.yml").write_text(text)


def test_the_command_baseline_says_what_is_already_broken_and_how_to_live_with_it() -> None:
    ended = rag_contract("baseline")
    assert (ended.code, ended.err) == (0, "")
    first, second, third, *rest = ended.out.splitlines()
    assert first == "baseline of 3 queries in baseline.json"
    assert second == "2 queries are already broken in it: q3, q2"
    assert third.startswith("A check fails if its run breaks this too.")
    assert rest[1:3] == ["per_query:", "  fail_on: new"]
    assert rag_contract("check").code == 1


def test_the_waivers_that_it_writes_can_be_pasted() -> None:
    out = rag_contract("baseline").out
    configured(out[out.index("waivers:") :])
    ended = rag_contract("check")
    assert (ended.code, ended.err) == (0, "")
    assert "; 2 waived" in ended.out
    rules = re.findall(r"query: (\S+)\n +rule: (\S+)", out)
    assert rules == [("q3", "forbidden_docs"), ("q3", "must_include"), ("q2", "must_include")]


def test_a_good_run_passes_its_own_baseline_and_can_update_it() -> None:
    configured("per_query:\n  fail_on: new\n")
    assert rag_contract("baseline").out.endswith("A check shows this and fails only for what is new.\n")
    assert rag_contract("check").code == 0
    returned(run("q1", "doc1", "doc5"), run("q2", "doc2"), run("q3", "y", "doc9"))
    ended = rag_contract("baseline", "--update")
    assert (ended.code, ended.err) == (0, "")
    assert "1 better" in ended.out


def test_what_is_new_fails_and_is_refused_as_a_baseline() -> None:
    configured("per_query:\n  fail_on: new\n")
    rag_contract("baseline")
    returned(run("q1", "x"), run("q2", "x"), run("q3", "y", "doc9"))
    ended = rag_contract("check")
    assert ended.code == 1
    assert "FAIL  3 of 3 queries broken: 1 new, 2 already in the baseline" in ended.out
    assert rag_contract("baseline", "--update").code == 1
    report = json.loads(Path("report.json").read_bytes())
    assert report["broken"] == {"queries": 3, "new": 1, "in_baseline": 2, "fixed": 0}
    assert {query["id"]: query["status"] for query in report["queries"]} == {"q1": "fail", "q2": "known", "q3": "known"}


def test_only_the_rules_that_count_new_failures_alone_are_excused() -> None:
    configured("per_query:\n  enforce_must_include: new\n")
    out = rag_contract("baseline").out
    assert re.findall(r"query: (\S+)\n +rule: (\S+)", out) == [("q3", "forbidden_docs")]
    ended = rag_contract("check")
    assert ended.code == 1
    assert "2 of 3 queries broken, all already in the baseline" in ended.out


def test_a_baseline_without_broken_rules_has_nothing_to_say() -> None:
    returned(run("q1", "doc1"), run("q2", "doc2"), run("q3", "doc3"))
    assert rag_contract("baseline") == (0, "baseline of 3 queries in baseline.json\n", "")


def test_a_file_that_goes_to_standard_output_stays_clean(workspace: Path) -> None:
    ended = spawn("baseline", "--out", "/dev/stdout", cwd=workspace)
    assert json.loads(ended.out)["format_version"] == 1
    assert "already broken in it: q3, q2" in ended.err


@pytest.mark.parametrize(
    ("then", "now", "code"),
    [
        ({"mode": "abstain"}, {"mode": "abstain"}, 0),
        ({"mode": "abstain"}, {"mode": "trustworthy"}, 0),
        ({"mode": "abstain"}, {"error": "the index is down"}, 1),
    ],
)
@pytest.mark.parametrize("stored", [False, True])
def test_an_application_that_fails_is_new_where_it_answered_in_a_wrong_mode(
    *, then: dict[str, str], now: dict[str, str], code: int, stored: bool
) -> None:
    configured("per_query:\n  fail_on: new\n")
    Path("golden.jsonl").write_text(as_jsonl({"id": "q1", "query": "Why?", "expected_mode": "disputed"}))
    Path("good_run.jsonl").write_text(as_jsonl({"query_id": "q1", **then}))
    Path("current_run.jsonl").write_text(as_jsonl({"query_id": "q1", **now}))
    if stored:
        assert rag_contract("baseline", "--run", "good_run.jsonl").code == 0
    assert rag_contract("check", "--baseline", "baseline.json" if stored else "good_run.jsonl").code == code


def test_an_application_that_failed_is_not_known_as_broken() -> None:
    configured("per_query:\n  fail_on: new\n")
    Path("golden.jsonl").write_text(as_jsonl({"id": "q1", "query": "Why?", "expected_mode": "disputed"}))
    Path("current_run.jsonl").write_text(as_jsonl({"query_id": "q1", "error": "the model is down"}))
    assert (rag_contract("baseline").code, rag_contract("check", "--baseline", "current_run.jsonl").code) == (2, 2)
