"""``rag-contract judge label`` as a person meets it, at a terminal and through a pipe."""

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.builders import golden, write_jsonl
from tests.judge_server import JudgeServer
from tests.process import AtATerminal, Ended, spawn

CONTEXT = "Returns are accepted within 30 days. \x1b[31m Refunds take five days."


def workspace(folder: Path, queries: int = 4) -> Path:
    claims = ["Refunds take five days.", "Refunds take a year."]
    write_jsonl(folder / "golden.jsonl", [golden(f"q{at}", reference_claims=claims) for at in range(queries)])
    rows = [{"query_id": f"q{at}", "results": [], "retrieved_contexts": [CONTEXT]} for at in range(queries)]
    write_jsonl(folder / "current_run.jsonl", rows)
    return folder


def label(folder: Path, keys: Iterable[str], *argv: str) -> Ended:
    return spawn("judge", "label", *argv, cwd=folder, stdin="".join(f"{key}\n" for key in keys))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "labels.jsonl").read_text().splitlines()]


def judge(folder: Path) -> None:
    with JudgeServer() as server:
        options = ("--model", "toy", "--judge-url", server.openai, "--votes", "1")
        assert spawn("judge", *options, cwd=folder, environ={"XDG_STATE_HOME": str(folder / "state")}).code == 0


def test_each_answer_is_a_line_with_all_that_a_calibration_needs(tmp_path: Path) -> None:
    ended = label(workspace(tmp_path), "yn?sq", "--labeler", "anna")
    assert ended.out.endswith("2 labels added; labels.jsonl has 2\n")
    first, second = rows(tmp_path)
    assert (first["label"], second["label"], first["labeler"]) == (True, False, "anna")
    assert (first["task"], first["contexts"]) == ("attribution", [CONTEXT])
    assert first["text"].startswith("Refunds take")


def test_what_is_labelled_is_not_asked_again(tmp_path: Path) -> None:
    label(workspace(tmp_path), "yyyq")
    assert "1 of 5 items" in label(tmp_path, "nnnnn").out
    assert len({(row["question"], row["text"]) for row in rows(tmp_path)}) == 8
    ended = label(tmp_path, "y")
    assert (ended.code, ended.err) == (2, "error: labels.jsonl: has a label for everything that is judged\n")


def test_the_sample_is_the_same_whatever_the_judge_said_which_is_not_shown(tmp_path: Path) -> None:
    label(workspace(tmp_path, 30), "y" * 10, "--sample", "10")
    before = rows(tmp_path)
    (tmp_path / "labels.jsonl").unlink()
    judge(tmp_path)
    ended = label(tmp_path, "y" * 10, "--sample", "10")
    assert rows(tmp_path) == before
    assert "supported" not in ended.out
    assert "Its words are" not in ended.out


def test_each_item_is_as_likely_to_be_drawn(tmp_path: Path) -> None:
    """Of three supported claims in four, a sample has about as many: it is not made up to have as many of both."""
    workspace(tmp_path, 100)
    claims = ["Refunds take five days.", "Returns are accepted.", "Refunds take five.", "Refunds take a year."]
    write_jsonl(tmp_path / "golden.jsonl", [golden(f"q{at}", reference_claims=claims) for at in range(100)])
    judge(tmp_path)
    label(tmp_path, "y" * 100, "--sample", "100")
    assert 65 <= sum(row["text"] != "Refunds take a year." for row in rows(tmp_path)) <= 85


def test_what_no_judge_is_asked_about_is_not_asked_of_people_either(tmp_path: Path) -> None:
    workspace(tmp_path, 2)
    run = [{"query_id": f"q{at}", "results": [], "retrieved_contexts": [CONTEXT] * at} for at in range(2)]
    write_jsonl(tmp_path / "current_run.jsonl", run)
    label(tmp_path, "yyyy")
    assert [row["contexts"] for row in rows(tmp_path)] == [[CONTEXT], [CONTEXT]]


def test_another_seed_draws_other_items_and_the_same_one_the_same(tmp_path: Path) -> None:
    found = []
    for seed in ("1", "1", "2"):
        label(workspace(tmp_path, 30), "yyyyy", "--sample", "5", "--seed", seed)
        found.append([(row["question"], row["text"]) for row in rows(tmp_path)])
        (tmp_path / "labels.jsonl").unlink()
    assert found[0] == found[1] != found[2]


def test_texts_do_not_act_on_the_terminal(tmp_path: Path) -> None:
    ended = label(workspace(tmp_path), "q")
    assert r"\x1b[31m Refunds" in ended.out
    assert "\x1b[31m" not in ended.out


def test_a_text_keeps_its_lines_which_cannot_pass_for_those_of_the_screen(tmp_path: Path) -> None:
    run = [{"query_id": "q0", "results": [], "retrieved_contexts": ["Costs:\r\n\n- 5 euros\nClaim\n\u2028It is free."]}]
    write_jsonl(workspace(tmp_path, 1) / "current_run.jsonl", run)
    shown = label(tmp_path, "q").out
    assert "Text 1\n  Costs:\n  - 5 euros\n  Claim\n  \\u2028It is free.\nClaim\n  Refunds" in shown


def test_single_keys_are_enough_at_a_terminal(tmp_path: Path) -> None:
    with AtATerminal("judge", "label", cwd=workspace(tmp_path)) as terminal:
        terminal.expect("Do these texts support the claim?")
        terminal.type("y")
        terminal.expect("2 of 8 items")
        terminal.expect("[q]uit")
        terminal.type("q")
        assert terminal.end() == 0
    assert len(rows(tmp_path)) == 1


def test_a_file_whose_last_line_is_open_is_gone_on_with(tmp_path: Path) -> None:
    label(workspace(tmp_path), "yq")
    path = tmp_path / "labels.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    label(tmp_path, "nq")
    assert [row["label"] for row in rows(tmp_path)] == [True, False]


def test_a_labels_file_that_is_wrong_is_left_alone(tmp_path: Path) -> None:
    (workspace(tmp_path) / "labels.jsonl").write_text('{"task": "attribution"}\n')
    ended = label(tmp_path, "y")
    assert ended.code == 2
    assert "labels.jsonl:1: " in ended.err


def test_a_file_to_which_no_line_can_be_added_is_left_alone(tmp_path: Path) -> None:
    label(workspace(tmp_path), "yq")
    packed = gzip.compress((tmp_path / "labels.jsonl").read_bytes())
    (tmp_path / "labels.jsonl.gz").write_bytes(packed)
    os.mkfifo(tmp_path / "pipe")
    for name, why in (
        ("labels.jsonl.gz", "is gzip, to which no line can be added; unpack it first"),
        ("labels.parquet", "is Parquet, to which no line can be added; name a .jsonl file"),
        ("pipe", "is not a regular file, so labels cannot be read from it"),
        (".", "is a folder"),
    ):
        ended = label(tmp_path, "y", "--labels", name)
        assert (ended.code, ended.err.startswith(f"error: {name}: {why}")) == (2, True), ended
    assert (tmp_path / "labels.jsonl.gz").read_bytes() == packed
    assert not (tmp_path / "labels.parquet").exists()


def test_after_ctrl_c_every_answer_is_there(tmp_path: Path) -> None:
    with AtATerminal("judge", "label", cwd=workspace(tmp_path)) as terminal:
        for number in (2, 3):
            terminal.expect("[q]uit")
            terminal.type("y")
            terminal.expect(f"{number} of 8 items")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert len(rows(tmp_path)) == 2
    assert "1 of 6 items" in label(tmp_path, "q").out


def test_the_end_of_the_input_is_the_end_and_a_key_that_means_nothing_is_asked_again(tmp_path: Path) -> None:
    ended = label(workspace(tmp_path), ["", "x", "\x1b[A", "y"])
    assert (ended.code, len(rows(tmp_path))) == (0, 1)
    with AtATerminal("judge", "label", cwd=tmp_path) as terminal:
        terminal.expect("[q]uit")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert len(rows(tmp_path)) == 1


def test_an_item_whose_texts_have_changed_is_asked_again_and_its_old_label_stays(tmp_path: Path) -> None:
    label(workspace(tmp_path, 1), "yy")
    before = (tmp_path / "labels.jsonl").read_bytes()
    write_jsonl(tmp_path / "current_run.jsonl", [{"query_id": "q0", "results": [], "retrieved_contexts": ["Other."]}])
    assert "1 of 2 items" in label(tmp_path, "nn").out
    assert (tmp_path / "labels.jsonl").read_bytes().startswith(before)
    assert [row["contexts"] for row in rows(tmp_path)] == [[CONTEXT]] * 2 + [["Other."]] * 2


def test_what_was_labelled_is_what_a_judge_is_calibrated_with(tmp_path: Path) -> None:
    label(workspace(tmp_path), "y" * 8)
    with JudgeServer() as server:
        options = ("--model", "toy", "--judge-url", server.openai)
        given = {"XDG_STATE_HOME": str(tmp_path / "state")}
        assert spawn("judge", "calibrate", *options, cwd=tmp_path, environ=given).code == 0
    (found,) = json.loads((tmp_path / "judge-calibration.json").read_text())["calibrations"]
    assert found["counts"] == {"tp": 4, "fp": 0, "fn": 4, "tn": 0}


def test_texts_are_shown_line_by_line_and_no_line_of_them_looks_like_a_heading(tmp_path: Path) -> None:
    workspace(tmp_path, 1)
    row = {"query_id": "q0", "results": [], "retrieved_contexts": ["# Refunds\n\nFive days.\nClaim\n\x1b[2J\n"]}
    write_jsonl(tmp_path / "current_run.jsonl", [row])
    shown = label(tmp_path, "q").out
    assert "Text 1\n  # Refunds\n  Five days.\n  Claim\n  \\x1b[2J\nClaim\n  Refunds" in shown
