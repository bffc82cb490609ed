"""What a judge said, through each command that reads a run: it is replayed, asked for, or not needed."""

import json
from pathlib import Path
from typing import Any

import pytest

import ragcontract
from ragcontract.core.config_sections import LabelCounts
from ragcontract.core.errors import InputError
from ragcontract.judgments.judgments_file import write_judgments
from tests.builders import write_jsonl
from tests.judgment_files import (
    CONTEXT,
    FALSE,
    TRUE,
    asked,
    case_of,
    judged_workspace,
    judgments_on,
    write_good_calibration,
    write_judgments_on,
)
from tests.process import rag_contract

LIMITS = "minimums: {context_recall: 0.7}\nfail_on: {context_recall_drop_gt: 0.1}\n"
SECOND_PASS = "judge: {second_pass: true}\n"
NAMED = "judge: {metrics: [context_recall]}\n"
JUDGMENTS = ("--judgments", "judgments.jsonl")
BOTH = (*JUDGMENTS, "--calibration", "judge-calibration.json")
WHAT_TO_DO = "run `rag-contract judge`, and name its file with --judgments"
DIFF, COMPARE = ("diff", "--baseline", "before.jsonl"), ("compare", "current_run.jsonl", "before.jsonl")
NEW = ("baseline", "--out", "new.json")
RUN = "current_run.jsonl"
LEFT_OUT = "warning: Context recall (judged) is left out: it needs what a judge said"


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def workspace(folder: Path, config: str, *claims: list[str]) -> None:
    """Write a contract with documents and claims, a run and another one, and what a judge said."""
    judged_workspace(folder, config, *(claims or ([TRUE], [TRUE, FALSE])))
    for name in ("golden", "current_run"):
        rows = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
        more: dict[str, Any] = {"relevant_doc_ids": ["d"]} if name == "golden" else {"results": [{"doc_id": "d"}]}
        write_jsonl(folder / f"{name}.jsonl", [row | more for row in rows])
    (folder / "before.jsonl").write_bytes((folder / "current_run.jsonl").read_bytes())
    write_judgments_on(folder, *(claims or ([TRUE], [TRUE, FALSE])))
    write_good_calibration(folder)


@pytest.mark.parametrize(
    ("config", "command", "code", "said"),
    [
        (LIMITS, ("check", "--baseline", "before.jsonl"), 2, "minimums.context_recall cannot be judged"),
        (LIMITS, ("validate",), 2, "minimums.context_recall cannot be judged"),
        (LIMITS, NEW, 2, "fail_on.context_recall_drop_gt could not be judged by this baseline"),
        (LIMITS, ("score",), 0, LEFT_OUT),
        (LIMITS, DIFF, 0, LEFT_OUT),
        (LIMITS, COMPARE, 0, LEFT_OUT),
        (LIMITS, ("suggest",), 0, LEFT_OUT),
        (LIMITS, ("unjudged",), 0, ""),
        (LIMITS, ("validate", "--without-run"), 0, ""),
        (LIMITS, ("lint",), 0, ""),
        (NAMED, ("check",), 2, "judge.metrics: context_recall cannot be computed"),
        (NAMED, ("validate",), 2, "judge.metrics: context_recall cannot be computed"),
        (NAMED, NEW, 2, "judge.metrics: context_recall cannot be computed"),
        (NAMED, ("score",), 0, LEFT_OUT),
        (NAMED, ("unjudged",), 0, ""),
        (SECOND_PASS, ("check",), 2, "second_pass: it needs what a judge said"),
        (SECOND_PASS, ("validate",), 2, "second_pass: it needs what a judge said"),
        (SECOND_PASS, NEW, 2, "second_pass: it needs what a judge said"),
        (SECOND_PASS, DIFF, 2, "second_pass: it needs what a judge said"),
        (SECOND_PASS, ("score",), 0, ""),
        (SECOND_PASS, COMPARE, 0, ""),
        (SECOND_PASS, ("suggest",), 0, ""),
        (SECOND_PASS, ("unjudged",), 0, ""),
        (SECOND_PASS, ("validate", "--without-run"), 0, ""),
        (SECOND_PASS, ("lint",), 0, ""),
    ],
)
def test_without_judgments_a_command_says_what_to_do_or_does_not_need_them(
    folder: Path, config: str, command: tuple[str, ...], code: int, said: str
) -> None:
    workspace(folder, config)
    if config == SECOND_PASS:  # with something to flag
        query = {
            **asked(1, [TRUE]),
            "relevant_doc_ids": ["d"],
            "rules": [{"type": "must_not_contain", "value": "7 dollars"}],
        }
        write_jsonl(folder / "golden.jsonl", [query])
        row = {"query_id": "q1", "results": [{"doc_id": "d"}], "retrieved_contexts": [CONTEXT]}
        for name in ("current_run", "before"):
            write_jsonl(folder / f"{name}.jsonl", [row | {"response": "It is not 7 dollars."}])
    (folder / "judgments.jsonl").unlink()
    ended = rag_contract(*command)
    assert ended.code == code, ended
    assert said in ended.err
    assert (WHAT_TO_DO in ended.err) == bool(said), ended
    assert not (folder / "new.json").exists()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("check", *BOTH, "--baseline", "before.jsonl"), "Context recall (judged)  0.75 -> 0.75"),
        (("validate", *BOTH), "valid: 2 golden queries"),
        (("score", *JUDGMENTS), "0.7500"),
        ((*DIFF, *JUDGMENTS), "Context recall (judged)  0.75 -> 0.75"),
        ((*COMPARE, *JUDGMENTS), "Context recall (judged)  current_run  0.7500"),
        (("suggest", *JUDGMENTS), "Context recall (judged)  0.7500"),
        ((*NEW, *JUDGMENTS), "baseline of 2 queries in new.json"),
    ],
)
def test_with_judgments_each_command_shows_what_the_judge_said(
    folder: Path, command: tuple[str, ...], shown: str
) -> None:
    workspace(folder, LIMITS)
    ended = rag_contract(*command)
    assert ended.code == 0, ended
    assert shown in ended.out
    assert "left out" not in ended.err


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (("check",), 2, "minimums.criteria_met cannot be judged"),
        (("validate",), 2, "minimums.criteria_met cannot be judged"),
        (("score",), 0, "Criteria met (judged) is left out"),
        (("suggest",), 0, "Criteria met (judged) is left out"),
        (("compare", RUN, "before.jsonl"), 0, "Criteria met (judged) is left out"),
        (("unjudged",), 0, ""),
    ],
)
def test_criteria_are_one_more_of_these_metrics(folder: Path, command: tuple[str, ...], code: int, said: str) -> None:
    workspace(folder, "minimums: {criteria_met: 0.5}\n")
    query = {"id": "q1", "query": "?", "relevant_doc_ids": ["d"], "criteria": ["Is polite."]}
    write_jsonl(folder / "golden.jsonl", [query])
    row = {"query_id": "q1", "results": [{"doc_id": "d"}], "response": "Please."}
    for name in (RUN, "before.jsonl"):
        write_jsonl(folder / name, [row])
    (folder / "judgments.jsonl").unlink()
    ended = rag_contract(*command)
    assert ended.code == code, ended
    assert said in ended.err
    assert (WHAT_TO_DO in ended.err) == bool(said)


@pytest.mark.parametrize("command", [("check", *BOTH), (*DIFF, *BOTH), ("score", *JUDGMENTS), (*COMPARE, *JUDGMENTS)])
def test_a_verdict_that_is_missing_is_never_passed_over(folder: Path, command: tuple[str, ...]) -> None:
    workspace(folder, NAMED)
    write_judgments_on(folder, [TRUE])
    ended = rag_contract(*command)
    assert ended.code == 2, ended
    assert "has no judgments on its reference_claims" in ended.err


@pytest.mark.parametrize("command", [("check",), ("validate",), ("validate", "--without-run"), DIFF])
def test_files_of_a_judge_that_cannot_be_read_are_reported_by_every_command(
    folder: Path, command: tuple[str, ...]
) -> None:
    workspace(folder, "k: 5\n")
    (folder / "broken.jsonl").write_text("{\n")
    ended = rag_contract(*command, "--judgments", "broken.jsonl", "--calibration", "nowhere.json")
    assert ended.code == 2
    assert "error: broken.jsonl:1: " in ended.err
    assert "error: nowhere.json: cannot be read" in ended.err


def test_a_suggestion_is_of_judged_means_too_and_says_what_they_need(folder: Path) -> None:
    workspace(folder, "", *([TRUE] if at % 2 else [FALSE, TRUE] for at in range(40)))
    ended = rag_contract("suggest", *JUDGMENTS)
    assert ended.code == 0, ended
    assert "  context_recall_drop_gt: " in ended.out
    assert "  context_recall: " in ended.out
    assert "Context recall (judged): a limit counts only with a calibration (rag-contract judge calibrate)" in ended.out
    assert "rag-contract baseline --run current_run.jsonl --judgments judgments.jsonl\n" in ended.out


def test_every_row_of_a_query_must_be_judged_by_the_judge_that_is_calibrated(folder: Path) -> None:
    judged_workspace(folder, "minimums: {context_recall: 0.7}\n", [TRUE])
    other = f"{CONTEXT} More."
    rows = [{"query_id": "q1", "results": [], "retrieved_contexts": [text]} for text in (other, CONTEXT)]
    write_jsonl(folder / "current_run.jsonl", rows)
    write_good_calibration(folder)
    query = asked(1, [TRUE])
    for model, code in (("another", 2), ("toy", 0)):
        made = [*judgments_on(case_of(query, [other]), model=model), *judgments_on(case_of(query))]
        write_judgments(str(folder / "judgments.jsonl"), made)
        ended = rag_contract("check", "--repeats", *BOTH)
        assert ended.code == code, ended
    write_judgments_on(folder, [TRUE])
    ended = rag_contract("check", "--repeats", *BOTH)
    assert (ended.code, "retrieved texts have changed since" in ended.err) == (2, True), ended


def test_the_report_lists_the_claims_of_every_row_and_counts_each_judgment_once(folder: Path) -> None:
    judged_workspace(folder, "minimums: {context_recall: 0.1}\nper_query: {fail_on: new}\n", [TRUE, FALSE], [TRUE])
    texts = {"q1": [[CONTEXT], [FALSE], [CONTEXT], []], "q2": [[CONTEXT], [CONTEXT]]}
    rows = [{"query_id": name, "results": [], "retrieved_contexts": of} for name, all_ in texts.items() for of in all_]
    write_jsonl(folder / "current_run.jsonl", rows)
    before = [{"query_id": name, "results": [], "retrieved_contexts": ["Other."]} for name in texts]
    write_jsonl(folder / "before.jsonl", before)
    made = [
        one
        for query in (asked(1, [TRUE, FALSE]), asked(2, [TRUE]))
        for contexts in ([CONTEXT], [FALSE], ["Other."])
        for one in judgments_on(case_of(query, contexts))
    ]
    write_judgments(str(folder / "judgments.jsonl"), made)
    write_good_calibration(folder, counts=LabelCounts(tp=45, fp=5, fn=5, tn=45))
    ended = rag_contract("check", "--repeats", *BOTH, "--baseline", "before.jsonl")
    assert ended.code == 0, ended
    judge = json.loads((folder / "report.json").read_text())["judge"]
    (task,) = judge["tasks"]
    assert (judge["judgments"], judge["unused"], task["judgments"]) == (5, 4, 5), "two texts of q1, one of q2"
    first, second = task["queries"]
    assert (first["passed"], first["of"], second["passed"], second["of"]) == (3, 8, 2, 2)
    said = [(one["row"], one["item"], one["verdict"]) for one in first["items"]]
    assert said == [
        (row, f"claim:{at}", verdict)
        for row, verdicts in ((1, (True, False)), (2, (False, True)), (3, (True, False)))
        for at, verdict in enumerate(verdicts, 1)
    ]
    # of q1, a row without texts is 0 whoever judges: three of four, and both of q2, are estimated
    assert task["mean"] == pytest.approx((3 / 8 + 1) / 2)
    share = (3 / 4 + 1) / 2
    assert task["estimate"] == pytest.approx(share * ((task["mean"] / share) - 0.1) / 0.8)
    assert f"{FALSE} (row 2)" in (folder / "report.md").read_text()


def test_several_good_runs_are_a_baseline_of_judged_means(folder: Path) -> None:
    workspace(folder, "fail_on: {context_recall_drop_gt: 0.1}\n", [TRUE])
    row = {"query_id": "q1", "results": [{"doc_id": "d"}], "retrieved_contexts": ["Returns are accepted."]}
    write_jsonl(folder / "before.jsonl", [row])
    query = asked(1, [TRUE])
    made = [*judgments_on(case_of(query)), *judgments_on(case_of(query, ["Returns are accepted."]))]
    judgments, both = ("--judgments", "both.jsonl"), ("--judgments", "both.jsonl", "--calibration", "good.json")
    write_judgments("both.jsonl", made)
    (folder / "judgments.jsonl").unlink()
    (folder / "judge-calibration.json").rename("good.json")
    ended = rag_contract(*NEW, "--run", "current_run.jsonl", "--run", "before.jsonl", *judgments)
    assert ended.code == 0, ended
    stored = json.loads((folder / "new.json").read_text())
    assert (stored["runs"], stored["metrics"]["context_recall"]) == (2, 0.5)
    assert rag_contract("check", "--baseline", "new.json", *both).code == 0
    update = ("baseline", "--update", "--out", "new.json")
    ended = rag_contract(*update)
    assert (ended.code, WHAT_TO_DO in ended.err) == (2, True)
    assert rag_contract(*update, *judgments).code == 2
    assert rag_contract(*update, *both).code == 0
    assert json.loads((folder / "new.json").read_text())["metrics"]["context_recall"] == 1


def test_numbers_of_another_judge_are_not_shown_side_by_side_without_a_word(folder: Path) -> None:
    workspace(folder, NAMED)
    assert rag_contract(*NEW, *JUDGMENTS).code == 0
    commands = (("check", "--baseline", "new.json"), ("diff", "--baseline", "new.json"), ("compare", "new.json", RUN))
    for command in commands:
        assert rag_contract(*command, *JUDGMENTS).err == ""
    write_judgments_on(folder, [TRUE], [TRUE, FALSE], model="another")
    for command in commands:
        ended = rag_contract(*command, *JUDGMENTS)
        assert "warning: new.json: Context recall (judged) was computed in another way (toy at models" in ended.err
        assert "and now another at models" in ended.err


def test_judgments_of_other_tags_are_not_asked_for(folder: Path) -> None:
    judged_workspace(folder, "tags: {smoke: {minimums: {context_recall: 0.7}}}\n", [TRUE], [FALSE])
    tagged = [asked(at, [claim]) | {"tags": [tag]} for at, claim, tag in ((1, TRUE, "smoke"), (2, FALSE, "nightly"))]
    write_jsonl(folder / "golden.jsonl", tagged)
    write_judgments_on(folder, [TRUE])
    write_good_calibration(folder)
    assert rag_contract("check", "--tag", "smoke", *BOTH).code == 0
    assert rag_contract("check", *BOTH).code == 2
    (folder / "judgments.jsonl").unlink()
    ended = rag_contract("check", "--tag", "smoke")
    assert (ended.code, WHAT_TO_DO in ended.err) == (2, True)


def test_python_refuses_what_is_missing_as_the_command_does(folder: Path) -> None:
    workspace(folder, NAMED)
    inputs: dict[str, Any] = {"golden": "golden.jsonl", "run": "current_run.jsonl", "config": "ragcontract.yml"}
    with pytest.raises(InputError, match=r"judge.metrics: context_recall cannot be computed"):
        ragcontract.check(**inputs)
    assert ragcontract.check(**inputs, judgments=["judgments.jsonl"]).metrics["context_recall"].current == 0.75


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("check", "--baseline", "before.jsonl"), "Context recall (judged)  0.75 -> 0.75"),
        (("validate",), "valid: 2 golden queries"),
        (("validate", "--without-run"), "valid: 2 golden queries"),
        (("score",), "0.7500"),
        (DIFF, "Context recall (judged)  0.75 -> 0.75"),
        (COMPARE, "Context recall (judged)  current_run  0.7500"),
        (("suggest",), "Context recall (judged)  0.7500"),
        (NEW, "baseline of 2 queries in new.json"),
    ],
)
def test_files_with_the_usual_names_are_used_where_the_contract_needs_them(
    folder: Path, command: tuple[str, ...], shown: str
) -> None:
    workspace(folder, LIMITS)
    ended = rag_contract(*command)
    assert (ended.code, ended.err) == (0, ""), ended
    assert shown in ended.out


WHY = "because no limit, metric or second pass of the contract needs what a judge said"


@pytest.mark.parametrize("command", [("check",), ("validate",), ("validate", "--without-run"), DIFF, NEW])
def test_files_with_the_usual_names_that_nothing_needs_are_not_read_and_named_once(
    folder: Path, command: tuple[str, ...]
) -> None:
    workspace(folder, "k: 5\n")
    for name in ("judgments.jsonl", "judge-calibration.json"):
        (folder / name).write_text("{\n")
    ended = rag_contract(*command)
    assert ended.code == 0, ended
    named = f"warning: judgments.jsonl and judge-calibration.json are not used, {WHY}; to use them nevertheless, give "
    assert ended.err == f"{named}--judgments and --calibration (in the action, the inputs judgments and calibration)\n"
    (folder / "judge-calibration.json").unlink()
    command = (*command, "--force") if command == NEW else command
    assert rag_contract(*command).err.startswith(f"warning: judgments.jsonl is not used, {WHY}; to use it nevertheless")


def test_judgments_that_are_named_take_a_calibration_with_the_usual_name(folder: Path) -> None:
    workspace(folder, "k: 5\n")
    assert rag_contract("check", *JUDGMENTS).err == ""
    (task,) = json.loads((folder / "report.json").read_text())["judge"]["tasks"]
    assert task["kappa"] is not None


def test_python_reads_only_the_files_that_it_names(folder: Path) -> None:
    workspace(folder, "k: 5\n")
    report = ragcontract.check(golden="golden.jsonl", run="current_run.jsonl", config="ragcontract.yml")
    assert not report.warnings
