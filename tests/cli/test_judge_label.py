"""``rag-contract judge label`` as a person meets it, at a terminal and through a pipe."""

import gzip
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.judge_server import JudgeServer
from tests.process import AtATerminal, Ended, spawn
from tests.runner import ROOT

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
    assert "Text 1 (> nearest to the claim)\n> # Refunds\n> Five days.\n  Claim\n  \\x1b[2J\nClaim\n  Refunds" in shown


# The screen

PROSE = "\n".join(f"Paragraph {number} is about shipping \x1b[31m\u202e and the weather." for number in range(60))
PROOF = "A refund is paid within five working days."
PASSAGE = f"{PROSE}\n{PROOF}\n{PROSE}"


def with_texts(folder: Path, *contexts: str, claim: str = "Refunds are paid in five working days.") -> Path:
    write_jsonl(folder / "golden.jsonl", [golden("q0", reference_claims=[claim])])
    write_jsonl(folder / "current_run.jsonl", [{"query_id": "q0", "results": [], "retrieved_contexts": contexts}])
    return folder


def screens(shown: str) -> list[str]:
    """Return what was shown from one key to the next."""
    plain = shown.replace("\r", "").replace("\x1b[1m", "").replace("\x1b[0m", "")
    return [screen.partition("\n")[2] if number else screen for number, screen in enumerate(plain.split("[q]uit "))]


def test_the_text_with_the_nearest_passage_comes_first_and_the_passage_is_marked(tmp_path: Path) -> None:
    shown = label(with_texts(tmp_path, "Shipping is free.", f"Hello.\n{PROOF}\nBye."), "q").out
    nearest = f"Text 2 (> nearest to the claim)\n  Hello.\n> {PROOF}\n  Bye.\nText 1\n  Shipping is free.\nClaim\n"
    assert nearest in shown


def test_a_text_that_does_not_fit_on_the_screen_begins_just_before_its_nearest_passage(tmp_path: Path) -> None:
    """A person does not look for it, also where it would be on the first screen without that."""
    lines = [f"Paragraph {number} is about shipping." for number in range(40)]
    lines[8] = PROOF
    shown = label(with_texts(tmp_path, "Hello.", "\n".join(lines)), "mmq").out
    nearest = f"Text 2, from line 7 (> nearest to the claim)\n  {lines[6]}\n  {lines[7]}\n> {PROOF}\n  {lines[9]}\n"
    first, second, third, _ = shown.split("[q]uit\n")
    assert f"What about q0?\n{nearest}" in first
    assert f"\nText 2, from line 22\n  {lines[21]}\n" in second
    assert f"\nText 2, its beginning\n  {lines[0]}\n" in third
    assert f"  {lines[5]}\nText 1\n  Hello.\nClaim\n" in third


@pytest.mark.parametrize(("lines", "begins"), [(12, "Text 1 (>"), (13, "Text 1, from line 11 (>")])
def test_a_short_response_leaves_the_screen_to_the_text(lines: int, begins: str, tmp_path: Path) -> None:
    """Twelve lines of a text fit below a response of two; of thirteen, the passage at their end would not."""
    write_jsonl(tmp_path / "golden.jsonl", [golden("q0", "d", rules=[{"type": "must_not_contain", "value": "$499"}])])
    text = "\n".join([*(f"Paragraph {number}." for number in range(1, lines)), "Express orders cost $499."])
    row = {"query_id": "q0", "results": [{"doc_id": "d"}], "response": "Hello.\nIt costs $499."}
    write_jsonl(tmp_path / "current_run.jsonl", [row | {"retrieved_contexts": [text]}])
    shown = label(tmp_path, "q", "--task", "confirmation").out
    assert f"Hello.\n> It costs $499.\n{begins}" in shown
    assert "> Express orders cost $499.\n" in shown
    assert ("[m]ore" in shown) == ("; screen 1 of 2" in shown) == (lines > 12)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_of_a_long_response_and_a_long_text_both_passages_are_on_the_first_screen(columns: int, tmp_path: Path) -> None:
    """One must be held against the other; m shows all the rest of both."""
    rule = {"type": "must_not_contain", "value": "$499"}
    write_jsonl(tmp_path / "golden.jsonl", [golden("q0", "d", rules=[rule])])
    response, text = ([f"{name} {number} has words." for number in range(60)] for name in ("Sentence", "Paragraph"))
    response[40], text[50] = "Your order costs $499.", "Express orders cost $499."
    row = {"query_id": "q0", "results": [{"doc_id": "d"}], "response": "\n".join(response)}
    write_jsonl(tmp_path / "current_run.jsonl", [row | {"retrieved_contexts": ["Hello.", "\n".join(text)]}])
    with AtATerminal("judge", "label", "--task", "confirmation", cwd=tmp_path, columns=columns) as person:
        person.expect("[q]uit ")
        for _ in range(int(re.findall(r"screen 1 of (\d+)", person.shown)[0]) - 1):
            person.type("m")
            person.expect("[q]uit ")
        person.type("q")
        assert person.end() == 0
    shown = screens(person.shown)[:-1]
    assert re.search(r"\n> Your order costs \$499\.\n(  .*\n)*Text 2, from line .*\n(  .*\n){0,2}> Express", shown[0])
    lines = [line[2:] for screen in shown for line in screen.splitlines()]
    assert all(lines.count(line) == 1 for line in [*response, *text, "Hello."])
    assert all(len(screen.splitlines()) <= 24 for screen in shown)


def test_code_keeps_its_lines_and_their_indentation(tmp_path: Path) -> None:
    code = "\n    def refund(order):\n\t\treturn 5  # working days\r\n\n::error::x\n"
    shown = label(with_texts(tmp_path, code), "q").out
    nearest = "      def refund(order):\n>         return 5  # working days\n  \\x3a:error::x\nClaim\n"
    assert f"Text 1 (> nearest to the claim)\n{nearest}" in shown


def test_what_is_escaped_for_a_runner_fits_on_the_screen(tmp_path: Path) -> None:
    shown = label(with_texts(tmp_path, "##[" * 400), "q").out
    assert "##[" not in shown
    assert max(map(len, shown.splitlines())) < 80


def test_where_no_text_has_words_of_the_claim_nothing_is_marked(tmp_path: Path) -> None:
    shown = label(with_texts(tmp_path, "Shipping is free.", "> Costs \u20ac 5."), "q").out
    assert "Text 1\n  Shipping is free.\nText 2\n  > Costs \u20ac 5.\nClaim\n" in shown


def test_words_are_found_in_scripts_without_blanks(tmp_path: Path) -> None:
    texts = "\u9001\u6599\u7121\u6599\u3067\u3059", "\u8fd4\u91d1\u306f\u4e94\u65e5\u3067\u3059"
    shown = label(with_texts(tmp_path, *texts, claim="\u8fd4\u91d1\u306b\u4e94\u65e5"), "q").out
    assert f"Text 2 (> nearest to the claim)\n> {texts[1]}\nText 1\n" in shown


def test_the_lines_of_a_response_that_meet_a_criterion_are_marked(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "golden.jsonl", [golden("q0", criteria=["Says that returns are free."])])
    row = {"query_id": "q0", "results": [], "response": "Hello.\nAll returns are free.", "retrieved_contexts": []}
    write_jsonl(tmp_path / "current_run.jsonl", [row])
    shown = label(tmp_path, "q").out
    assert "Response (> nearest to the criterion)\n  Hello.\n> All returns are free.\nCriterion\n" in shown


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_no_screen_has_more_lines_than_the_terminal_and_nothing_is_out_of_reach(columns: int, tmp_path: Path) -> None:
    """The passage is on the first screen; m shows all that is before and behind it, and then the first one again."""
    long = "How long do refunds take? " * 40
    with_texts(tmp_path, "Shipping is free.", PASSAGE, claim="Refunds are paid in five working days. " * 12)
    write_jsonl(tmp_path / "golden.jsonl", [json.loads((tmp_path / "golden.jsonl").read_text()) | {"query": long}])
    with AtATerminal("judge", "label", cwd=tmp_path, columns=columns) as person:
        person.expect("[q]uit ")
        total = int(re.findall(r"screen 1 of (\d+)", person.shown)[0])
        for _ in range(total):
            person.type("m")
            person.expect("[q]uit ")
        person.type("q")
        assert person.end() == 0
    shown = screens(person.shown)[:-1]
    assert "> A refund is paid" in shown[0]
    assert shown[-1].strip() == shown[0].strip()
    for screen in shown:
        lines = screen.splitlines()
        assert len(lines) <= 24
        assert all(len(line) < columns for line in lines)
        assert "\nQuestion\n" in screen
        assert "\nClaim\n" in screen
    words = " ".join(" ".join(shown[:-1]).split())
    for number in range(60):
        assert len(re.findall(rf"Paragraph\W+{number}\b", words)) == 2, number
    assert words.count("Shipping is free.") == 1
    assert not {"\x1b", "\u202e"} & set(words)


def test_a_screen_on_a_tall_terminal_has_25_lines_at_most(tmp_path: Path) -> None:
    ended = spawn("judge", "label", cwd=with_texts(tmp_path, PASSAGE), stdin="q\n", environ={"LINES": "100"})
    assert ended.out.partition("[q]uit")[0].count("\n") == 24
    assert "; screen 1 of " in ended.out


# Taking back, and what is needed


def test_after_each_label_it_says_how_many_more_of_which_kind_a_calibration_needs(tmp_path: Path) -> None:
    shown = label(workspace(tmp_path, 40), "yn" * 9 + "yyn" + "y" * 29).out
    first, second = (
        "needs 49 more labels, among them at least 9 yes and 10 no",
        "needs 48 more labels, among them at least",
    )
    assert f"A calibration of attribution {first}." in " ".join(shown.split())
    assert f"{second} 9 yes and 9 no." in " ".join(shown.split())
    assert "A calibration of attribution needs 30 more labels, among them at least 1 no." in " ".join(shown.split())
    assert "A calibration of attribution needs 1 more label." in shown
    assert shown.count("A calibration of attribution has all the labels that it needs.") == 1


def test_labels_of_which_no_judge_is_asked_do_not_count_as_labels_that_are_needed(tmp_path: Path) -> None:
    known = {"task": "attribution", "question": "?", "contexts": [], "text": "A claim.", "label": True}
    write_jsonl(workspace(tmp_path) / "labels.jsonl", [known])
    assert "needs 49 more labels" in label(tmp_path, "y").out


def test_back_takes_the_last_label_out_of_the_file_again_as_often_as_one_likes(tmp_path: Path) -> None:
    with AtATerminal("judge", "label", cwd=workspace(tmp_path)) as person:
        files: list[bytes] = []
        for key in "yny":
            person.expect("[q]uit ")
            files.append((tmp_path / "labels.jsonl").read_bytes() if files else b"")
            person.type(key)
        person.expect("[q]uit ")
        for at in (3, 2, 1):
            person.type("b")
            person.expect("The last label is taken back. A calibration of attribution needs")
            person.expect(f"{at} of 8 items")
            person.expect("[q]uit ")
            assert (tmp_path / "labels.jsonl").read_bytes() == files.pop()
        person.type("b")
        person.expect("this is the first answer")
        person.expect("[q]uit ")
        person.type("nq")
        assert person.end() == 0
    assert person.shown.endswith("1 label added; labels.jsonl has 1\r\n")
    assert [row["label"] for row in rows(tmp_path)] == [False]
    assert not list(tmp_path.glob(".rag-contract-*"))


def test_back_goes_to_what_was_skipped_and_leaves_labels_of_another_day(tmp_path: Path) -> None:
    label(workspace(tmp_path), "y")
    path = tmp_path / "labels.jsonl"
    path.write_text(path.read_text().rstrip("\n"))
    before = path.read_bytes()
    shown = label(tmp_path, "nsbbbq").out
    assert re.findall(r"(\d) of 7 items", shown) == ["1", "2", "3", "2", "1", "1"]
    assert shown.endswith("0 labels added; labels.jsonl has 1\n")
    assert path.read_bytes() == before


def test_a_label_is_not_taken_back_from_a_file_that_another_program_wrote_meanwhile(tmp_path: Path) -> None:
    path = workspace(tmp_path) / "labels.jsonl"
    with AtATerminal("judge", "label", cwd=tmp_path) as person:
        person.expect("[q]uit ")
        person.type("y")
        person.expect("[q]uit ")
        theirs = path.read_bytes() + path.read_bytes().replace(b"What", b"Why")
        path.write_bytes(theirs)
        person.type("b")
        assert person.end() == 2
    assert "labels.jsonl: was changed by another program" in " ".join(person.shown.split())
    assert path.read_bytes() == theirs


@pytest.mark.parametrize("keys", ["yb", "yyb", "yybb", "ynbs"])
def test_ctrl_c_after_a_label_was_taken_back_keeps_all_others(keys: str, tmp_path: Path) -> None:
    with AtATerminal("judge", "label", cwd=workspace(tmp_path)) as person:
        for key in keys:
            person.expect("[q]uit ")
            person.type(key)
        person.expect("[q]uit ")
        person.type("\x03")
        assert person.end() == 130
    assert len(rows(tmp_path)) == keys.count("y") + keys.count("n") - keys.count("b")
    assert f"labels.jsonl has {len(rows(tmp_path))}\r\n" in person.shown


def test_the_page_shows_what_the_screen_shows(tmp_path: Path) -> None:
    asked = golden("q0", query="How long do refunds take?", reference_claims=["A refund takes five working days."])
    write_jsonl(tmp_path / "golden.jsonl", [asked, golden("q1", reference_claims=["Shipping is free."])])
    texts = [
        "Shipping takes two days.",
        "# Refunds\nReturns are free within 30 days.\nEach refund is paid within five working days.\nNo gift cards.",
    ]
    runs = [{"query_id": f"q{at}", "results": [], "retrieved_contexts": texts} for at in range(2)]
    write_jsonl(tmp_path / "current_run.jsonl", runs)
    shown = label(tmp_path, "yq").out
    page = (ROOT / "docs" / "guides" / "judge.md").read_text().partition("### The screen")[2]
    example = page.partition("```text\n")[2].partition("```")[0]
    assert "\n> " in example
    assert shown.startswith(f"\n{example}".replace("[q]uit y\n", "[q]uit\n")), shown
