"""A threshold that every value keeps to is refused in rules; a gate that never fails is a note of `lint`."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
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
