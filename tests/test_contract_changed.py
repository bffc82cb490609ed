"""A contract that changed since its baseline is said where one looks: under the verdict."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import rag_contract, spawn
from tests.replacing import notes, notes_everywhere, returned, stored, with_baseline

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
    "fewer judged": (
        {"relevance": {"doc1": 1, "b": 0, "c": 0}},
        {"relevance": {"doc1": 1, "c": 0}},
        "fewer judged documents for 1 query (q1: 3 → 2 documents)",
    ),
    "none judged but relevant": (
        {"relevance": {"doc1": 1, "b": 0}},
        {},
        "fewer judged documents for 1 query (q1: 2 → 1 documents)",
    ),
    "other judged": (
        {"relevance": {"doc1": 1, "b": 0}},
        {"relevance": {"doc1": 1, "c": 0, "d": 0}},
        "other judged documents for 1 query (q1: 2 → 3 documents)",
    ),
    "judged and now relevant": (
        {"relevance": {"doc1": 1, "b": 0}, "relevant_doc_ids": ["doc1"]},
        {"relevance": {"doc1": 1, "b": 1}, "relevant_doc_ids": ["doc1", "b"]},
        "1 query relabelled (q1: 1 → 2 documents)",
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


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return with_baseline(tmp_path, monkeypatch)


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
    "only drops that are excluded": (
        {"fail_on": {"mode": "significant"}},
        {"fail_on": {"mode": "noninferiority"}},
        "stricter: fail_on.mode significant → noninferiority",
    ),
    "no longer excluded": (
        {"fail_on": {"mode": "noninferiority"}},
        {},
        "weaker: fail_on.mode noninferiority → strict",
    ),
    "a smaller alpha where drops must be excluded": (
        {"fail_on": {"mode": "noninferiority", "alpha": 0.05}},
        {"fail_on": {"mode": "noninferiority", "alpha": 0.01}},
        "stricter: fail_on.alpha 0.05 → 0.01",
    ),
    "a smaller alpha": ({}, {"fail_on": {"alpha": 0.01}}, "weaker: fail_on.alpha 0.05 → 0.01"),
    "missing queries": ({}, {"missing_queries": "zero"}, "weaker: missing_queries error → zero"),
    "unjudged documents": ({}, {"unjudged": "skip"}, "weaker: unjudged count → skip"),
    "limits on a judge without a calibration": (
        {},
        {"judge": {"uncalibrated": "advisory"}},
        "weaker: judge.uncalibrated refuse → advisory",
    ),
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
    "a composite removed": (
        {"answers": {"composite": {"minimum": 0.9, "metrics": ["rouge_l"]}}},
        {},
        "weaker: answers.composite.minimum 0.9 → none, answers.composite.metrics rouge_l → none",
    ),
    "a composite lowered": (
        {"answers": {"composite": {"minimum": 0.9, "metrics": ["rouge_l"]}}},
        {"answers": {"composite": {"minimum": 0.001, "metrics": ["rouge_l"]}}},
        "weaker: answers.composite.minimum 0.9 → 0.001",
    ),
    "a composite of other metrics": (
        {"answers": {"composite": {"minimum": 0.9, "metrics": ["rouge_l"]}}},
        {"answers": {"composite": {"minimum": 0.9, "metrics": ["rouge_l", "exact_match"]}}},
        "changed: answers.composite.metrics rouge_l → rouge_l, exact_match",
    ),
    "a composite added": (
        {},
        {"answers": {"composite": {"minimum": 0.9, "metrics": ["rouge_l"]}}},
        "stricter: answers.composite.metrics none → rouge_l, answers.composite.minimum none → 0.9",
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
    changes = json.loads(Path("report.json").read_bytes())["inputs"]["baseline"]["contract_changes"]
    assert effect in {change["effect"] for change in changes}


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
    graded = golden("q1", "doc1", "b", relevance={"doc1": 2, "b": 1})
    write_jsonl(Path("golden.jsonl"), [graded, golden("q2", "doc2", relevance={"doc2": 1})])
    assert rag_contract("baseline", "--force").code == 0
    again = [
        golden("q1", "doc1", "b", relevance={"b": 1, "doc1": 2}),
        golden("q2", "doc2", relevance={"doc2": 1, "c": 0}),
    ]
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


@pytest.mark.parametrize(("now", "said"), [("other", "reference changed for"), (None, "reference removed from")])
def test_the_label_that_was_expected_is_named(now: str | None, said: str) -> None:
    """A run that chooses another class must not pass unseen because the pull request expects that class."""
    rows = [golden("q1", "doc1", expected_label="refund"), golden("q2", "doc2", expected_label="billing")]
    write_jsonl(Path("golden.jsonl"), rows)
    Path("ragcontract.yml").write_text("minimums: {label_accuracy: 1}\n")
    returned(run("q1", "doc1", label="refund"), run("q2", "doc2", label="billing"))
    assert rag_contract("baseline", "--force").code == 0
    returned(run("q1", "doc1", label="refund"), run("q2", "doc2", label="other"))
    assert rag_contract("check").code == 1
    rows[1] = golden("q2", "doc2", **({"expected_label": now} if now else {}))
    write_jsonl(Path("golden.jsonl"), rows)
    (note,) = [note for note in notes_everywhere() if "since" in note]
    assert note == f"Contract changed since the baseline: {said} 1 query (q2)"


@pytest.mark.parametrize("now", ["disputed", None])
def test_a_mode_that_was_expected_is_named_once(now: str | None) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", "doc1", expected_mode="trustworthy"), golden("q2", "doc2")])
    returned(run("q1", "doc1", mode="trustworthy", response="Yes."), run("q2", "doc2"))
    assert rag_contract("baseline", "--force").code == 0
    write_jsonl(
        Path("golden.jsonl"), [golden("q1", "doc1", **({"expected_mode": now} if now else {})), golden("q2", "doc2")]
    )
    returned(run("q1", "doc1", mode=now or "trustworthy", response="Yes."), run("q2", "doc2"))
    (note,) = [note for note in notes_everywhere() if "since" in note]
    assert note == f"Contract changed since the baseline: 1 rule {'changed' if now else 'removed'} (q1)"


def test_with_the_golden_files_of_the_baseline_no_query_is_compared_by_itself(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1")])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1")])
    assert spawn("baseline", cwd=tmp_path).code == 0
    before = (tmp_path / "baseline.json").read_text()

    def changes() -> list[str]:
        assert spawn("check", cwd=tmp_path).code == 0
        found = json.loads((tmp_path / "report.json").read_text())["inputs"]["baseline"]["contract_changes"]
        return [change["kind"] for change in found]

    # An expectation that the golden file never had shows whether it was looked at.
    edited = before.replace('"relevant":[1,', '"must_rank_at_most":1,"relevant":[1,')
    assert edited != before
    (tmp_path / "baseline.json").write_text(edited)
    assert changes() == []
    (tmp_path / "golden.jsonl").write_text((tmp_path / "golden.jsonl").read_text() + "\n")
    assert changes() == ["rules_removed"]


def test_a_worse_answer_does_not_pass_unseen_because_the_composite_is_gone(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1", reference="thirty days")])
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1", response="thirty days")])
    config = "metrics: {rouge_l: {}}\n"
    composite = "answers: {composite: {minimum: 0.9, metrics: [rouge_l]}}\n"
    (tmp_path / "ragcontract.yml").write_text(config + composite)
    assert spawn("baseline", cwd=tmp_path).code == 0
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1", response="nothing of it")])
    assert spawn("check", cwd=tmp_path).code == 1
    (tmp_path / "ragcontract.yml").write_text(config)
    said = "answers.composite.minimum 0.9 → none, answers.composite.metrics rouge_l → none"
    ended = spawn("check", cwd=tmp_path)
    assert (ended.code, f"Contract changed since the baseline: {said}" in ended.out) == (0, True), ended
    ended = spawn("baseline", "--update", cwd=tmp_path)
    assert (ended.code, said in ended.out) == (0, True), ended
    stored = json.loads((tmp_path / "baseline.json").read_text())["replaces"]["contract_changes"]
    assert [change["kind"] for change in stored] == ["settings_weakened", "settings_changed"]


def test_with_another_relevance_level_the_same_golden_files_are_compared(tmp_path: Path) -> None:
    write_jsonl(
        tmp_path / "golden.jsonl", [golden("q1", relevance={"doc1": 2, "doc2": 1}) | {"relevant_doc_ids": None}]
    )
    write_jsonl(tmp_path / "current_run.jsonl", [run("q1", "doc1", "doc2")])
    assert spawn("baseline", cwd=tmp_path).code == 0
    (tmp_path / "ragcontract.yml").write_text("relevance_level: 2\n")
    assert spawn("check", cwd=tmp_path).code == 0
    found = json.loads((tmp_path / "report.json").read_text())["inputs"]["baseline"]["contract_changes"]
    assert [change["kind"] for change in found] == ["settings_weakened"]
