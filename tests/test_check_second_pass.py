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
    (folder / "judge-calibration.json").unlink()
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


def test_a_query_without_a_row_has_nothing_that_a_judge_could_clear(folder: Path) -> None:
    workspace(folder, "It is free.", config="missing_queries: zero\njudge: {second_pass: true}\n")
    # With this benchmark's matching, alternatives without a text of their own are in an empty answer, too.
    query = {"id": "q1", "query": "?", "forbidden_elements": [{"any": ["$4"]}], "as_evaluated": "fitz-gov-4.1.0"}
    write_jsonl(folder / "golden.jsonl", [json.loads((folder / "golden.jsonl").read_text()), query])
    (folder / "judgments.jsonl").write_text("")
    assert check().code == 1
    report = json.loads((folder / "report.json").read_text())
    assert {one["query_id"]: one["id"] for one in report["failed_checks"]} == {"q1": "forbidden_elements"}


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


def test_on_a_day_when_nothing_is_flagged_judge_and_check_pass(folder: Path, server: JudgeServer) -> None:
    workspace(folder, "It is free.")
    environ = {"RAG_CONTRACT_JUDGE_KEY": "", "OPENAI_API_KEY": "", "XDG_STATE_HOME": str(folder / "state")}
    ended = spawn("judge", "--model", "toy", "--judge-url", server.openai, cwd=folder, environ=environ)
    assert ended.code == 0, ended
    assert "nothing to judge; wrote judgments.jsonl" in ended.out
    assert (folder / "judgments.jsonl").read_bytes() == b""
    assert not server.asked
    ended = check()
    assert (ended.code, ended.err) == (0, ""), ended
    workspace(folder, ASSERTED)
    ended = check()
    assert (ended.code, "has no judgments on its flagged texts" in ended.err) == (2, True), ended
    (folder / "judgments.jsonl").unlink()
    ended = check()
    assert (ended.code, ended.err) == (2, "error: judgments.jsonl: no such file\n"), ended


NEW = "per_query: {fail_on: new}\njudge: {second_pass: true}\n"
CALIBRATED = ("--calibration", "judge-calibration.json")


def known_good(folder: Path, *answers: str) -> None:
    """Write a run of earlier as the baseline."""
    rows = [{"query_id": f"q{at}", "retrieved_contexts": CONTEXTS, "response": one} for at, one in enumerate(answers)]
    write_jsonl(folder / "base.jsonl", rows)


def judge_base(folder: Path, server: JudgeServer) -> None:
    """Judge the baseline, into a file of its own."""
    environ = {"RAG_CONTRACT_JUDGE_KEY": "", "OPENAI_API_KEY": "", "XDG_STATE_HOME": str(folder / "state")}
    options = ("--model", "toy", "--judge-url", server.openai, "--run", "base.jsonl", "--judgments", "base-said.jsonl")
    assert spawn("judge", *options, cwd=folder, environ=environ).code == 0


def test_a_denial_in_the_baseline_makes_no_assertion_a_known_one(folder: Path, server: JudgeServer) -> None:
    workspace(folder, ASSERTED, config=NEW)
    known_good(folder, DENIED)
    judge(folder, server)
    ended = check(*CALIBRATED, "--baseline", "base.jsonl")
    assert ended.code == 1, ended
    assert "the baseline has flagged texts without a verdict in 1 golden query: 'q0'" in ended.err
    judge_base(folder, server)
    ended = check("base-said.jsonl", *CALIBRATED, "--baseline", "base.jsonl")
    assert (ended.code, "without a verdict" in ended.err) == (1, False), ended


def test_what_the_judge_asserts_of_the_baseline_too_is_known(folder: Path, server: JudgeServer) -> None:
    workspace(folder, ASSERTED, config=NEW)
    known_good(folder, f"Well. {ASSERTED}")
    judge(folder, server)
    assert check(*CALIBRATED, "--baseline", "base.jsonl").code == 1
    judge_base(folder, server)
    ended = check("base-said.jsonl", *CALIBRATED, "--baseline", "base.jsonl")
    assert (ended.code, ended.err) == (0, ""), ended
    workspace(folder, f"Well. {ASSERTED}", config=NEW)  # equal texts are judged in both files
    judge(folder, server)
    ended = check("base-said.jsonl", *CALIBRATED, "--baseline", "base.jsonl")
    assert (ended.code, ended.err) == (0, ""), ended


def test_a_stored_baseline_has_what_was_broken_when_it_was_stored(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED, config=NEW)
    judge(folder, server)
    stored = rag_contract("baseline", "--judgments", "judgments.jsonl", *CALIBRATED)
    assert stored.code == 0, stored
    workspace(folder, ASSERTED, config=NEW)
    judge(folder, server)
    ended = check(*CALIBRATED, "--baseline", "baseline.json")
    assert ended.code == 1, ended


def test_every_row_of_a_query_is_cleared_on_its_own(folder: Path, server: JudgeServer) -> None:
    workspace(folder, DENIED)
    judge(folder, server)
    workspace(folder, SUPPORTED)
    judge(folder, server)
    rows = [{"query_id": "q0", "retrieved_contexts": CONTEXTS, "response": one} for one in (DENIED, SUPPORTED, "Free.")]
    write_jsonl(folder / "current_run.jsonl", rows)
    ended = check(*CALIBRATED, "--repeats")
    assert (ended.code, "the judge cleared 2 violations of 1 golden query: 'q0'" in ended.err) == (0, True), ended
    write_jsonl(folder / "current_run.jsonl", [*rows, {**rows[0], "response": ASSERTED}])
    ended = check(*CALIBRATED, "--repeats")
    assert (ended.code, "has no judgments" in ended.err) == (2, True), ended


def test_tiers_and_waivers_are_about_what_stands(folder: Path, server: JudgeServer) -> None:
    tier = "tiers: [{name: sanity, minimum: 0.5}]\njudge: {second_pass: true}\n"
    workspace(folder, DENIED, ASSERTED, config=tier)
    queries = [json.loads(line) for line in (folder / "golden.jsonl").read_text().splitlines()]
    write_jsonl(folder / "golden.jsonl", [{**query, "tier": "sanity"} for query in queries])
    judge(folder, server)
    ended = check(*CALIBRATED)
    report = json.loads((folder / "report.json").read_text())
    assert report["tiers"][0]["rate"] == 0.5
    assert [one["query_id"] for one in report["failed_checks"]] == ["q1"], ended
    known = "rule: forbidden_claims, reason: known, owner: me, expires: 2026-12-01"
    waivers = "".join(f"  - {{query: q{at}, {known}}}\n" for at in range(2))
    (folder / "ragcontract.yml").write_text(f"judge: {{second_pass: true}}\nwaivers:\n{waivers}")
    ended = check(*CALIBRATED)
    assert ended.code == 0, ended
    report = json.loads((folder / "report.json").read_text())
    assert "q0" in ended.err, ended  # its waiver is not needed
