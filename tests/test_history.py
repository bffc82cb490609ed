"""What was accepted is said where one looks: a replaced baseline and a changed contract, under the verdict."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.builders import Row, as_jsonl, golden, good_workspace, run, write_jsonl
from tests.github.relayed import HEAD, relayed
from tests.github.standin import Fault, GitHub
from tests.process import Ended, files_in, rag_contract
from tests.reports.markdown.test_gfm import NASTY
from tests.reports.page import Page
from tests.runner import InProcess

EXISTS = "exists; judge the run against it with --update, or replace it without a verdict with --force"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A contract that holds, with a baseline made of its run."""
    folder = tmp_path / "contract"
    folder.mkdir()
    monkeypatch.chdir(good_workspace(folder))
    Path("baseline.json").unlink()
    assert rag_contract("baseline").code == 0
    return folder


def returned(*rows: Row) -> None:
    """Let the retriever return something else."""
    Path("current_run.jsonl").write_text(as_jsonl(*rows))


def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("baseline.json").read_bytes())
    return found


def made_on() -> str:
    """Return the date of the baseline."""
    return str(stored()["created_at"][:10])


def accept(reason: str = "the new chunking") -> Ended:
    """Replace the baseline with a run that is worse: q1's document is second."""
    returned(run("q1", "x", "doc1"), run("q2", "doc2"))
    ended = rag_contract("baseline", "--update", "--accept-regressions", reason)
    assert ended.code == 0, ended
    return ended


def made(days_ago: int) -> None:
    """Let the baseline be so many days old."""
    found = stored()
    at = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat(timespec="seconds")
    found["created_at"] = at
    Path("baseline.json").write_text(json.dumps(found))


def notes(report: str) -> list[str]:
    """Return the list under the verdict of a Markdown report."""
    return [item for item in Page(report).items if item.startswith(("The baseline was", "Contract changed"))]


def check() -> Ended:
    ended = rag_contract("check", "--report-html", "report.html")
    assert ended.code in {0, 1}, ended
    return ended


# --- an existing baseline is not overwritten


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


def notes_everywhere() -> list[str]:
    """Check, see that every output has the same notes, and return them."""
    out = check().out
    found = notes(Path("report.md").read_text())
    said = [line for line in out.splitlines() if line.startswith(("The baseline was", "Contract changed"))]
    assert said == [note.replace("\u200b", "") for note in found]
    assert out.splitlines()[len(out.splitlines()) - len(found) - 1].startswith(("PASS", "FAIL"))
    page = Page(Path("report.html").read_text().partition("</header>")[2].partition("<main>")[0]).text
    for note in said:
        assert " ".join(note.split()) in " ".join(page.split())
    suites = ET.parse("junit.xml").findall("testsuite")
    history = [one.get("value") for suite in suites for one in suite.iter("property") if one.get("name") == "history"]
    assert history == (["; ".join(said)] * 2 if said else [])
    return said


# --- a replaced baseline is said under the verdict


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


# --- a changed contract is said under the verdict

WAIVER = {"reason": "r", "owner": "o", "expires": "2099-01-01"}
RULES = {"must_rank_at_most": 2, "forbidden_doc_ids": ["x", "y"]}
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "rules removed": (RULES, {}, "2 rules removed (q1)"),
    "rules added": ({}, RULES, "2 rules added (q1)"),
    "a rank raised": (
        {"must_rank_at_most": 1},
        {"must_rank_at_most": 3},
        "must_rank_at_most raised for 1 query (q1: 1 → 3)",
    ),
    "a rank lowered": (
        {"must_rank_at_most": 3},
        {"must_rank_at_most": 1},
        "must_rank_at_most lowered for 1 query (q1: 3 → 1)",
    ),
    "relabelled": ({}, {"relevant_doc_ids": ["other"]}, "1 query relabelled (q1)"),
    "fewer documents": (
        {"relevant_doc_ids": ["doc1", "b"]},
        {},
        "1 query relabelled with fewer relevant documents (q1: 2 → 1 documents)",
    ),
    "no document": (
        {},
        {"relevant_doc_ids": []},
        "1 query relabelled with fewer relevant documents (q1: 1 → 0 documents)",
    ),
    "must_include_any": (
        {"relevant_doc_ids": ["doc1", "b"]},
        {"relevant_doc_ids": ["doc1", "b"], "must_include_any": True},
        "must_include_any added to 1 query (q1)",
    ),
    "without must_include_any": (
        {"must_include_any": True},
        {},
        "must_include_any removed from 1 query (q1)",
    ),
    "fewer forbidden": (
        {"forbidden_doc_ids": ["x", "y"]},
        {"forbidden_doc_ids": ["y"]},
        "fewer forbidden documents for 1 query (q1: 2 → 1 documents)",
    ),
    "more forbidden": (
        {"forbidden_doc_ids": ["x"]},
        {"forbidden_doc_ids": ["x", "y"]},
        "more forbidden documents for 1 query (q1: 1 → 2 documents)",
    ),
    "other forbidden": (
        {"forbidden_doc_ids": ["x"]},
        {"forbidden_doc_ids": ["y"]},
        "other forbidden documents for 1 query (q1)",
    ),
    "to warn": ({}, {"severity": "warn"}, "severity lowered to warn for 1 query (q1)"),
    "to error": ({"severity": "warn"}, {}, "severity raised to error for 1 query (q1)"),
    "a weight": ({}, {"weight": 0.5}, "weight changed for 1 query (q1: 1 → 0.5)"),
    "tags": ({"tags": ["a"]}, {"tags": ["b"]}, "tags changed for 1 query (q1)"),
    "grades": ({"relevance": {"doc1": 2}}, {"relevance": {"doc1": 1}}, "grades changed for 1 query (q1)"),
}


@pytest.mark.parametrize(("before", "now", "said"), ROWS.values(), ids=ROWS.keys())
def test_what_changed_in_a_golden_row_is_named(before: dict[str, Any], now: dict[str, Any], said: str) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1") | before, golden("q2", "doc2")])
    assert rag_contract("baseline", "--force").code == 0
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1") | now, golden("q2", "doc2")])
    changed = [note for note in notes_everywhere() if "since" in note]
    assert changed == [f"Contract changed since the baseline: {said}"]


CONFIGS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a minimum lowered": (
        {"minimums": {"recall_at_k": 0.9}},
        {"minimums": {"recall_at_k": 0.8}},
        "weaker: minimum of Recall@5 0.90 → 0.80",
    ),
    "a minimum raised": (
        {"minimums": {"recall_at_k": 0.8}},
        {"minimums": {"recall_at_k": 0.925}},
        "stricter: minimum of Recall@5 0.80 → 0.925",
    ),
    "of a tag called minimums": (
        {"tags": {"minimums": {"fail_on": {"mrr_drop_gt": 0.1}}}},
        {"tags": {"minimums": {"fail_on": {"mrr_drop_gt": 0.2}}}},
        "weaker: allowed drop of MRR@5 of minimums 0.10 → 0.20",
    ),
    "a drop raised": (
        {"fail_on": {"mrr_drop_gt": "5%"}},
        {"fail_on": {"mrr_drop_gt": "10%"}},
        "weaker: allowed drop of MRR@5 5% → 10%",
    ),
    "points to per cent": (
        {"fail_on": {"mrr_drop_gt": 0.05}},
        {"fail_on": {"mrr_drop_gt": "10%"}},
        "changed: allowed drop of MRR@5 0.05 → 10%",
    ),
    "a limit removed": ({"minimums": {"recall_at_k": 0.9}}, {}, "weaker: 1 limit removed (minimums.recall_at_k 0.9)"),
    "a limit added": ({}, {"minimums": {"recall_at_k": 0.9}}, "stricter: 1 limit added (minimums.recall_at_k 0.9)"),
    "a rule off": (
        {},
        {"per_query": {"enforce_must_include": False}},
        "weaker: per_query.enforce_must_include turned off",
    ),
    "a rule on": (
        {"per_query": {"enforce_must_include": False}},
        {},
        "stricter: per_query.enforce_must_include turned on",
    ),
    "searched less deep": ({}, {"per_query": {"forbidden_within": 3}}, "weaker: per_query.forbidden_within none → 3"),
    "only significant drops": ({}, {"fail_on": {"mode": "significant"}}, "weaker: fail_on.mode strict → significant"),
    "a smaller alpha": ({}, {"fail_on": {"alpha": 0.01}}, "weaker: fail_on.alpha 0.05 → 0.01"),
    "missing queries": ({}, {"missing_queries": "zero"}, "weaker: missing_queries error → zero"),
    "ranks of documents": ({}, {"rank_by": "documents"}, "changed: rank_by results → documents"),
    "a waiver": (
        {},
        {"waivers": [{"query": "q1", "rule": "must_include", **WAIVER}]},
        "weaker: 1 waiver added (must_include of query q1 until 2099-01-01)",
    ),
    "a longer waiver": (
        {"waivers": [{"tag": "minimums", **WAIVER}]},
        {"waivers": [{"tag": "minimums", **WAIVER, "expires": "2099-02-01"}]},
        "weaker: 1 waiver extended (tag minimums: 2099-01-01 → 2099-02-01)",
    ),
    "a shorter waiver": (
        {"waivers": [{"query": "q1", **WAIVER}]},
        {"waivers": [{"query": "q1", **WAIVER, "expires": "2098-01-01"}]},
        "stricter: 1 waiver shortened (query q1: 2099-01-01 → 2098-01-01)",
    ),
    "a waiver less": ({"waivers": [{"gate": "x", **WAIVER}]}, {}, "stricter: 1 waiver removed (gate x)"),
}


@pytest.mark.parametrize(("before", "now", "said"), CONFIGS.values(), ids=CONFIGS.keys())
def test_what_changed_in_the_configuration_is_named(before: dict[str, Any], now: dict[str, Any], said: str) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", tags=["minimums"]), golden("q2", "doc2")])
    Path("ragcontract.yml").write_text(json.dumps(before))
    assert rag_contract("baseline", "--force").code == 0
    Path("ragcontract.yml").write_text(json.dumps(now))
    changed = [note for note in notes_everywhere() if "since" in note]
    effect, _, text = said.partition(": ")
    assert changed == [f"Contract changed since the baseline: {text}"]
    (change,) = json.loads(Path("report.json").read_bytes())["inputs"]["baseline"]["contract_changes"]
    assert change["effect"] == effect


def test_changes_of_one_pull_request_are_one_sentence_weaker_first() -> None:
    wanted = [f"q{number}" for number in range(8)]
    write_jsonl(Path("golden.jsonl"), [golden(one, "doc1", must_rank_at_most=3) for one in wanted])
    Path("ragcontract.yml").write_text("minimums: {recall_at_k: 0.9}\n")
    returned(*(run(one, "doc1") for one in wanted))
    assert rag_contract("baseline", "--force").code == 0
    rows = [golden(one, "doc1") for one in wanted[:6]] + [golden("q6", "doc9", must_rank_at_most=2)]
    write_jsonl(Path("golden.jsonl"), rows)
    Path("ragcontract.yml").write_text("minimums: {recall_at_k: 0.8}\n")
    returned(*(run(one, "doc1") for one in wanted))
    assert notes_everywhere()[-1] == (
        "Contract changed since the baseline: 1 query removed, 6 rules removed (q0, q1, q2, q3, q4 and 1 more in "
        "report.json), minimum of Recall@5 0.90 → 0.80, 1 query relabelled (q6), must_rank_at_most lowered for 1 query "
        "(q6: 3 → 2)"
    )
    changes = json.loads(Path("report.json").read_bytes())["inputs"]["baseline"]["contract_changes"]
    assert changes[1] == {
        "kind": "rules_removed",
        "effect": "weaker",
        "count": 6,
        "items": [{"id": one} for one in wanted[:6]],
    }
    assert changes[2]["items"] == [{"id": "minimums.recall_at_k", "before": 0.9, "after": 0.8}]


def test_labels_that_were_searched_for_to_have_the_same_short_digest_are_a_change() -> None:
    # The first 48 bits of their digests are equal, which takes a minute to find.
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc_a", "n8354696", must_include_any=True), golden("q2", "doc2")])
    returned(run("q1", "doc_a"), run("q2", "doc2"))
    assert rag_contract("baseline", "--force").code == 0
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc_b", "n4702687", must_include_any=True), golden("q2", "doc2")])
    returned(run("q1", "doc_b"), run("q2", "doc2"))
    assert notes_everywhere()[-1] == "Contract changed since the baseline: 1 query relabelled (q1)"


def test_the_order_of_rows_documents_and_tags_is_no_change() -> None:
    rows = [golden("q1", "doc1", "b", tags=["t", "u"], forbidden_doc_ids=["x", "y"]), golden("q2", "doc2")]
    write_jsonl(Path("golden.jsonl"), rows)
    assert rag_contract("baseline", "--force").code == 0
    again = golden("q1", "b", "doc1", tags=["u", "t"], forbidden_doc_ids=["y", "x"], weight=1, severity="error")
    write_jsonl(Path("golden.jsonl"), [rows[1], again])
    assert [note for note in notes_everywhere() if "since" in note] == []
    report = json.loads(Path("report.json").read_bytes())
    assert report["inputs"]["baseline"]["contract_changes"] == []


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"recall_at_k": 0.8}, {"recall_at_5": 0.8}, []),
        ({"recall_at_5": 0.8}, {"recall_at_k": 0.7}, ["minimum of Recall@5 0.80 → 0.70"]),
        ({"recall_at_k": 0.8}, {"recall_at_1": 0.8}, ["1 limit removed (", "1 limit added ("]),
    ],
)
def test_a_limit_under_its_other_key_is_the_same_limit(
    before: dict[str, float], now: dict[str, float], said: list[str]
) -> None:
    Path("ragcontract.yml").write_text(json.dumps({"k": [1, 5], "minimums": before}))
    assert rag_contract("baseline", "--force").code == 0
    Path("ragcontract.yml").write_text(json.dumps({"k": [1, 5], "minimums": now}))
    found = [note for note in notes_everywhere() if note.startswith("Contract changed since")]
    assert bool(found) is bool(said)
    assert all(part in found[0] for part in said)


def test_grades_that_say_no_more_than_the_relevant_documents_are_no_change() -> None:
    graded = golden("q1", "doc1", "b", relevance={"doc1": 2, "b": 1, "c": 0})
    write_jsonl(Path("golden.jsonl"), [graded, golden("q2", "doc2")])
    assert rag_contract("baseline", "--force").code == 0
    again = [golden("q1", "doc1", "b", relevance={"b": 1, "doc1": 2}), golden("q2", "doc2", relevance={"doc2": 1})]
    write_jsonl(Path("golden.jsonl"), again)
    assert [note for note in notes_everywhere() if "since" in note] == []
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", "b"), again[1]])
    assert notes_everywhere()[-1] == "Contract changed since the baseline: grades changed for 1 query (q1)"


def test_a_reworded_question_does_not_hide_that_its_rule_is_gone() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", must_rank_at_most=1), golden("q2", "doc2")])
    assert rag_contract("baseline", "--force").code == 0
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1") | {"query": "Reworded?"}, golden("q2", "doc2")])
    assert notes_everywhere()[-1] == "Contract changed since the baseline: 1 question changed (q1), 1 rule removed (q1)"


def test_a_question_with_one_more_blank_does_not_leave_the_comparison_unseen() -> None:
    Path("ragcontract.yml").write_text("fail_on: {mrr_drop_gt: 0.1}\nper_query: {enforce_must_include: false}\n")
    assert rag_contract("baseline", "--force").code == 0
    returned(run("q1", "x", "y", "doc1"), run("q2", "doc2"))
    assert rag_contract("check").code == 1
    asked = golden("q1", "doc1")
    write_jsonl(Path("golden.jsonl"), [asked | {"query": asked["query"] + " "}, golden("q2", "doc2")])
    returned(run("q1", "x", "y", "doc1"), run("q2", "doc2"))
    assert notes_everywhere()[-1] == "Contract changed since the baseline: 1 question changed (q1)"
    (change,) = json.loads(Path("report.json").read_bytes())["inputs"]["baseline"]["contract_changes"]
    assert (change["kind"], change["effect"]) == ("questions_changed", "weaker")


def test_an_update_with_a_changed_contract_writes_it_and_the_note_is_gone() -> None:
    Path("ragcontract.yml").write_text("minimums: {recall_at_k: 0.5}\n")
    ended = rag_contract("baseline", "--update")
    assert ended.out.endswith("\nbaseline of 2 queries in baseline.json\n")
    assert "Contract changed since the baseline: 1 limit removed" in ended.out
    assert [note for note in notes_everywhere() if "since" in note] == []


@pytest.mark.parametrize("kind", ["a run", "an older baseline"])
def test_of_a_run_and_an_older_baseline_the_contract_is_not_known(kind: str) -> None:
    if kind == "a run":
        Path("base.jsonl").write_bytes(Path("current_run.jsonl").read_bytes())
        Path("baseline.json").unlink()
    else:
        found = stored()
        del found["contract"]
        Path("baseline.json").write_text(json.dumps(found))
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", "b", must_include_any=True), golden("q2", "doc2")])
    ended = rag_contract("check", *(["--baseline", "base.jsonl"] if kind == "a run" else []))
    assert (ended.code, "Contract changed" in ended.out) == (0, False)
    assert "contract_changes" not in json.loads(Path("report.json").read_bytes())["inputs"]["baseline"]
    report = Path("report.md").read_text()
    assert notes(report) == []
    assert "its contract is not known" in report


def test_the_baseline_has_no_texts_of_the_contract() -> None:
    rows = [golden("q1", "secret-doc", forbidden_doc_ids=["hidden-doc"], tags=["internal"]), golden("q2", "doc2")]
    write_jsonl(Path("golden.jsonl"), rows)
    waiver = {"query": "q1", "reason": "a private reason", "owner": "ann", "expires": "2099-01-01"}
    Path("ragcontract.yml").write_text(json.dumps({"waivers": [waiver]}))
    assert rag_contract("baseline", "--force").code == 0
    found = stored()
    assert found["contract"]["waivers"] == [{"query": "q1", "expires": "2099-01-01"}]
    expects = found["queries"][0]["expects"]
    assert (expects["relevant"][0], expects["forbidden"][0]) == (1, 1)
    assert not [word for word in ("doc", "internal", "private") if word in json.dumps([expects, found["contract"]])]


# --- in a pull request


def in_a_job(runner: InProcess, workspace: Path) -> None:
    """Copy the contract into a job's workspace, in a folder of the repository."""
    (runner.workspace / ".git").mkdir()
    for file in workspace.iterdir():
        if file.suffix in {".json", ".jsonl", ".yml"} and file.name != "report.json":
            (runner.workspace / "rag").mkdir(exist_ok=True)
            (runner.workspace / "rag" / file.name).write_bytes(file.read_bytes())
    runner.now = datetime.now(UTC)


IN_FOLDER = {"working-directory": "rag"}


@pytest.fixture
def runner(tmp_path: Path, github: GitHub, workspace: Path) -> InProcess:
    accept()
    made = InProcess(tmp_path / "job", github)
    in_a_job(made, workspace)
    return made


def test_a_comment_says_in_this_pull_request_where_github_lists_the_file(runner: InProcess, github: GitHub) -> None:
    github.files = [*(f"docs/{number}.md" for number in range(120)), "rag/baseline.json"]
    result = runner.run(IN_FOLDER)
    assert result.exit_code == 0
    assert notes(github.bodies()[0])[0].startswith("The baseline was replaced in this pull request: MRR@5 fell by 0.25")
    assert notes(result.summary)[0].startswith(f"The baseline was replaced on {made_on()}: ")


def test_a_comment_does_not_blame_a_pull_request_that_leaves_the_baseline(runner: InProcess, github: GitHub) -> None:
    github.files = ["baseline.json", "rag/golden.jsonl"]
    runner.run(IN_FOLDER)
    assert notes(github.bodies()[0]) == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_where_github_does_not_say_the_comment_has_the_date(status: int, runner: InProcess, github: GitHub) -> None:
    github.faults = [Fault(method="GET", path="/files", status=status)]
    result = runner.run(IN_FOLDER)
    assert result.outputs["comment-url"]
    assert notes(github.bodies()[0])[0].startswith(f"The baseline was replaced on {made_on()}: ")
    assert sum("/files" in request for request in github.requests) == 1


def test_a_comment_that_did_not_know_is_corrected_by_the_next_run(runner: InProcess, github: GitHub) -> None:
    github.files = ["rag/baseline.json"]
    github.faults = [Fault(method="GET", path="/files", times=1)]
    for number in (100, 101):
        runner.run({**IN_FOLDER, "comment": "on-change"}, run=number)
    assert len(github.comments) == 1
    assert "in this pull request" in notes(github.bodies()[0])[0]


def test_an_old_baseline_is_said_where_an_old_pull_request_replaces_it(
    runner: InProcess, github: GitHub, workspace: Path
) -> None:
    made(days_ago=40)
    in_a_job_again = runner.workspace / "rag" / "baseline.json"
    in_a_job_again.write_bytes((workspace / "baseline.json").read_bytes())
    github.files = ["rag/baseline.json"]
    result = runner.run(IN_FOLDER)
    assert "in this pull request" in notes(github.bodies()[0])[0]
    assert notes(result.summary) == []


UNSAID = "The baseline was changed in this pull request and names no older one, so how it differs is not known"


def test_a_baseline_that_was_deleted_and_made_again_does_not_pass_for_the_older_one(
    tmp_path: Path, github: GitHub, workspace: Path
) -> None:
    returned(run("q1", "x", "doc1"), run("q2", "doc2"))
    Path("baseline.json").unlink()
    assert rag_contract("baseline").code == 0
    runner = InProcess(tmp_path / "job", github)
    in_a_job(runner, workspace)
    github.files = ["rag/baseline.json"]
    result = runner.run(IN_FOLDER)
    assert result.exit_code == 0
    assert notes(github.bodies()[0]) == [UNSAID]
    assert notes(result.summary) == []


@pytest.mark.parametrize("files", [["rag/golden.jsonl"], ["rag/baseline.json"]])
def test_a_first_baseline_and_one_that_is_left_as_it_is_need_no_note(
    files: list[str], tmp_path: Path, github: GitHub, workspace: Path
) -> None:
    runner = InProcess(tmp_path / "job", github)
    in_a_job(runner, workspace)
    github.files, github.added = files, ["rag/baseline.json"]
    runner.run(IN_FOLDER)
    assert notes(github.bodies()[0]) == []


def test_a_second_workflow_says_it_too(tmp_path: Path) -> None:
    accept()
    check()
    report = Path("report.json").read_bytes()
    with GitHub() as github:
        github.add_pull(7, sha=HEAD, head="stranger/app")
        github.files = ["baseline.json"]
        runner = InProcess(tmp_path / "second", github)
        relayed(runner, report)
        assert "in this pull request" in notes(github.bodies()[0])[0]
        github.files = ["rag/baseline.json"]  # the first workflow may have checked in a folder
        relayed(runner, report)
        assert notes(github.bodies()[-1])[0].startswith(f"The baseline was replaced on {made_on()}")
