"""What was accepted with a baseline is said where one looks: under the verdict. None is overwritten by mistake."""

import json
from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import files_in, rag_contract
from tests.replacing import accept, check, made, made_on, notes_everywhere, returned, stored, with_baseline
from tests.report.markdown.test_gfm import NASTY
from tests.report.page import Page

EXISTS = "exists; check the run against it with --update, or replace it without a verdict with --force"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return with_baseline(tmp_path, monkeypatch)


@pytest.mark.parametrize("rows", [[run("q1", "doc1"), run("q2", "doc2")], [run("q1", "x"), run("q2", "doc2")]])
def test_an_existing_baseline_is_not_overwritten_even_with_the_same_content(rows: list[Row], workspace: Path) -> None:
    returned(*rows)
    before = files_in(workspace)
    assert rag_contract("baseline") == (2, "", f"error: baseline.json: {EXISTS}\n")
    assert files_in(workspace) == before


def test_with_force_it_is_overwritten_and_remembers_which_one_it_replaced() -> None:
    old = stored()
    returned(run("q1", "x", "doc1"), run("q2", "doc2"))
    assert rag_contract("baseline", "--force") == (0, "baseline of 2 queries in baseline.json\n", "")
    replaces = stored()["replaces"]
    assert (replaces["created_at"], replaces["shared"]) == (old["created_at"], 2)
    assert (replaces["metrics"]["mrr_at_5"], replaces["metrics_shared"]["mrr_at_5"]) == (1.0, 0.75)


@pytest.mark.parametrize("content", ["", "{", '{"per_query": {}}', "[]"])
def test_with_force_a_file_that_is_no_baseline_is_overwritten_too(content: str) -> None:
    Path("baseline.json").write_text(content)
    assert rag_contract("baseline") == (2, "", f"error: baseline.json: {EXISTS}\n")
    assert rag_contract("baseline", "--force").code == 0
    assert "replaces" not in stored()


def test_with_force_a_bad_run_is_reported_and_the_old_baseline_stays(workspace: Path) -> None:
    returned(run("q1", "doc1"))
    before = files_in(workspace)
    ended = rag_contract("baseline", "--force")
    assert ended.code == 2
    assert ended.err.startswith("error: current_run.jsonl: has no row for golden query 'q2'")
    assert files_in(workspace) == before


def test_update_and_force_exclude_each_other() -> None:
    ended = rag_contract("baseline", "--update", "--force")
    assert (ended.code, "give one of them" in ended.err) == (2, True)


def test_a_first_baseline_replaced_none() -> None:
    assert "replaces" not in stored()
    assert notes_everywhere() == []


def test_what_was_accepted_with_the_baseline_is_said_under_the_verdict() -> None:
    accept()
    fell = "MRR@5 fell by 0.25, MAP@5 fell by 0.25, nDCG@5 fell by 0.18"
    assert notes_everywhere() == [
        f"The baseline was replaced on {made_on()}: {fell} against the older one; accepted: the new chunking"
    ]
    report = json.loads(Path("report.json").read_bytes())
    assert report["inputs"]["baseline"]["replaces"] == stored()["replaces"]


def test_a_baseline_that_is_no_worse_says_so_and_has_no_reason() -> None:
    returned(run("q1", "doc1", "x"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update").code == 0
    assert notes_everywhere() == [f"The baseline was replaced on {made_on()}: no mean fell against the older one"]


def test_a_second_update_does_not_hide_what_was_accepted_with_the_first() -> None:
    accept()
    returned(run("q1", "x", "doc1", "y"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update").code == 0
    fell = f"The baseline was replaced on {made_on()}: no mean fell against the older one"
    before = f"accepted with a baseline before it, on {made_on()}"
    assert notes_everywhere() == [f"{fell}; {before}: the new chunking"]
    returned(run("q1", "x"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update", "--accept-regressions", "cheaper").code == 0
    assert notes_everywhere()[0].endswith(f"; accepted: cheaper; {before}: the new chunking")
    returned(run("q1", "doc1"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update").code == 0
    assert notes_everywhere() == [f"{fell}; {before}: cheaper (and 1 more in report.json)"]


@pytest.mark.parametrize("at", ["2026-01-01T00:00:00+00:00", "2026-01-01", "once"])
def test_what_was_accepted_long_ago_or_at_no_known_time_is_not_said_again(at: str) -> None:
    accept()
    returned(run("q1", "x", "doc1", "y"), run("q2", "doc2"))
    assert rag_contract("baseline", "--update").code == 0
    found = stored()
    found["accepted"][0]["at"] = at
    Path("baseline.json").write_text(json.dumps(found))
    assert notes_everywhere() == [f"The baseline was replaced on {made_on()}: no mean fell against the older one"]


def test_means_of_a_replaced_baseline_are_over_the_queries_that_both_have() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc2"), golden("q3", "doc3")])
    returned(run("q1", "doc1"), run("q2", "x", "doc2"), run("q3", "x", "y", "doc3"))
    assert rag_contract("baseline", "--update", "--accept-regressions", "why").code == 0
    (note,) = notes_everywhere()
    assert "MRR@5 fell by 0.25" in note
    assert "against the older one, over 2 shared queries; accepted: why" in note


def test_a_baseline_of_long_ago_is_only_among_the_inputs() -> None:
    accept()
    made(days_ago=15)
    assert notes_everywhere() == []
    replaced = stored()["replaces"]["created_at"][:10]
    assert f", replaced the one of {replaced}" in Page(Path("report.md").read_text()).text
    assert f", replaced the one of {replaced}" in Path("report.html").read_text()


def test_with_the_contract_that_a_new_baseline_brings_its_changes_are_said() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1"), golden("q2", "doc3")])
    returned(run("q1", "doc1"), run("q2", "doc3"))
    assert rag_contract("baseline", "--update").code == 0
    assert notes_everywhere()[1:] == ["Contract changed with that baseline: 1 query relabelled (q2)"]


@pytest.mark.parametrize(("before", "now"), [(3, 5), (5, 3)])
def test_another_k_is_said_with_the_baseline_that_brings_it(before: int, now: int) -> None:
    """As long as the baseline has the older k, a note of its own says so."""
    Path("ragcontract.yml").write_text(f"k: {before}\n")
    assert rag_contract("baseline", "--force").code == 0
    Path("ragcontract.yml").write_text(f"k: {now}\n")
    out = check().out
    assert f"The baseline was made with k = {before} and is compared here at k = {now}" in out
    assert "Contract changed since" not in out
    assert rag_contract("baseline", "--update").code == 0
    assert notes_everywhere()[1:] == [f"Contract changed with that baseline: k {before} → {now}"]


def test_a_reason_cannot_act_in_any_output() -> None:
    reason = "".join(NASTY) if isinstance(NASTY, list | tuple) else str(NASTY)
    accept(f"{reason}\x1b[31m</script>\n::error::x")
    out = check().out
    assert "\x1b[31m" not in out
    assert "\n::error::x" not in out
    assert Path("report.html").read_text().lower().count("</script") == 2
    assert Page(Path("report.md").read_text()).links() == []
