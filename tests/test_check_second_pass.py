"""``check --judgments`` with a second pass: what rules about answers flag counts only if a judge confirms it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_jsonl
from tests.judge_server import JudgeServer
from tests.process import rag_contract, spawn

ASKED = "judge: {second_pass: true, uncalibrated: advisory}\n"
CONTEXTS = ["Returns are accepted within 30 days.", "The basic plan costs $20."]
DENIED, ASSERTED, SUPPORTED = "No text says that it costs $499.", "It costs $499.", "The basic plan costs $20."


@pytest.fixture(name="folder")
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(name="server")
def one_server() -> Iterator[JudgeServer]:
    with JudgeServer() as server:
        yield server


def workspace(folder: Path, *answers: str, config: str = "judge: {second_pass: true}\n") -> None:
    asked = {"query": "What does it cost?", "forbidden_claims": [r"\$\d+"]}
    write_jsonl(folder / "golden.jsonl", [{"id": f"q{at}", **asked} for at in range(len(answers))])
    rows = [{"query_id": f"q{at}", "retrieved_contexts": CONTEXTS, "response": one} for at, one in enumerate(answers)]
    write_jsonl(folder / "current_run.jsonl", rows)
    (folder / "ragcontract.yml").write_text(config)


def label(at: int) -> dict[str, Any]:
    said = f"It costs $7 in shop {at}." if at % 2 == 0 else f"It is not known to cost $7 in shop {at}."
    about = {"question": f"{at}?", "text": "$7", "why": "price", "contexts": ["Nothing to see."]}
    return {"task": "confirmation", **about, "response": said, "label": at % 2 == 0}


def judge(folder: Path, server: JudgeServer) -> None:
    write_jsonl(folder / "labels.jsonl", [label(at) for at in range(60)])
    environ = {"RAG_CONTRACT_JUDGE_KEY": "", "OPENAI_API_KEY": "", "XDG_STATE_HOME": str(folder / "state")}
    options = ("--model", "toy", "--judge-url", server.openai)
    assert spawn("judge", *options, cwd=folder, environ=environ).code == 0
    assert spawn("judge", "calibrate", "--once", *options, cwd=folder, environ=environ).code == 0


def check(*argv: str) -> Any:
    return rag_contract("check", "--judgments", "judgments.jsonl", *argv)


def test_what_is_flagged_counts_only_if_it_is_asserted_without_support(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED, SUPPORTED, "It is free.")
    assert rag_contract("check").code == 2
    judge(folder, server)
    calibrated = ("--calibration", "judge-calibration.json")
    ended = check(*calibrated)
    assert (ended.code, "the judge cleared 2 violations of 2 golden queries: 'q0', 'q1'" in ended.err) == (0, True), (
        ended
    )
    workspace(folder, DENIED, ASSERTED, "It is free.")
    ended = check(*calibrated)
    assert (ended.code, "flagged texts" in ended.err) == (2, True), ended
    judge(folder, server)
    assert check(*calibrated).code == 1
    report = json.loads((folder / "report.json").read_text())
    assert [one["query_id"] for one in report["failed_checks"]] == ["q1"]


def test_a_judge_without_a_calibration_clears_nothing(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED)
    judge(folder, server)
    ended = check()
    assert (ended.code, "second_pass cannot be used: the judge is not calibrated" in ended.err) == (2, True), ended
    workspace(folder, DENIED, config=ASKED)
    assert check().code == 1


def test_what_another_judge_cleared_before_does_not_count(folder: Path, server: JudgeServer) -> None:
    """A model may change behind its name: the last judgment on a query does not vouch for those before it."""
    workspace(folder, DENIED)
    judge(folder, server)
    (line,) = (folder / "judgments.jsonl").read_text().splitlines()
    calibrated = json.loads(line)
    other = {**calibrated, "fingerprint": "worse at elsewhere", "at": "2026-01-01T00:00:00Z"}
    write_jsonl(folder / "judgments.jsonl", [other, {**calibrated, "key": "0" * 64}])
    ended = check("--calibration", "judge-calibration.json")
    assert (ended.code, "by another judge than the one that was calibrated" in ended.err) == (2, True), ended


@pytest.mark.parametrize("answer", [DENIED, SUPPORTED])
def test_what_is_cleared_by_words_that_no_text_has_is_not_cleared(
    folder: Path, server: JudgeServer, answer: str
) -> None:
    workspace(folder, answer)
    judge(folder, server)
    (line,) = (folder / "judgments.jsonl").read_text().splitlines()
    write_jsonl(folder / "judgments.jsonl", [{**json.loads(line), "quote": "It costs nothing at all."}])
    ended = check("--calibration", "judge-calibration.json")
    assert (ended.code, "its quote is not in the text that it names" in ended.err) == (2, True), ended


def test_of_two_rules_that_say_the_same_the_one_that_found_more_stands(folder: Path, server: JudgeServer) -> None:
    answer = "There is no refund here.\nREFUND is what you get."
    workspace(folder, answer)
    searched = [{"type": "must_not_contain", "value": "refund", "ignore_case": case} for case in (True, False)]
    write_jsonl(folder / "golden.jsonl", [{"id": "q0", "query": "What does it cost?", "rules": searched}])
    judge(folder, server)
    verdicts = [json.loads(line)["verdict"] for line in (folder / "judgments.jsonl").read_text().splitlines()]
    assert sorted(verdicts) == ["asserts_unsupported", "denies_or_reports_absence"]
    assert check("--calibration", "judge-calibration.json").code == 1


def test_what_has_no_verdict_counts_where_it_may(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED)
    judge(folder, server)
    workspace(folder, DENIED, DENIED.replace("499", "5"), config="judge: {second_pass: true, unconfirmed: stands}\n")
    assert check("--calibration", "judge-calibration.json").code == 1
    report = json.loads((folder / "report.json").read_text())
    assert [one["query_id"] for one in report["failed_checks"]] == ["q1"]


def test_a_second_pass_needs_judgments(folder: Path) -> None:
    workspace(folder, "It is free.")
    ended = rag_contract("check")
    assert (ended.code, "second_pass: it needs what a judge said" in ended.err) == (2, True)


def test_the_turns_of_a_conversation_are_cleared_one_by_one(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED)
    said = ["What does it cost?", DENIED, "Sure?", ASSERTED]
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    turns = [{"query": said[0]}, {"query": said[2]}]
    query = {"id": "q0", "query": "?", "forbidden_claims": [r"\$\d+"], "turns": turns}
    write_jsonl(folder / "golden.jsonl", [query])
    write_jsonl(
        folder / "current_run.jsonl", [{"query_id": "q0", "retrieved_contexts": CONTEXTS, "messages": messages}]
    )
    judge(folder, server)
    assert check("--calibration", "judge-calibration.json").code == 1
    (failed,) = json.loads((folder / "report.json").read_text())["failed_checks"]
    assert "in turn 2" in failed["message"]


def test_the_baseline_knows_the_same_rule_with_and_without_a_judge(folder: Path, server: JudgeServer) -> None:
    workspace(folder, ASSERTED, DENIED, config="per_query: {fail_on: new}\n")
    assert rag_contract("baseline").code == 0
    workspace(folder, ASSERTED, DENIED, config="per_query: {fail_on: new}\njudge: {second_pass: true}\n")
    judge(folder, server)
    assert check("--calibration", "judge-calibration.json", "--baseline", "baseline.json").code == 0
