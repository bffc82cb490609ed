"""A threshold that every value keeps to is refused in rules; a gate that never fails is a note of `lint`."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

Rule = dict[str, Any]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def checked(rule: Rule, worst: float, declared: str) -> Ended:
    """Check a run with one score against a rule on it; ``declared`` says its scale and which way is better."""
    write_jsonl(Path("golden.jsonl"), [golden("q1", rules=[rule])])
    write_jsonl(Path("current_run.jsonl"), [run("q1", response="Yes.", scores={"faithfulness": worst})])
    Path("ragcontract.yml").write_text(f"metrics: {{faithfulness: {{from: scores{declared}}}}}\n")
    return rag_contract("check")


def risk(**threshold: float) -> Rule:
    return {"type": "max_hallucination_risk", **threshold}


def least(value: float) -> Rule:
    return {"type": "min_score", "metric": "faithfulness", "value": value}


def most(value: float) -> Rule:
    return {"type": "max_score", "metric": "faithfulness", "value": value}


LOWER = ", better: lower"


@pytest.mark.parametrize(
    ("rule", "worst", "declared", "message"),
    [
        (risk(threshold=1), 1, ", scale: [1, 5]", "threshold: is a fraction, but the scale of faithfulness is 1 to 5"),
        (risk(threshold=1), 2, ", scale: [0, 100]", "threshold: is a fraction, but the scale of faithfulness is 0"),
        (risk(), -1, ", scale: [-1, 1]", "threshold: is a fraction, but the scale of faithfulness is -1 to 1"),
        (risk(threshold=0.9), 1, LOWER, "rules[0]: of faithfulness, lower is better: write max_score"),
        (risk(threshold=0.9), 5, f"{LOWER}, scale: [1, 5]", "rules[0]: of faithfulness, lower is better"),
        (risk(threshold=0), 0, "", "threshold: expected a fraction above 0, which every value reaches"),
        (risk(threshold=1e-10), 0, "", "threshold: expected a fraction above 0, which every value reaches"),
        (least(0), 0, "", "value: expected a number above 0, found 0: every value from 0 to 1, the scale of"),
        (least(1), 1, ", scale: [1, 5]", "value: expected a number above 1, found 1: every value from 1 to 5"),
        (least(-1), -1, ", scale: [-1, 1]", "value: expected a number above -1, found -1"),
        (least(1e-10), 0, "", "value: expected a number above 0, found 1e-10"),
        (least(-3), 0, "", "value: expected a number from 0 to 1, the scale of faithfulness, found -3"),
        (most(1), 1, LOWER, "value: expected a number below 1, found 1: every value from 0 to 1"),
        (most(100), 100, f"{LOWER}, scale: [0, 100]", "value: expected a number below 100, found 100"),
        (
            {"type": "composite", "minimum": 0, "metrics": ["faithfulness"]},
            0,
            "",
            "minimum: expected a fraction above 0, which every value reaches",
        ),
        (
            {"type": "max_chars", "value": 1 << 20},
            0,
            "",
            "value: expected a whole number from 1 to 1,048,575, found 1048576",
        ),
    ],
)
def test_a_rule_that_can_never_be_broken_is_refused(rule: Rule, worst: float, declared: str, message: str) -> None:
    ended = checked(rule, worst, declared)
    assert ended.code == 2
    assert "error: golden.jsonl:1: rules[0]" in ended.err
    assert message in ended.err


@pytest.mark.parametrize(
    ("rule", "worst", "declared"),
    [
        (risk(), 0.69, ""),
        (risk(threshold=1), 0.99, ""),
        (risk(threshold=0.01), 0, ""),
        (least(5), 4.9, ", scale: [1, 5]"),
        (least(1.1), 1, ", scale: [1, 5]"),
        (most(0), 0.1, LOWER),
        (most(0.99), 1, LOWER),
    ],
)
def test_a_rule_that_some_value_breaks_is_judged(rule: Rule, worst: float, declared: str) -> None:
    assert checked(rule, worst, declared).code == 1


def test_a_composite_of_the_configuration_that_every_mean_reaches_is_refused() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1")])
    Path("ragcontract.yml").write_text("answers:\n  composite: {minimum: 0, metrics: [mode_accuracy]}\n")
    ended = rag_contract("validate", "--without-run")
    message = "ragcontract.yml:2: answers.composite.minimum: expected a fraction above 0, which every mean reaches"
    assert (ended.code, message in ended.err) == (2, True)


@pytest.mark.parametrize(
    ("threshold", "measure"), [("0", "coverage"), ("1e-10", "coverage"), ("0", "jaro"), ("-1", "jaro")]
)
def test_a_threshold_with_which_every_context_counts_is_refused(threshold: str, measure: str) -> None:
    row = golden("q1", reference_contexts=["Refunds take thirty days."])
    write_jsonl(Path("golden.jsonl"), [row])
    write_jsonl(Path("current_run.jsonl"), [run("q1", retrieved_contexts=["Nothing like that."])])
    limits = "minimums: {context_recall_text: 0.5}\n"
    options = "metrics:\n  context_recall_text: {measure: %s, threshold: %s}\n"
    Path("ragcontract.yml").write_text(options % (measure, threshold) + limits)
    ended = rag_contract("check")
    message = "ragcontract.yml:2: metrics.context_recall_text.threshold: expected a number above 0, with which every"
    assert (ended.code, message in ended.err) == (2, True)
    Path("ragcontract.yml").write_text(options % ("coverage", "0.01") + limits)
    assert rag_contract("check").code == 1


CONFIG = """\
metrics: {rating: {from: scores, scale: [1, 5]}, toxicity: {from: scores, better: lower}}
minimums: {recall_at_k: 0, mrr_at_k: 0.01, rating: 1, pass_rate: 0}
maximums: {toxicity: 1}
fail_on:
  mrr_drop_gt: 1
  recall_drop_gt: "100%"
  ndcg_drop_gt: "99%"
  rating_drop_gt: 4
  toxicity_rise_gt: "100%"
tags: {t: {minimums: {recall_at_k: 0}}}
"""


def test_a_review_notes_the_gates_that_never_fail() -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q1", tags=["t"])])
    Path("ragcontract.yml").write_text(CONFIG)
    ended = rag_contract("lint", "--without-run", "--strict")
    notes = [line for line in ended.out.splitlines() if "[limit-never-fails]" in line]
    assert ended.code == 0
    assert [line.split("] ")[1].split(": ")[0] for line in notes] == [
        "fail_on.mrr_drop_gt",
        "fail_on.recall_drop_gt",
        "minimums.recall_at_k",
        "fail_on.rating_drop_gt",
        "minimums.rating",
        "maximums.toxicity",
        "minimums.pass_rate",
        "tags.t.minimums.recall_at_k",
    ]


OFF = "per_query: {enforce_must_include: false, enforce_forbidden: false, enforce_rank: false}\n"
ASKED = {"id": "q1", "query": "Why?"}
CLASS = {"expected_label": "refund"}
CALLS = {"reference_tool_calls": [{"name": "refund"}]}


@pytest.mark.parametrize(
    ("row", "config", "idle"),
    [
        (golden(), "", False),
        (golden(), "per_query: {enforce_must_include: false}\n", True),
        (golden(), "per_query: {enforce_must_include: false}\nminimums: {recall_at_k: 0}\n", True),
        (golden(), "per_query: {enforce_must_include: false}\nminimums: {recall_at_k: 0.1}\n", False),
        (golden(), "per_query: {enforce_must_include: false}\nlatency: {p95_ms: 900}\n", False),
        (golden(severity="warn"), "", True),
        (golden(severity="warn"), "minimums: {pass_rate: 0.9}\n", True),
        (golden(severity="warn"), "fail_on: {mrr_drop_gt: 0.1}\n", False),
        (golden() | {"relevant_doc_ids": []}, "", True),
        (golden(forbidden_doc_ids=["secret"]) | {"relevant_doc_ids": []}, "", False),
        (ASKED | CLASS, "", True),
        (ASKED | CLASS, "minimums: {label_accuracy: 0.9}\n", False),
        (ASKED | CALLS, "", True),
        (ASKED | {"expected_mode": "abstain"}, "", False),
        (ASKED | {"answer_must_include": ["thirty"]}, "", False),
        (ASKED | {"turns": [{"query": "Why?", "rules": [{"type": "must_not_refuse"}]}]}, "", False),
    ],
)
def test_a_contract_in_which_nothing_can_fail_is_a_finding(row: Row, config: str, *, idle: bool) -> None:
    write_jsonl(Path("golden.jsonl"), [row])
    Path("ragcontract.yml").write_text(config or "k: 5\n")
    ended = rag_contract("lint", "--without-run", "--strict")
    assert (ended.code, "[nothing-can-fail] nothing in this contract can fail" in ended.out) == (int(idle), idle)


@pytest.mark.parametrize(
    ("fields", "config", "unused"),
    [
        (CLASS, "", "expected_label"),
        (CLASS, "minimums: {label_accuracy: 0.9}\n", None),
        (CLASS, "minimums: {label_macro_f1: 0.9}\n", None),
        (CALLS, "minimums: {exact_match: 0.9}\n", "reference_tool_calls"),
        (CALLS, "minimums: {tool_f1: 0.9}\n", None),
        (CALLS, "answers: {composite: {metrics: [tool_f1], minimum: 0.8}}\n", None),
        (CALLS | {"rules": [{"type": "min_score", "metric": "tool_f1", "value": 0.5}]}, "", None),
        ({"reference": "thirty days"}, "", "reference"),
        ({"reference": "thirty days"}, "fail_on: {rouge_l_drop_gt: 0.1}\n", None),
        ({"reference_contexts": ["thirty days"]}, "", "reference_contexts"),
        ({"reference_contexts": ["thirty days"]}, "minimums: {context_recall_text: 0.9}\n", None),
        ({"criteria": ["It is short."]}, "", "criteria"),
        ({"criteria": ["It is short."]}, "judge: {metrics: [criteria_met]}\n", None),
        ({"criteria": ["It is short."]}, "minimums: {criteria_met: 0.9}\n", None),
        ({"reference": "a b", "reference_claims": ["a b"]}, "minimums: {context_recall: 0.9}\n", None),
        ({"expected_mode": "abstain"}, "", None),
    ],
)
def test_a_review_notes_what_queries_expect_and_nothing_uses(fields: Row, config: str, unused: str | None) -> None:
    write_jsonl(Path("golden.jsonl"), [golden("q0"), golden("q1", **fields)])
    Path("ragcontract.yml").write_text(config or "k: 5\n")
    lines = [line for line in rag_contract("lint", "--without-run").out.splitlines() if "[field-not-used]" in line]
    said = f"golden.jsonl:2: [field-not-used] 1 query has {unused}, and no limit, rule or judgment uses it; limit a"
    assert [line.startswith(said) for line in lines] == [True] * (unused is not None)
