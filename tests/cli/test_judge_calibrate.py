"""``rag-contract judge calibrate`` as users meet it; the model is the stand-in."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import write_jsonl
from tests.judge_server import Fault, JudgeServer
from tests.process import Ended, files_in, spawn

FAILURES = "3 votes on failures"
CONTEXT = "Returns are accepted within 30 days of delivery. Refunds take five days."


def label(at: int, yes: bool, **fields: Any) -> dict[str, Any]:
    text = f"Refunds take five days, answer {at}." if not yes else "Refunds take five days."
    contexts = [f"{CONTEXT} Number {at} is ours."]
    question = f"How long {at}?"
    return {"task": "attribution", "question": question, "contexts": contexts, "text": text, "label": yes, **fields}


def labels(folder: Path, number: int = 30, **fields: Any) -> Path:
    rows = [label(at, yes, **fields) for at in range(number) for yes in (True, False)]
    write_jsonl(folder / "labels.jsonl", rows)
    return folder


def environ(folder: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(folder.parent / "state"), "OPENAI_API_KEY": "", "RAG_CONTRACT_JUDGE_KEY": ""}


def calibrate(folder: Path, server: JudgeServer, *argv: str) -> Ended:
    options = ("--model", "toy", "--judge-url", server.openai, "--votes", "1", *argv)
    return spawn("judge", "calibrate", *options, cwd=folder, environ=environ(folder))


def written(folder: Path) -> dict[str, Any]:
    (found,) = json.loads((folder / "judge-calibration.json").read_text())["calibrations"]
    return dict(found)


def test_an_honest_judge_agrees_with_people(tmp_path: Path) -> None:
    with JudgeServer() as server:
        ended = calibrate(labels(tmp_path), server)
    assert (ended.code, ended.err) == (0, "")
    assert "attribution: 60 labels, kappa 1.00 (at least 1.00); right where people say yes 100%" in ended.out
    assert ended.out.endswith("agrees with itself on 100%\nwrote judge-calibration.json\n")
    found = written(tmp_path)
    assert (found["n"], found["counts"]) == (60, {"tp": 30, "fp": 0, "fn": 0, "tn": 30})
    assert found["fingerprint"].startswith("stand-in-2026-01-31 at 127.0.0.1:")
    assert len(server.asked) == len(set(server.asked)) == 60  # both items of a question in one call, twice
    assert sorted(files_in(tmp_path)) == ["judge-calibration.json", "labels.jsonl"]


def test_a_judge_that_is_often_wrong_is_measured_and_its_gates_would_not_count(tmp_path: Path) -> None:
    rows = [label(at, yes) for at in range(40) for yes in (True, False)]
    for row in rows[::3]:
        row["label"] = not row["label"]
    write_jsonl(tmp_path / "labels.jsonl", rows)
    with JudgeServer() as server:
        ended = calibrate(tmp_path, server)
    assert ended.code == 0
    assert "warning: attribution: gates on this judge would not count: kappa is 0.3" in ended.err
    assert written(tmp_path)["kappa"] < 0.4


def test_what_no_judge_is_asked_about_says_nothing_of_a_judge(tmp_path: Path) -> None:
    asked = [label(at, yes) for at in range(4) for yes in (True, False)]
    empty = [label(at, False) | {"contexts": contexts} for at, contexts in enumerate(([], [" "], ["\n"]), 10)]
    write_jsonl(tmp_path / "labels.jsonl", [*asked, *empty])
    with JudgeServer() as server:
        ended = calibrate(tmp_path, server)
    assert (ended.code, written(tmp_path)["counts"]) == (0, {"tp": 4, "fp": 0, "fn": 0, "tn": 4})
    assert "warning: not counted: 3 labels, since no judge is asked where nothing was retrieved" in ended.err


def test_labels_that_no_judge_is_asked_about_are_no_calibration(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "labels.jsonl", [label(at, False) | {"contexts": []} for at in range(3)])
    with JudgeServer() as server:
        ended = calibrate(tmp_path, server)
    assert (ended.code, server.asked) == (2, [])
    assert "labels.jsonl: has no label to calibrate with" in ended.err


def test_the_judge_is_the_one_that_the_configuration_names_for_a_judging(tmp_path: Path) -> None:
    (labels(tmp_path, 2) / "ragcontract.yml").write_text("judge: {model: named, votes: 5, confirm: all}\n")
    (tmp_path / "other.yml").write_text("judge: {model: other}\n")
    given = {"XDG_STATE_HOME": str(tmp_path / "state")}
    found = []
    with JudgeServer() as server:
        for argv in ([], ["--votes", "3"], ["--config", "other.yml"]):
            ended = spawn("judge", "calibrate", "--judge-url", server.openai, *argv, cwd=tmp_path, environ=given)
            assert ended.code == 0
            found.append((server.came[-1].body["model"], written(tmp_path)["fingerprint"].partition("protocol 1, ")[2]))
    assert found == [("named", "5 votes on everything"), ("named", "3 votes on everything"), ("other", FAILURES)]


def test_too_few_labels_are_a_warning(tmp_path: Path) -> None:
    with JudgeServer() as server:
        ended = calibrate(labels(tmp_path, 4), server)
    assert "it has 8 labelled items with a verdict, and at least 50 are needed" in ended.err


def test_a_judge_that_fails_its_controls_has_no_verdicts(tmp_path: Path) -> None:
    with JudgeServer("yes") as server:
        ended = calibrate(labels(tmp_path, 3), server)
    assert written(tmp_path)["unjudged"] == 6
    assert "no kappa" in ended.out


def test_one_pass_says_nothing_of_self_agreement(tmp_path: Path) -> None:
    with JudgeServer() as server:
        calibrate(labels(tmp_path, 3), server, "--once")
    assert (written(tmp_path)["self_agreement"], len(server.asked)) == (None, 3)


def test_what_was_judged_before_an_early_end_is_not_asked_again(tmp_path: Path) -> None:
    with JudgeServer() as server:
        ended = calibrate(labels(tmp_path, 10), server, "--max-calls", "13")
        assert ended.code == 2
        assert "judge-calibration.json: is not written: 14 of 20 labels have no verdict" in ended.err
        assert not (tmp_path / "judge-calibration.json").exists()
        assert calibrate(tmp_path, server).out.startswith("7 calls, ")
    assert sorted(files_in(tmp_path)) == ["judge-calibration.json", "labels.jsonl"]


def test_a_key_that_is_refused_writes_nothing(tmp_path: Path) -> None:
    before = files_in(labels(tmp_path, 3))
    with JudgeServer(faults=[Fault(status=401)] * 9) as server:
        assert calibrate(tmp_path, server).code == 2
    assert files_in(tmp_path) == before


def test_all_that_is_wrong_with_labels_is_said(tmp_path: Path) -> None:
    rows = [label(1, True), label(1, True, label=False), label(2, True, task="criteria"), label(3, True, label="yes")]
    write_jsonl(tmp_path / "labels.jsonl", rows)
    with JudgeServer() as server:
        ended = calibrate(tmp_path, server)
    assert "labels.jsonl:2: text: this item is labelled already, at labels.jsonl:1; settle on one label" in ended.err
    assert "labels.jsonl:3: response: is needed where the task is 'criteria'" in ended.err
    assert "labels.jsonl:4: label: " in ended.err
    assert (ended.code, server.came) == (2, [])


def test_a_dry_run_counts_both_passes_and_reads_no_older_calibration(tmp_path: Path) -> None:
    with JudgeServer() as server:
        calibrate(labels(tmp_path, 3), server, "--once")
        calls = len(server.asked)
        both, once = (calibrate(tmp_path, server, "--dry-run", *argv) for argv in ([], ["--once"]))
        assert len(server.asked) == calls
    assert (both.code, once.code) == (0, 0)
    assert "items      12 (each label 2 times); 0 are known\nto judge   12\ncalls      6\n" in both.out
    assert "items      6; 0 are known\nto judge   6\ncalls      3\n" in once.out


@pytest.mark.parametrize("name", ["golden.jsonl", "ragcontract.yml", "labels.jsonl", "judgments.jsonl"])
def test_a_calibration_overwrites_nothing_but_a_calibration(tmp_path: Path, name: str) -> None:
    labels(tmp_path, 3)
    (tmp_path / "ragcontract.yml").write_text("k: 5\n")
    (tmp_path / "golden.jsonl").write_text('{"id": "q1", "query": "?", "relevant_doc_ids": ["d"]}\n')
    (tmp_path / "judgments.jsonl").write_text("{}\n")
    before = (tmp_path / name).read_bytes()
    with JudgeServer() as server:
        ended = calibrate(tmp_path, server, "--once", "--out", name)
        assert (ended.code, ended.out, server.came) == (2, "", []), ended
        assert f"{name}: " in ended.err
        assert (tmp_path / name).read_bytes() == before
        for _ in range(2):
            assert calibrate(tmp_path, server, "--once", "--out", "c.json").code == 0


def test_a_dry_run_asks_nothing(tmp_path: Path) -> None:
    with JudgeServer() as server:
        assert "calls      6\n" in calibrate(labels(tmp_path, 3), server, "--dry-run").out
    assert server.came == []


def test_the_other_tasks_are_calibrated_too(tmp_path: Path) -> None:
    response = "The fee is 30 euros. It is not known who pays."
    rows = [
        {"task": "criteria", "question": "?", "response": response, "text": "it says: 30 euros", "label": True},
        {"task": "criteria", "question": "?", "response": response, "text": "it says: 40 euros", "label": False},
        {"task": "confirmation", "question": "?", "response": response, "text": "30 euros", "why": "a", "label": True},
        {"task": "confirmation", "question": "?", "response": response, "text": "who pays", "why": "b", "label": False},
    ]
    write_jsonl(tmp_path / "labels.jsonl", rows)
    with JudgeServer() as server:
        calibrate(tmp_path, server)
    found = json.loads((tmp_path / "judge-calibration.json").read_text())["calibrations"]
    assert [(one["task"], one["counts"]["tp"], one["counts"]["tn"]) for one in found] == [
        ("confirmation", 1, 1),
        ("criteria", 1, 1),
    ]


def test_a_judge_does_not_look_right_by_labels_on_what_nobody_is_asked_about(tmp_path: Path) -> None:
    """A judge that says yes to everything would agree with people on all of these."""
    yes = [label(at, True) for at in range(30)]
    nothing = [label(at, False, contexts=[], question=f"Nothing {at}?") for at in range(30)]
    unanswered = {"task": "criteria", "question": "?", "text": "Is polite.", "response": " ", "label": False}
    write_jsonl(tmp_path / "labels.jsonl", [*yes, *nothing, unanswered])
    with JudgeServer("generous") as server:
        ended = calibrate(tmp_path, server)
    assert "not counted: 31 labels" in ended.err
    found = written(tmp_path)
    assert (found["counts"]["tn"], found["kappa"]) == (0, None)
