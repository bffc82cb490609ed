"""``check --judgments`` as users meet it: what a judge said is replayed, and counts only if the judge is calibrated."""

import gzip
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import ragcontract
from ragcontract.core import bounds
from ragcontract.core.config_sections import LabelCounts
from ragcontract.judgments.judgments_file import write_judgments
from tests.builders import write_jsonl
from tests.judged_checks import BOTH, check, errors, report
from tests.judgment_files import (
    CONTEXT,
    FALSE,
    FINGERPRINT,
    NOW,
    TRUE,
    asked,
    case_of,
    fingerprint_of,
    judged_workspace,
    judgments_on,
    write_good_calibration,
    write_judgments_on,
)
from tests.process import rag_contract, spawn
from tests.runs.judgment_lines import JUDGE

MINIMUM = "minimums: {context_recall: 0.75}\n"
RUN = "rag-contract judge"


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
    assert "Context recall (judged)  0.50  FAIL" in ended.out


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


@pytest.mark.parametrize("judged", [False, True])
def test_a_limit_on_claims_that_nobody_made_says_how_to_make_them(folder: Path, judged: bool) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_jsonl(folder / "golden.jsonl", [{"id": "q1", "query": "Question 1?", "reference": TRUE}])
    write_judgments_on(folder)
    write_good_calibration(folder)
    (error,) = errors(check(*BOTH if judged else ()))
    assert error == (
        "ragcontract.yml:1: minimums.context_recall cannot be judged: no golden query has reference_claims; "
        "`rag-contract claims` makes them of references, or leave the limit out"
    )


def test_another_k_is_named_among_what_may_have_changed(folder: Path) -> None:
    judged_workspace(folder, "", [TRUE])
    results = [{"doc_id": "a", "text": CONTEXT}, {"doc_id": "b", "text": "Nothing."}]
    write_jsonl(folder / "current_run.jsonl", [{"query_id": "q1", "results": results}])
    write_judgments_on(folder, [TRUE], contexts=[CONTEXT, "Nothing."])
    assert check(*BOTH[:2]).code == 0
    (error,) = errors(check(*BOTH[:2], "--k", "1"))
    assert "have changed since, or k has (without retrieved_contexts, the texts are those of the first k" in error


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
    (folder / "judge-calibration.json").unlink()
    (error,) = errors(check("--judgments", "judgments.jsonl"))
    assert "there is no calibration for attribution" in error


@pytest.mark.parametrize(
    ("changed", "advice"),
    [
        ({"counts": LabelCounts(tp=10, fp=0, fn=0, tn=10)}, "label more items, and run `rag-contract judge calibrate`"),
        ({"fingerprint": "another judge"}, "calibrate the judge that is asked, or ask the one that was calibrated"),
        ({"at": NOW - timedelta(days=91)}, "run `rag-contract judge calibrate` again"),
        ({"tasks": ["criteria"]}, "the calibration is of criteria, and there is none for attribution"),
    ],
)
def test_what_to_do_fits_what_is_wrong_with_the_calibration(folder: Path, changed: dict[str, Any], advice: str) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder, **changed)
    (error,) = errors(check(*BOTH))
    assert advice in error
    assert "with --calibration" not in error, "one is named already"
    (folder / "judge-calibration.json").unlink()
    (error,) = errors(check(*BOTH[:2]))
    assert "name its file with --calibration (in the action, the input calibration)" in error


@pytest.mark.parametrize("config", [MINIMUM, "k: 5\n"])
def test_a_calibration_that_somebody_edited_is_refused_and_no_other_is_asked_for(folder: Path, config: str) -> None:
    judged_workspace(folder, config, [TRUE])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder, counts=LabelCounts(tp=40, fp=25, fn=10, tn=25))
    path = folder / "judge-calibration.json"
    content = json.loads(path.read_text())
    content["calibrations"][0]["kappa"] = 0.9
    path.write_text(json.dumps(content))
    expected = "judge-calibration.json: calibrations[0].kappa: is 0.9, but its counts make that 0.3"
    (error,) = errors(check(*BOTH))
    assert error.startswith(expected)
    (error,) = errors(rag_contract("validate", *BOTH))
    assert error.startswith(expected)


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
    assert "(model: other), only by 'm' at models.example (3 votes, confirm: failures); run" in error
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
    assert "-1.00  FAIL" in ended.out
    write_judgments_on(folder, [TRUE], [TRUE], contexts=["Returns are accepted."], model="another")
    write_good_calibration(folder, fingerprint=fingerprint_of("another"))
    (error,) = errors(check(*BOTH))
    assert "the baseline's Context recall (judged) was computed in another way" in error


def test_a_drop_is_not_judged_by_other_claims(folder: Path) -> None:
    drop = "fail_on: {context_recall_drop_gt: 0.1}\n"
    judged_workspace(folder, drop, [FALSE])
    write_judgments_on(folder, [FALSE])
    write_good_calibration(folder)
    assert rag_contract("baseline", *BOTH[:2]).code == 0
    judged_workspace(folder, drop, [TRUE])
    write_judgments_on(folder, [TRUE])
    (error,) = errors(check(*BOTH))
    assert "the baseline has no Context recall (judged) of a query with the same reference_claims as now" in error


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


def test_the_report_says_by_which_quote_of_which_text_each_claim_is_supported(folder: Path) -> None:
    judged_workspace(folder, MINIMUM.replace("0.75", "0.2"), [TRUE, FALSE], [TRUE], contexts=["Other.", CONTEXT])
    write_judgments_on(folder, [TRUE, FALSE], [TRUE], contexts=["Other.", CONTEXT])
    write_good_calibration(folder)
    assert check(*BOTH, "--report-html", "report.html").code == 0
    judge = report(folder)["judge"]
    (task,) = judge["tasks"]
    assert (task["task"], task["metric"], task["judgments"]) == ("attribution", "context_recall", 3)
    first = task["queries"][0]
    assert (first["id"], first["passed"], first["of"]) == ("q1", 1, 2)
    assert first["items"] == [
        {
            "item": "claim:1",
            "text": TRUE,
            "verdict": True,
            "quote": TRUE,
            "context": 2,
            "reason": "by the letter",
        },
        {"item": "claim:2", "text": FALSE, "verdict": False, "reason": "by the letter"},
    ]
    assert (judge["judgments"], judge["unused"], judge["without_verdict"]) == (3, 0, {})
    assert (judge["models"], judge["tokens_in"], judge["tokens_out"]) == (["toy"], 30, 6)
    assert report(folder)["inputs"]["judgments"]["files"][0]["path"] == "judgments.jsonl"
    markdown = (folder / "report.md").read_text()
    assert f"| {TRUE} | ✅ text 2: “{TRUE}” |" in markdown
    assert f"| {FALSE} | ❌ by the letter |" in markdown
    assert "**`q1`** 1 of 2 claims supported" in markdown
    page = (folder / "report.html").read_text()
    assert f"✓ {TRUE}" in page
    assert f"supported: text 2: “{TRUE}”" in page


def test_beside_the_judges_mean_stands_what_people_would_say(folder: Path) -> None:
    judged_workspace(folder, MINIMUM.replace("0.75", "0.2"), [TRUE, FALSE], [TRUE])
    write_judgments_on(folder, [TRUE, FALSE], [TRUE])
    write_good_calibration(folder, counts=LabelCounts(tp=45, fp=5, fn=5, tn=45))
    assert check(*BOTH).code == 0
    (judge,) = report(folder)["judge"]["tasks"]
    assert judge["mean"] == 0.75
    assert judge["estimate"] == pytest.approx((0.75 + 0.9 - 1) / (0.9 + 0.9 - 1))
    assert judge["kappa"] == pytest.approx(0.8)
    assert "Its mean is 0.75; people would say 0.81, estimated from" in (folder / "report.md").read_text()


def test_what_is_not_retrieved_is_0_whoever_judges(folder: Path) -> None:
    judged_workspace(folder, MINIMUM.replace("0.75", "0.2"), [TRUE], [TRUE])
    rows = [{"query_id": "q1", "results": []}, {"query_id": "q2", "results": [], "retrieved_contexts": [CONTEXT]}]
    write_jsonl(folder / "current_run.jsonl", rows)
    write_judgments_on(folder, [], [TRUE])
    write_good_calibration(folder, counts=LabelCounts(tp=45, fp=5, fn=5, tn=45))
    assert check(*BOTH).code == 0
    (judge,) = report(folder)["judge"]["tasks"]
    assert (judge["mean"], judge["estimate"]) == (0.5, 0.5)
    assert judge["queries"][0]["items"] == []
    assert "0 of 1 claim supported: nothing was retrieved" in (folder / "report.md").read_text()


HOSTILE = "<img src=x onerror=alert(1)> | **@team** </details> ::error:: \u202e \x1b[31m [x](http://evil.example)"


def test_the_words_of_a_judge_are_escaped_wherever_they_are_shown(folder: Path) -> None:
    context = f"{CONTEXT} {HOSTILE}"
    judged_workspace(folder, "", [TRUE, HOSTILE, FALSE], contexts=[context])
    write_judgments_on(folder, [TRUE, HOSTILE, FALSE], contexts=[context], reason=HOSTILE, model=HOSTILE)
    ended = check("--judgments", "judgments.jsonl", "--report-html", "report.html")
    assert ended.code == 0
    for name in ("report.md", "report.html"):
        text = (folder / name).read_text()
        assert "<img" not in text
        assert "\u202e" not in text
        assert "\x1b" not in text
        assert "alert(1)" in text
    markdown = (folder / "report.md").read_text()
    assert "</details> ::" not in markdown
    assert "**@" not in markdown
    assert "[x](http" not in markdown
    assert "\x1b[31m" not in ended.out + ended.err


def test_without_answers_no_quote_and_no_reason_is_shown(folder: Path) -> None:
    judged_workspace(folder, "", [TRUE, FALSE], contexts=[f"A secret. {CONTEXT}"])
    write_judgments_on(folder, [TRUE, FALSE], contexts=[f"A secret. {CONTEXT}"], quote="A secret.", reason="A secret.")
    outputs = ("report.md", "report.json", "report.html")
    assert check("--judgments", "judgments.jsonl", "--report-html", "report.html").code == 0
    assert all("A secret." in (folder / name).read_text() for name in outputs)
    ended = check("--judgments", "judgments.jsonl", "--report-html", "report.html", "--no-answers")
    assert ended.code == 0
    assert "A secret." not in ended.out + ended.err
    assert not any("A secret." in (folder / name).read_text() for name in outputs)


def test_judgments_that_are_not_used_are_counted(folder: Path) -> None:
    judged_workspace(folder, "", [TRUE])
    nothing: dict[str, Any] = {"verdict": None, "votes": (), "quote": None, "context": None}
    write_judgments_on(folder, [], [TRUE, FALSE], status="compromised", name="others.jsonl", **nothing)
    write_judgments_on(folder, [TRUE])
    assert check("--judgments", "judgments.jsonl", "--judgments", "others.jsonl").code == 0
    judge = report(folder)["judge"]
    assert (judge["judgments"], judge["unused"], judge["without_verdict"]) == (1, 2, {"compromised": 2})
    assert (
        "2 further judgments in the files not used: on other texts or queries, by other judges"
        in (folder / "report.md").read_text()
    )


def test_validate_and_python_take_the_same_files(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder)
    assert rag_contract("validate", *BOTH).code == 0
    found = ragcontract.check(
        golden="golden.jsonl",
        run="current_run.jsonl",
        judgments="judgments.jsonl",
        calibration="judge-calibration.json",
        config="ragcontract.yml",
    )
    assert found.metrics["context_recall"].current == 1


def test_a_drop_counts_only_if_the_judge_of_the_baseline_is_calibrated_too(folder: Path) -> None:
    """A judge that finds nothing in the older run would hide any drop."""
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [TRUE], contexts=["Older. Nothing of that."])
    (folder / "current_run.jsonl").rename(folder / "older.jsonl")
    write_judgments_on(
        folder,
        [TRUE],
        contexts=["Older. Nothing of that."],
        name="older-judgments.jsonl",
        model="worse",
        at=NOW - timedelta(days=2),
    )
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [TRUE])
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder)
    (said,) = errors(check(*BOTH, "--judgments", "older-judgments.jsonl", "--baseline", "older.jsonl"))
    assert "it was made with another judge" in said
    assert "worse at models.example" in said


@pytest.mark.parametrize("uncalibrated", ["refuse", "advisory"])
def test_a_minimum_counts_whoever_judged_the_baseline(folder: Path, uncalibrated: str) -> None:
    """Where a baseline's judge took the effect from it, a pull request could pass by naming another baseline."""
    limits = f"{MINIMUM}fail_on: {{context_recall_drop_gt: 0.1}}\njudge: {{uncalibrated: {uncalibrated}}}\n"
    judged_workspace(folder, limits, [TRUE])
    argv = (*older_run(folder, ("q1", ["Older."])), "--judgments", "older-judgments.jsonl")
    write_judgments_on(folder, [TRUE], contexts=["Older."], name="older-judgments.jsonl", model="worse")
    judged_workspace(folder, limits, [TRUE], contexts=["Nothing of that."])
    write_judgments_on(folder, [TRUE], contexts=["Nothing of that."])
    write_good_calibration(folder)
    ended = check(*argv)
    assert ended.code == {"refuse": 2, "advisory": 1}[uncalibrated]
    assert ("minimums.context_recall" in ended.err, "fail_on.context_recall_drop_gt" in ended.err) == (False, True)


def test_a_drop_from_a_stored_baseline_is_also_about_whoever_judged_that(folder: Path) -> None:
    """Where nothing is retrieved any more, the run needs no judge, and the baseline has one nonetheless."""
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [FALSE])
    write_judgments_on(folder, [FALSE], model="worse")
    assert rag_contract("baseline", *BOTH[:2]).code == 0
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [FALSE], contexts=[])
    write_good_calibration(folder)
    (error,) = errors(check(*BOTH))
    assert "it was made with another judge" in error
    assert "worse at models.example" in error
    write_good_calibration(folder, fingerprint=fingerprint_of("worse"))
    assert check(*BOTH).code == 0


def test_a_stored_baseline_names_all_who_judged_it_and_not_the_last_of_them_alone(folder: Path) -> None:
    """A judge whose model changed between two claims of a query is two, and only one of them is calibrated."""
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [TRUE, FALSE])
    first, second = judgments_on(case_of(asked(1, [TRUE, FALSE])))
    older = replace(second, model="worse", fingerprint=fingerprint_of("worse"), at=second.at - timedelta(days=2))
    write_judgments(str(folder / "judgments.jsonl"), [first, older])
    write_good_calibration(folder)
    assert rag_contract("baseline", *BOTH).code == 0
    stored = json.loads((folder / "baseline.json").read_text())["fingerprints"]["context_recall"]
    assert f"{fingerprint_of('worse')} and {FINGERPRINT}" in stored
    write_judgments(str(folder / "judgments.jsonl"), [first, second])
    (error,) = errors(check(*BOTH))
    assert "the baseline's Context recall (judged) was computed in another way (worse at models" in error
    assert rag_contract("baseline", *BOTH, "--force").code == 0
    assert check(*BOTH).code == 0


def older_run(folder: Path, *rows: tuple[str, list[str]]) -> tuple[str, ...]:
    """Write an older run, of a query and what was retrieved each; return the options with which it is the baseline."""
    write_jsonl(
        folder / "older.jsonl",
        [{"query_id": query_id, "results": [], "retrieved_contexts": contexts} for query_id, contexts in rows],
    )
    return (*BOTH, "--baseline", "older.jsonl")


def test_a_drop_from_a_run_that_is_judged_in_part_is_not_judged(folder: Path) -> None:
    """Left out, a query without a verdict would hide its drop: who removes a line would pass."""
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [TRUE], [FALSE])
    write_judgments_on(folder, [TRUE], [FALSE])
    write_good_calibration(folder)
    argv = older_run(folder, ("q1", [CONTEXT]), ("q2", [f"{CONTEXT} {FALSE}"]))
    (error,) = errors(check(*argv))
    assert "older.jsonl has no Context recall (judged) for 1 query: 'q2'; judge that run, too" in error
    write_judgments_on(folder, [], [FALSE], contexts=[f"{CONTEXT} {FALSE}"], name="older-judgments.jsonl")
    assert check(*argv, "--judgments", "older-judgments.jsonl").code == 1


def test_of_several_rows_of_a_baseline_each_needs_judgments(folder: Path) -> None:
    judged_workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [FALSE])
    write_judgments_on(folder, [FALSE])
    write_good_calibration(folder)
    argv = (*older_run(folder, ("q1", []), ("q1", [f"{CONTEXT} {FALSE}"])), "--repeats")
    (error,) = errors(check(*argv))
    assert "older.jsonl has no Context recall (judged) for 1 query: 'q1'" in error
    write_judgments_on(folder, [FALSE], contexts=[f"{CONTEXT} {FALSE}"], name="older-judgments.jsonl")
    assert check(*argv, "--judgments", "older-judgments.jsonl").code == 1


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_where_nothing_needs_a_judgment_there_need_be_none(folder: Path, content: str) -> None:
    judged_workspace(folder, "minimums: {context_recall: 0.0}\n", [TRUE], contexts=[])
    write_good_calibration(folder)
    (folder / "judgments.jsonl").write_text(content)
    ended = check(*BOTH)
    assert (ended.code, ended.err) == (0, ""), ended


def test_where_a_judgment_is_needed_a_file_without_any_is_an_error(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], [TRUE])
    write_good_calibration(folder)
    (folder / "judgments.jsonl").write_text("")
    assert errors(check(*BOTH)) == [
        f'current_run.jsonl:{line}: query "q{line}" has no judgments on its reference_claims; run `{RUN}`'
        for line in (1, 2)
    ]


@pytest.mark.parametrize("needed", [False, True])
@pytest.mark.parametrize("command", ["check", "validate", "score", "diff"])
def test_a_file_that_was_named_and_is_not_there_is_an_error_whether_or_not_it_is_needed(
    folder: Path, command: str, needed: bool
) -> None:
    judged_workspace(folder, "minimums: {context_recall: 0.0}\n", [TRUE], contexts=[CONTEXT] if needed else [])
    write_judgments_on(folder, [TRUE], contexts=[CONTEXT] if needed else [])
    write_good_calibration(folder)
    (folder / "before.jsonl").write_text((folder / "current_run.jsonl").read_text())
    further = ("--baseline", "before.jsonl") if command == "diff" else ()
    for name, why in (("judgment.jsonl", "no such file; did you mean judgments.jsonl?"), ("no*", "no file matches")):
        (error,) = errors(rag_contract(command, "--judgments", name, *further))
        assert error.startswith(f"{name}: {why}"), error


def test_without_judgments_a_limit_counts_only_with_a_calibration_all_the_same(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], contexts=[])
    write_judgments_on(folder)
    (error,) = errors(check("--judgments", "judgments.jsonl"))
    assert "there is no calibration for attribution" in error


def test_without_answers_no_reason_is_in_an_error_either(folder: Path) -> None:
    judged_workspace(folder, MINIMUM, [TRUE], [FALSE])
    nothing: dict[str, Any] = {"verdict": None, "votes": (), "quote": None, "context": None}
    write_judgments_on(folder, [TRUE], [FALSE], status="unsure", reason="A secret.", **nothing)
    write_good_calibration(folder)
    assert all("A secret." in error for error in errors(check(*BOTH)))
    for error in errors(check(*BOTH, "--no-answers")):
        assert error.endswith("has no verdict on 1 of 1 item: claim:1 (unsure: (not shown)")
        assert "A secret." not in error


@pytest.mark.parametrize("name", ["judgments.jsonl.gz", "judgments.jsonl"])
def test_a_gzip_file_of_judgments_that_unpacks_to_too_much_is_refused_before_any_row_is_read(
    name: str, tmp_path: Path
) -> None:
    judged_workspace(tmp_path, "", [TRUE])
    faulty = gzip.compress(b'{"key": "' + os.urandom(2_800_000).hex().encode() + b'"}\n')
    blank = gzip.compress(b"\n" * (1 << 20))
    (tmp_path / name).write_bytes(faulty + 450 * blank)
    ended = spawn("check", "--judgments", name, cwd=tmp_path)
    size = (tmp_path / name).stat().st_size * bounds.UNPACKED_TOTAL_RATIO / (1 << 20)
    why = f"unpacks to more than {size:,.1f} MiB, which is too much for a gzip file of its size; give it unpacked"
    assert (ended.code, ended.out, ended.err) == (2, "", f"error: {name}: {why}\n")
