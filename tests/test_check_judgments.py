"""``check --judgments`` as users meet it: what a judge said is replayed, and counts only if the judge is calibrated."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragcontract.core.label_counts import LabelCounts
from tests.builders import write_jsonl
from tests.judgment_files import (
    CONTEXT,
    FALSE,
    NOW,
    TRUE,
    judged_workspace,
    write_good_calibration,
    write_judgments_on,
)
from tests.process import Ended, rag_contract
from tests.runs.judgment_lines import JUDGE

MINIMUM = "minimums: {context_recall: 0.75}\n"
BOTH = ("--judgments", "judgments.jsonl", "--calibration", "judge-calibration.json")
RUN = "rag-contract judge"


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*argv: str) -> Ended:
    return rag_contract("check", *argv)


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return found


def errors(ended: Ended) -> list[str]:
    assert ended.code == 2, ended
    return [line.removeprefix("error: ") for line in ended.err.splitlines() if line.startswith("error: ")]


def test_a_minimum_holds_or_not_by_what_a_calibrated_judge_said(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], [TRUE, FALSE])
    write_judgments_on(folder, [TRUE], [TRUE, FALSE])
    write_good_calibration(folder)
    assert check(*BOTH).code == 0
    assert report(folder)["metrics"]["context_recall"]["current"] == 0.75
    judged_workspace(folder, MINIMUM, [TRUE], [FALSE])
    write_judgments_on(folder, [TRUE], [FALSE])
    ended = check(*BOTH)
    assert ended.code == 1
    assert "Context recall (judged) is 0.50" in ended.out


def test_nothing_retrieved_is_0_without_a_judgment(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], contexts=[])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder)
    assert check(*BOTH).code == 1
    assert report(folder)["metrics"]["context_recall"]["current"] == 0


def test_a_judgment_on_other_texts_is_no_judgment(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_good_calibration(folder)
    for claims, contexts in (([FALSE], [CONTEXT]), ([TRUE], [f"{CONTEXT} "]), ([TRUE, FALSE], [CONTEXT])):
        write_judgments_on(folder, claims, contexts=contexts)
        (error,) = errors(check(*BOTH))
        assert "has no judgments, because its reference_claims, question or retrieved texts have changed since" in error
        assert f"run `{RUN}` again" in error
    write_judgments_on(folder, [], [TRUE])
    (error,) = errors(check(*BOTH))
    assert f"has no judgments on its reference_claims; run `{RUN}`" in error


@pytest.mark.parametrize("uncalibrated", ["refuse", "advisory"])
def test_a_claim_without_a_verdict_is_an_error_that_names_it(folder: Path, uncalibrated: str) -> None:
    judged_workspace(folder, f"{MINIMUM}judge: {{uncalibrated: {uncalibrated}}}\n", [TRUE, FALSE])
    nothing: dict[str, Any] = {
        "verdict": None,
        "votes": (),
        "quote": None,
        "context": None,
        "reason": "It did what a text told it to.",
    }
    write_judgments_on(folder, [TRUE, FALSE], status="compromised", **nothing)
    write_good_calibration(folder)
    (error,) = errors(check(*BOTH))
    assert "has no verdict on 2 of 2 items: claim:1, claim:2 (compromised: It did what a text told it to.)" in error


def test_a_limit_without_judgments_says_what_to_run(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    (error,) = errors(check())
    assert error.startswith("ragcontract.yml:1: minimums.context_recall cannot be judged: it needs what a judge said")
    assert f"run `{RUN}`, and name its file with --judgments" in error


def test_a_row_of_which_the_texts_are_not_known_is_an_error(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_jsonl(folder / "current_run.jsonl", [{"query_id": "q1", "results": [{"doc_id": "d"}]}])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder)
    (error,) = errors(check(*BOTH))
    assert "has no text in results[0]" in error


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"fingerprint": "another judge"}, "it was made with another judge (another judge) than the judgments (toy at"),
        ({"counts": LabelCounts(tp=24, fp=0, fn=0, tn=25)}, "it has 49 labelled items with a verdict"),
        ({"counts": LabelCounts(tp=60, fp=0, fn=0, tn=9)}, "people said no of 9 items"),
        ({"counts": LabelCounts(tp=118, fp=30, fn=30, tn=104)}, "kappa is 0.57"),
        ({"at": NOW - timedelta(days=91)}, "it is 91 days old"),
    ],
)
def test_a_calibration_that_does_not_suffice_is_refused_with_its_reason(
    folder: Path, changed: dict[str, Any], why: str
) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder, **changed)
    (error,) = errors(check(*BOTH))
    assert error.startswith("ragcontract.yml:1: minimums.context_recall cannot be judged: the judge is not calibrated:")
    assert why in error


def test_all_reasons_are_given_at_once_and_no_calibration_is_one(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder, counts=LabelCounts(tp=2, fp=0, fn=0, tn=1), fingerprint="x", at=NOW - timedelta(91))
    (error,) = errors(check(*BOTH))
    for why in ("another judge", "91 days old", "3 labelled items", "yes of 2 items", "no of 1 item"):
        assert why in error
    (error,) = errors(check("--judgments", "judgments.jsonl"))
    assert "there is no calibration for attribution" in error


def test_advisory_limits_are_shown_without_effect(folder: Path) -> None:
    judged_workspace(folder, f"{MINIMUM}judge: {{uncalibrated: advisory}}\n", [FALSE])
    write_judgments_on(folder, [FALSE])
    ended = check("--judgments", "judgments.jsonl")
    assert ended.code == 0
    (gate,) = report(folder)["gates"]
    assert (gate["status"], gate["observed"]) == ("skipped", 0)
    assert gate["skipped"] == "advisory, because the judge is not calibrated"
    assert "minimums.context_recall is shown without effect: the judge is not calibrated: there is no" in ended.err
    write_good_calibration(folder)
    assert check(*BOTH).code == 1


def test_without_a_limit_judgments_are_shown_and_need_no_calibration(folder: Path) -> None:
    judged_workspace(folder, "", [TRUE, FALSE])
    write_judgments_on(folder, [TRUE, FALSE])
    assert check("--judgments", "judgments.jsonl").code == 0
    assert report(folder)["metrics"]["context_recall"]["current"] == 0.5
    assert check().code == 0
    assert "context_recall" not in report(folder)["metrics"]


def test_the_configuration_says_whose_judgments_count(folder: Path) -> None:
    judged_workspace(folder, "judge: {model: other}\n", [TRUE])
    write_judgments_on(folder, [TRUE])
    (error,) = errors(check("--judgments", "judgments.jsonl"))
    assert "has no judgments on its reference_claims by the judge that ragcontract.yml names" in error
    assert "(only by 'm' at models.example (3 votes, confirm: failures))" in error
    other = replace(JUDGE, model="other")
    write_judgments_on(folder, [TRUE], judge=other, name="others.jsonl")
    both = ("--judgments", "judgments.jsonl", "--judgments", "others.jsonl")
    assert check(*both).code == 0
    judged_workspace(folder, "", [TRUE])
    (error,) = errors(check(*both))
    assert "has judgments of 'm' at models.example" in error
    assert "say which one counts: judge.model in ragcontract.yml" in error


def test_a_baseline_keeps_what_was_judged_and_is_compared_with_the_same_judge_only(folder: Path) -> None:
    drop = "fail_on: {context_recall_drop_gt: 0.1}\n"
    judged_workspace(folder, drop, [TRUE], [TRUE])
    write_judgments_on(folder, [TRUE], [TRUE])
    write_good_calibration(folder)
    assert rag_contract("baseline", *BOTH[:2]).code == 0
    stored = json.loads((folder / "baseline.json").read_text())
    assert [query["metrics"]["context_recall"] for query in stored["queries"]] == [1, 1]
    assert check(*BOTH).code == 0
    judged_workspace(folder, drop, [TRUE], [TRUE], contexts=["Returns are accepted."])
    write_judgments_on(folder, [TRUE], [TRUE], contexts=["Returns are accepted."])
    ended = check(*BOTH)
    assert ended.code == 1
    assert "Context recall (judged) fell by 1.00" in ended.out
    write_judgments_on(folder, [TRUE], [TRUE], contexts=["Returns are accepted."], fingerprint="another judge")
    write_good_calibration(folder, fingerprint="another judge")
    (error,) = errors(check(*BOTH))
    assert "the baseline's Context recall (judged) was computed in another way" in error


def test_a_rule_on_a_single_query_cannot_be_about_what_a_judge_said(folder: Path) -> None:
    judged_workspace(folder, "answers: {composite: {minimum: 0.5, metrics: [context_recall]}}\n", [TRUE])
    write_judgments_on(folder, [TRUE])
    assert any("is what a judge said, which is often wrong on one query" in one for one in errors(check(*BOTH[:2])))


def test_a_score_of_another_tool_may_have_the_name(folder: Path) -> None:
    config = "metrics: {context_recall: {from: scores}}\nminimums: {context_recall: 0.5}\n"
    judged_workspace(folder, config, [TRUE])
    write_jsonl(folder / "scores.jsonl", [{"query_id": "q1", "scores": {"context_recall": 0.7}}])
    assert check("--scores", "scores.jsonl").code == 0
    assert report(folder)["metrics"]["context_recall"]["current"] == 0.7


def test_wrong_files_are_reported_with_everything_else(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    (folder / "judgments.jsonl").write_text('{"key": 1}\n')
    (folder / "judge-calibration.json").write_text("[]")
    found = errors(check(*BOTH))
    assert any(one.startswith("judgments.jsonl:1: ") for one in found)
    assert any(one.startswith("judge-calibration.json") for one in found)
    for option in BOTH[::2]:
        assert f"{option}: is given an empty path" in check(option, "").err
