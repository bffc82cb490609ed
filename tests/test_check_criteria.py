"""``check --judgments`` with criteria: a judged metric beside context recall, each with a calibration of its own."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.judgments.items import Item, JudgeCase
from ragcontract.judgments.judgments_file import write_judgments
from tests.builders import write_jsonl
from tests.judged_checks import BOTH, check, errors, report
from tests.judgment_files import CONTEXT, FALSE, TRUE, case_of, fingerprint_of, judgments_on, write_good_calibration
from tests.process import rag_contract

POLITE, FREE = "Is polite.", "Returns are free."
ANSWER = f"Good question. {FREE}"
MINIMUM = "minimums: {criteria_met: 0.5}\n"


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workspace(folder: Path, config: str, *answers: str | None, **fields: Any) -> list[JudgeCase]:
    """Write a contract with two criteria for each answer, and return what is to be judged."""
    queries = [{"id": f"q{at}", "query": "?", "criteria": [FREE, POLITE], **fields} for at in range(len(answers))]
    write_jsonl(folder / "golden.jsonl", queries)
    rows = [
        {"query_id": f"q{at}", "response": text, "retrieved_contexts": [CONTEXT]} for at, text in enumerate(answers)
    ]
    write_jsonl(folder / "current_run.jsonl", rows)
    (folder / "ragcontract.yml").write_text(config or "k: 5\n")
    items = tuple(Item(name=f"criterion:{at}", text=text) for at, text in enumerate((FREE, POLITE), 1))
    return [
        JudgeCase(
            task="criteria", query_id=f"q{at}", question="?", items=items, contexts=(CONTEXT,), response=text or ""
        )
        for at, text in enumerate(answers)
    ]


def judge(folder: Path, *cases: JudgeCase, **fields: Any) -> None:
    write_judgments(str(folder / "judgments.jsonl"), [one for case in cases for one in judgments_on(case, **fields)])


def test_a_minimum_holds_or_not_by_what_a_calibrated_judge_said(folder: Path) -> None:
    judge(folder, *workspace(folder, MINIMUM, ANSWER, f"{FREE} {POLITE}"))
    write_good_calibration(folder, tasks=["criteria"])
    assert check(*BOTH).code == 0
    assert report(folder)["metrics"]["criteria_met"]["current"] == 0.75
    judge(folder, *workspace(folder, MINIMUM, ANSWER, "No."))
    ended = check(*BOTH)
    assert (ended.code, "Criteria met (judged)  0.25  FAIL" in ended.out) == (1, True), ended


def test_no_answer_meets_no_criterion_and_needs_no_judgment(folder: Path) -> None:
    cases = workspace(folder, MINIMUM.replace("0.5", "0.25"), ANSWER, None)
    judge(folder, cases[0])
    write_good_calibration(folder, tasks=["criteria"])
    assert check(*BOTH).code == 0
    assert report(folder)["metrics"]["criteria_met"]["current"] == 0.25
    assert "**`q1`** 0 of 2 criteria met: there is no answer" in (folder / "report.md").read_text()


def test_without_judgments_a_limit_says_what_to_run(folder: Path) -> None:
    workspace(folder, MINIMUM, ANSWER)
    (error,) = errors(check())
    assert error.startswith("ragcontract.yml:1: minimums.criteria_met cannot be judged: it needs what a judge said")


def test_a_criterion_without_a_verdict_is_an_error_that_names_it(folder: Path) -> None:
    nothing: dict[str, Any] = {
        "verdict": None,
        "votes": (),
        "quote": None,
        "status": "unsure",
        "reason": "No majority.",
    }
    judge(folder, *workspace(folder, MINIMUM, ANSWER), **nothing)
    write_good_calibration(folder, tasks=["criteria"])
    (error,) = errors(check(*BOTH))
    assert "no verdict on 2 of 2 items: criterion:1, criterion:2 (unsure: No majority.)" in error


def test_a_judgment_on_another_answer_is_no_judgment(folder: Path) -> None:
    judge(folder, *workspace(folder, MINIMUM, ANSWER))
    write_good_calibration(folder, tasks=["criteria"])
    workspace(folder, MINIMUM, f"{ANSWER} Bye.")
    (error,) = errors(check(*BOTH))
    assert "its criteria, question, answer or retrieved texts have changed since" in error


def test_a_limit_counts_only_with_a_calibration_for_criteria(folder: Path) -> None:
    cases = workspace(folder, MINIMUM, "No.")
    judge(folder, *cases)
    write_good_calibration(folder, tasks=["attribution"])
    (error,) = errors(check(*BOTH))
    assert (
        "minimums.criteria_met cannot be judged: the judge is not calibrated: the calibration is of attribution"
        in error
    )
    workspace(folder, f"{MINIMUM}judge: {{uncalibrated: advisory}}\n", "No.")
    ended = check(*BOTH)
    assert (ended.code, "minimums.criteria_met is shown without effect" in ended.err) == (0, True), ended
    (gate,) = report(folder)["gates"]
    assert (gate["status"], gate["observed"]) == ("skipped", 0)
    assert (
        "Limits on it do not count: the calibration is of attribution, and there is none for criteria"
        in (folder / "report.md").read_text()
    )


def both_tasks(folder: Path, config: str) -> None:
    cases = workspace(folder, config, ANSWER, reference_claims=[TRUE, FALSE])
    claims = case_of({"id": "q0", "query": "?", "reference_claims": [TRUE, FALSE]})
    judge(folder, *cases, claims)


def test_each_task_is_trusted_by_its_own_calibration(folder: Path) -> None:
    both = "minimums: {criteria_met: 0.9, context_recall: 0.9}\njudge: {uncalibrated: advisory}\n"
    both_tasks(folder, both)
    write_good_calibration(folder, tasks=["attribution"])
    assert check(*BOTH).code == 1
    found = report(folder)
    assert {gate["metric"]: gate["status"] for gate in found["gates"]} == {
        "criteria_met": "skipped",
        "context_recall": "fail",
    }
    recall, criteria = found["judge"]["tasks"]
    assert (recall["task"], recall["why_not"], round(recall["kappa"], 2)) == ("attribution", [], 0.9)
    assert (criteria["task"], criteria["kappa"], len(criteria["why_not"])) == ("criteria", None, 1)
    write_good_calibration(folder, tasks=["attribution", "criteria"])
    assert check(*BOTH).code == 1
    assert [gate["status"] for gate in report(folder)["gates"]] == ["fail", "fail"]


def test_only_what_somebody_has_judged_is_shown_without_a_limit(folder: Path) -> None:
    cases = workspace(folder, "", ANSWER, reference_claims=[TRUE])
    judge(folder, *cases)
    assert check("--judgments", "judgments.jsonl").code == 0
    metrics = report(folder)["metrics"]
    assert (metrics["criteria_met"]["current"], "context_recall" in metrics) == (0.5, False)
    workspace(folder, "judge: {metrics: [context_recall]}\n", ANSWER, reference_claims=[TRUE])
    (error,) = errors(check("--judgments", "judgments.jsonl"))
    assert "has no judgments on its reference_claims" in error


def test_a_drop_is_compared_with_a_baseline_of_the_same_judge(folder: Path) -> None:
    drop = "fail_on: {criteria_met_drop_gt: 0.1}\n"
    judge(folder, *workspace(folder, drop, ANSWER))
    write_good_calibration(folder, tasks=["criteria"])
    assert rag_contract("baseline", *BOTH[:2]).code == 0
    assert check(*BOTH).code == 0
    judge(folder, *workspace(folder, drop, "No."))
    ended = check(*BOTH)
    assert (ended.code, "-0.50  FAIL" in ended.out) == (1, True), ended
    judge(folder, *workspace(folder, drop, "No."), model="another")
    write_good_calibration(folder, tasks=["criteria"], fingerprint=fingerprint_of("another"))
    (error,) = errors(check(*BOTH))
    assert "the baseline's Criteria met (judged) was computed in another way" in error


def test_a_drop_is_compared_only_where_criteria_and_reference_are_the_same(folder: Path) -> None:
    limit = "fail_on: {criteria_met_drop_gt: 0.1}\n"
    write_good_calibration(folder, tasks=["criteria"])
    judge(folder, *(replace(one, reference="Free.") for one in workspace(folder, limit, "No.", reference="Free.")))
    assert rag_contract("baseline", *BOTH[:2]).code == 0
    assert check(*BOTH).code == 0
    judge(folder, *(replace(one, reference="Not.") for one in workspace(folder, limit, "No.", reference="Not.")))
    (error,) = errors(check(*BOTH))
    why = "the baseline has no Criteria met (judged) of a query with the same reference and criteria as now"
    assert f"fail_on.criteria_met_drop_gt cannot be judged: {why}" in error


def test_a_score_of_another_tool_may_have_the_name(folder: Path) -> None:
    workspace(folder, f"metrics: {{criteria_met: {{from: scores}}}}\n{MINIMUM}", ANSWER)
    write_jsonl(folder / "scores.jsonl", [{"query_id": "q0", "scores": {"criteria_met": 0.7}}])
    assert check("--scores", "scores.jsonl").code == 0
    assert report(folder)["metrics"]["criteria_met"]["current"] == 0.7


def test_a_rule_on_a_single_query_cannot_be_about_it(folder: Path) -> None:
    judge(folder, *workspace(folder, "answers: {composite: {minimum: 0.5, metrics: [criteria_met]}}\n", ANSWER))
    assert any("is what a judge said, which is often wrong on one query" in one for one in errors(check(*BOTH[:2])))


def test_the_report_says_criterion_by_criterion_what_was_met_by_which_words_of_the_answer(folder: Path) -> None:
    judge(folder, *workspace(folder, "", ANSWER), calls=1, retried=1, compromised=1, usd=0.25)
    assert check(*BOTH[:2], "--report-html", "report.html").code == 0
    (task,) = report(folder)["judge"]["tasks"]
    assert task["label"] == "Criteria met (judged)"
    assert task["queries"][0]["items"] == [
        {"item": "criterion:1", "text": FREE, "verdict": True, "quote": FREE, "reason": "by the letter"},
        {"item": "criterion:2", "text": POLITE, "verdict": False, "reason": "by the letter"},
    ]
    markdown = (folder / "report.md").read_text()
    assert f"| {FREE} | ✅ “{FREE}” |" in markdown
    assert f"| {POLITE} | ❌ by the letter |" in markdown
    assert "They cost 2 calls (2 retried, 2 compromised), 20 tokens in, 4 out, 0.5000 USD." in markdown
    page = (folder / "report.html").read_text()
    assert f"✓ {FREE}" in page
    assert f"met: “{FREE}”" in page
    assert "not met: by the letter" in page


def test_a_limit_of_a_tag_is_on_its_queries_alone(folder: Path) -> None:
    config = "tags: {smoke: {minimums: {criteria_met: 0.9}}}\n"
    judge(folder, *workspace(folder, config, "No.", tags=["smoke"]))
    write_good_calibration(folder, tasks=["criteria"])
    ended = check(*BOTH)
    assert (ended.code, "Criteria met (judged) smoke  0.00  FAIL" in ended.out) == (1, True), ended
    (folder / "judge-calibration.json").unlink()
    (error,) = errors(check(*BOTH[:2]))
    assert "criteria_met cannot be judged: the judge is not calibrated" in error


def test_the_agreement_of_another_judge_is_not_shown_as_that_of_this_one(folder: Path) -> None:
    judge(folder, *workspace(folder, "", ANSWER))
    write_good_calibration(folder, tasks=["criteria"])
    assert check(*BOTH).code == 0
    assert report(folder)["judge"]["tasks"][0]["estimate"] is not None
    write_good_calibration(folder, tasks=["criteria"], fingerprint=fingerprint_of("another"))
    assert check(*BOTH).code == 0
    (task,) = report(folder)["judge"]["tasks"]
    assert (task["kappa"], task["estimate"]) == (None, None)


def test_a_query_without_a_row_meets_no_criterion_where_it_may_be_missing(folder: Path) -> None:
    cases = workspace(folder, f"missing_queries: zero\n{MINIMUM.replace('0.5', '0.25')}", ANSWER, "No.")
    judge(folder, cases[0])
    write_good_calibration(folder, tasks=["criteria"])
    write_jsonl(folder / "current_run.jsonl", [{"query_id": "q0", "response": ANSWER, "retrieved_contexts": [CONTEXT]}])
    assert check(*BOTH).code == 0
    assert report(folder)["metrics"]["criteria_met"]["current"] == 0.25


def test_a_conversation_is_judged_by_its_last_answer(folder: Path) -> None:
    turns = [{"query": "Hello?"}, {"query": "And returns?"}]
    (case,) = workspace(folder, MINIMUM, ANSWER, turns=turns, forbidden_claims=["never"])
    said = ("Hello?", "Hello.", "And returns?", ANSWER)
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    rows = [{"query_id": "q0", "messages": messages, "retrieved_contexts": [CONTEXT]}]
    write_jsonl(folder / "current_run.jsonl", rows)
    judge(folder, case)
    write_good_calibration(folder, tasks=["criteria"])
    assert check(*BOTH).code == 0
    assert report(folder)["metrics"]["criteria_met"]["current"] == 0.5


def test_an_application_that_failed_meets_no_criterion_whatever_it_answered(folder: Path) -> None:
    cases = workspace(folder, MINIMUM, ANSWER)
    judge(folder, *cases)
    write_good_calibration(folder, tasks=["criteria"])
    assert check(*BOTH).code == 0
    row = {"query_id": "q0", "response": ANSWER, "error": "boom", "retrieved_contexts": [CONTEXT]}
    write_jsonl(folder / "current_run.jsonl", [row])
    assert check(*BOTH).code == 1
    assert report(folder)["metrics"]["criteria_met"]["current"] == 0
