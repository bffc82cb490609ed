"""`rag-contract label` as a person uses it: through a pipe, and at a terminal."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, run, write_jsonl
from tests.process import COMMAND, AtATerminal, Ended, files_in, rag_contract, shell, spawn

CTRL_C, CTRL_D = "\x03", "\x04"
HOSTILE = "a\x1b[31m\u202e\x07\r\n::error::b ##[c]"


def fill(folder: Path, *rows: dict[str, Any], queries: int = 2) -> Path:
    """Write questions without labels, and a run that returned a and b for each."""
    write_jsonl(folder / "golden.jsonl", [golden(f"q{number}", "TODO") for number in range(1, queries + 1)])
    write_jsonl(folder / "current_run.jsonl", rows or [run(f"q{number}", "a", "b") for number in range(1, queries + 1)])
    return folder


def label(folder: Path, answers: str, *argv: str) -> Ended:
    """Answer through a pipe."""
    return spawn("label", *argv, cwd=folder, stdin="".join(f"{key}\n" for key in answers))


def labels(folder: Path) -> dict[str, Any]:
    """Return the labels of each golden row."""
    rows = map(json.loads, (folder / "golden.jsonl").read_text().splitlines())
    return {row["id"]: row.get("relevance", row.get("relevant_doc_ids")) for row in rows}


def test_answers_become_golden_rows_that_can_be_checked(tmp_path: Path) -> None:
    ended = label(fill(tmp_path), "ynxy")
    assert (ended.code, ended.err) == (0, "")
    assert "Question 2 of 2, 1 decided\nWhat about q2?\n(q2)\n" in ended.out
    assert ended.out.endswith("\n2 of 2 questions decided; 2 questions changed in golden.jsonl\n")
    assert labels(tmp_path) == {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 0}}
    assert spawn("check", cwd=tmp_path).code == 0


def test_where_nothing_is_relevant_it_asks_whether_that_is_right(tmp_path: Path) -> None:
    ended = label(fill(tmp_path, queries=1), "xn")
    prompt = ended.out.partition("No document is relevant so far. ")[2].split()
    assert " ".join(prompt).startswith("Is it right that no document answers this question? [y]es, [n]o (ask again")
    assert ended.out.endswith("\n0 of 1 question decided; 1 question changed in golden.jsonl\n")


def test_only_what_was_not_decided_is_asked_again(tmp_path: Path) -> None:
    label(fill(tmp_path), "yns")
    ended = label(tmp_path, "")
    assert "Question 2 of 2, 1 decided" in ended.out
    assert "What about q1?" not in ended.out
    label(tmp_path, "yn")
    before = files_in(tmp_path)
    assert label(tmp_path, "yyyy").out == "\n2 of 2 questions decided; golden.jsonl is as it was\n"
    assert files_in(tmp_path) == before


def test_a_document_shows_its_rank_its_score_and_its_text(tmp_path: Path) -> None:
    results = [{"doc_id": "doc_a", "score": 0.83333, "text": f"Some  text.\r\n\n{'word ' * 100}"}, {"doc_id": "b"}]
    ended = label(fill(tmp_path, {"query_id": "q1", "results": results}), "y")
    assert "\ndoc_a  rank 1, score 0.8333\n    Some  text.\n    word word" in ended.out
    assert "\nb  rank 2\nRelevant? [y]es" in ended.out
    assert all(len(line) < 80 for line in ended.out.splitlines() if "[y]es" not in line)


def test_hostile_texts_cannot_act_on_a_terminal_or_a_runner(tmp_path: Path) -> None:
    results = [{"doc_id": HOSTILE, "text": HOSTILE}]
    fill(tmp_path, {"query_id": f"q{HOSTILE}", "query": HOSTILE, "results": results})
    ended = label(tmp_path, "y")
    assert ended.code == 0
    shown = ended.out + ended.err
    assert not set(shown) & {"\x1b", "\u202e", "\x07", "\r"}
    assert "##[" not in shown
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())
    assert labels(tmp_path)[f"q{HOSTILE}"] == {HOSTILE: 1}


def test_a_first_contract_needs_a_run_and_questions_only(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "current_run.jsonl", [run("why", "a"), run("when", "b"), run("q", "c", query="How?")])
    (tmp_path / "questions.txt").write_text("Why?\nWhen?\n")
    ended = label(tmp_path, "yyy", "--questions", "questions.txt")
    assert (ended.code, ended.err) == (0, "")
    rows = [json.loads(line) for line in (tmp_path / "golden.jsonl").read_text().splitlines()]
    assert rows == [
        {"id": "why", "query": "Why?", "relevance": {"a": 1}},
        {"id": "when", "query": "When?", "relevance": {"b": 1}},
        {"id": "q", "query": "How?", "relevance": {"c": 1}},
    ]


def test_top_says_how_many_documents_are_asked_about(tmp_path: Path) -> None:
    label(fill(tmp_path), "yy", "--top", "1")
    assert labels(tmp_path) == {"q1": {"a": 1}, "q2": {"a": 1}}
    assert label(tmp_path, "", "--top", "0").code == 2


def test_a_document_is_added_by_its_id_through_a_pipe(tmp_path: Path) -> None:
    ended = spawn("label", cwd=fill(tmp_path), stdin="x\na\ndoc_known\n")
    assert "Id of a relevant document" in ended.out
    assert labels(tmp_path)["q1"] == {"a": 0, "b": 0, "doc_known": 1}


def test_several_runs_are_pooled(tmp_path: Path) -> None:
    fill(tmp_path)
    write_jsonl(tmp_path / "vectors.jsonl", [run("q1", "c")])
    label(tmp_path, "xy", "--run", "current_run.jsonl", "vectors.jsonl")
    assert set(labels(tmp_path)["q1"]) == {"a", "b", "c"}


def test_input_that_is_no_text_is_no_answer(tmp_path: Path) -> None:
    ended = spawn("label", cwd=fill(tmp_path), stdin="\n\n")
    assert ended.code == 0
    assert ended.out.count("back to the answer before") == 2
    assert spawn("label", cwd=tmp_path, command=("sh", "-c", 'exec "$0" "$@" <&-', *COMMAND)).code == 0


def test_all_problems_of_all_files_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "golden.jsonl").write_text("{}\n")
    (tmp_path / "current_run.jsonl").write_text("[]\n")
    before = files_in(tmp_path)
    ended = label(tmp_path, "y")
    assert ended.code == 2
    assert [line[:30] for line in ended.err.splitlines()][:1] == ["error: golden.jsonl:1: id: is "]
    assert "error: current_run.jsonl:1: is a JSON array" in ended.err
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--golden", "a", "b"), "answers are written to one golden file; name one"),
        (("--golden", ""), "--golden: is given an empty path"),
        (("--run", "none"), "none: no such file"),
        (("--questions", "none"), "none: no such file"),
        (("--ticked", "none"), "none: no such file"),
        (("--ticked", "c", "--top", "3"), "--top is given, but --ticked asks nothing"),
        (("--golden", "nowhere/"), "nowhere/: is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_labelled_is_refused(argv: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ended = label(fill(tmp_path), "y", *argv)
    assert ended.code == 2
    assert message in ended.err


def test_a_ticked_file_becomes_golden_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fill(tmp_path))
    assert rag_contract("init", "--from-run", "current_run.jsonl").code == 0
    ticked = Path("candidates.txt")
    ticked.write_text(ticked.read_text().replace("[ ] b", "[x] b", 1))
    assert rag_contract("label", "--ticked", "candidates.txt") == (0, "labelled 1 question in golden.jsonl\n", "")
    assert labels(tmp_path) == {"q1": {"a": 0, "b": 1}, "q2": ["TODO"]}
    before = files_in(tmp_path)
    ticked.write_text("- [x] a\n## q3\n")
    ended = rag_contract("label", "--ticked", "candidates.txt")
    assert (ended.code, ended.err.count("error: candidates.txt:")) == (2, 2)
    assert files_in(tmp_path) == before | {"candidates.txt": ticked.read_bytes()}


def test_what_is_ticked_for_another_question_is_refused_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fill(tmp_path))
    assert rag_contract("init", "--from-run", "current_run.jsonl").code == 0
    ticked = Path("candidates.txt")
    ticked.write_text(ticked.read_text().replace("[ ] b", "[x] b"))
    line = ticked.read_text().splitlines().index("Q: What about q1?") + 1
    write_jsonl(Path("golden.jsonl"), [golden("q1", "TODO", query="How do I cancel?"), golden("q2", "TODO")])
    before = files_in(tmp_path)
    ended = rag_contract("label", "--ticked", "candidates.txt")
    assert (ended.code, ended.err.count("error: ")) == (2, 1)
    assert f'candidates.txt:{line}: the golden query "q1" asks "How do I cancel?"' in ended.err
    assert files_in(tmp_path) == before


# At a terminal


def test_single_keys_answer_without_enter_also_where_they_are_typed_ahead(tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        person.expect("Question 1 of 2, 0 decided")
        person.expect("[q]uit ")
        person.type("y")
        person.expect("b\x1b[0m  rank 2")
        person.expect("[q]uit ")
        person.type("nxy")
        assert person.end() == 0
    assert labels(tmp_path) == {"q1": {"a": 1, "b": 0}, "q2": {"a": 0, "b": 0}}


def test_a_line_of_text_is_typed_at_a_terminal(tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        person.expect("[q]uit ")
        person.type("a")
        person.expect("(empty for none): ")
        person.type("doc_known\r")
        person.expect("[q]uit ")
        person.type("xq")
        assert person.end() == 0
    assert labels(tmp_path)["q1"] == {"doc_known": 1, "a": 0, "b": 0}


def test_an_arrow_key_is_one_key_that_means_nothing(tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        person.expect("[q]uit ")
        person.type("\x1b[A")
        person.expect("all answers are saved")
        person.type("yq")
        assert person.end() == 0
    assert person.shown.count("all answers are saved") == 1
    assert labels(tmp_path)["q1"] == {"a": 1}


@pytest.mark.parametrize("keys", ["", "y", "yn", "x", "xn", "ya"])
def test_ctrl_c_at_each_moment_keeps_all_answers_and_exits_as_shells_expect(keys: str, tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        for key in keys:
            person.expect("[q]uit ")
            person.type(key)
        person.expect("(empty for none): " if keys.endswith("a") else "[q]uit ")
        person.type(CTRL_C)
        assert person.end() == 130
    assert "Traceback" not in person.shown
    assert "questions decided;" in person.shown
    found = labels(tmp_path)["q1"]
    assert found == {"": ["TODO"], "y": {"a": 1}, "ya": {"a": 1}, "yn": {"a": 1, "b": 0}}.get(
        keys, {"a": 0, "b": 0, "TODO": 1}
    )
    assert not list(tmp_path.glob(".rag-contract-*")), "no temporary file is left"


def test_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        before = person.settings()
        person.expect("[q]uit ")
        assert person.settings() != before
        person.type(CTRL_C)
        person.end()
        assert person.settings() == before


def test_ctrl_d_quits(tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        person.expect("[q]uit ")
        person.type("y")
        person.expect("[q]uit ")
        person.type(CTRL_D)
        assert person.end() == 0
    assert labels(tmp_path)["q1"] == {"a": 1}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_no_signal_loses_an_answer(number: int, tmp_path: Path) -> None:
    with AtATerminal("label", cwd=fill(tmp_path)) as person:
        person.expect("[q]uit ")
        person.type("y")
        person.expect("b\x1b[0m  rank 2")
        person.interrupt(number)
        assert person.end() != 0
    assert labels(tmp_path)["q1"] == {"a": 1}


def test_an_answer_that_could_not_be_written_does_not_count_as_changed(tmp_path: Path) -> None:
    before = (fill(tmp_path) / "golden.jsonl").read_bytes()
    ended = shell("ulimit -f 0; echo y | rag-contract label", cwd=tmp_path)
    assert ended.code == 2
    assert ended.out.endswith("\n0 of 2 questions decided; golden.jsonl is as it was\n")
    assert "golden.jsonl: cannot be written" in ended.err
    assert (tmp_path / "golden.jsonl").read_bytes() == before


def test_lines_fit_into_a_narrow_terminal(tmp_path: Path) -> None:
    texts = ["word " * 500, "字" * 200, "x" * 300]
    results = [{"doc_id": f"doc_{text[:100]}", "score": 0.5, "text": text} for text in texts]
    row = {"query_id": "q1", "results": results}
    with AtATerminal("label", cwd=fill(tmp_path, row, queries=1), columns=40) as person:
        person.expect("[q]uit ")
        person.type("yyq")
        assert person.end() == 0
    shown = person.shown.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()
    assert any(line.endswith("…") for line in shown)
    for line in shown:
        width = sum(2 if char == "字" else 1 for char in line)
        assert width < 40 or "decided;" in line, line


CODE = (
    "def refund(order):\n\n\tif order.paid:\r\n\t    return order.total\n"
    "    # \x1b[2J\u202e a comment\n  Relevant? [y]es"
)


def test_code_keeps_its_lines_and_their_indentation(tmp_path: Path) -> None:
    """A line of a document is never at the margin, where those of the screen are."""
    fill(tmp_path, {"query_id": "q1", "results": [{"doc_id": "a", "text": CODE}]}, queries=1)
    assert (
        "a  rank 1\n"
        "    def refund(order):\n"
        "        if order.paid:\n"
        "            return order.total\n"
        "        # \\x1b[2J\\u202e a comment\n"
        "      Relevant? [y]es\n"
        "Relevant? [y]es"
    ) in label(tmp_path, "").out


def test_a_text_that_does_not_fit_on_the_terminal_is_cut_and_says_so(tmp_path: Path) -> None:
    text = "\n".join(f"line {number}" for number in range(1, 41))
    fill(tmp_path, {"query_id": "q1", "results": [{"doc_id": "a", "text": text}]}, queries=1)
    assert "    line 18\n    …\nRelevant?" in label(tmp_path, "").out
    assert "    line 40\nRelevant?" in spawn("label", cwd=tmp_path, stdin="", environ={"LINES": "50"}).out


def test_lines_of_code_are_one_line_where_candidates_are_listed(tmp_path: Path) -> None:
    fill(tmp_path, {"query_id": "q1", "results": [{"doc_id": "a", "text": "def f():\n    return 1\n"}]}, queries=1)
    assert spawn("init", "--from-run", "current_run.jsonl", cwd=tmp_path).code == 0
    assert "- [ ] a  def f(): return 1\n" in (tmp_path / "candidates.txt").read_text()
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "b")])
    listed = spawn("unjudged", "--run", "current_run.jsonl", "--format", "jsonl", cwd=tmp_path)
    assert '"text":"def f(): return 1"' in listed.out, listed


@pytest.mark.parametrize("asked", ["", "my money back, " * 15, "my money back, " * 60], ids=["short", "long", "cut"])
@pytest.mark.parametrize(("columns", "lines"), [(40, 24), (60, 24), (80, 24), (80, 50), (80, 12), (80, 8)])
def test_the_question_is_in_view_with_every_document(columns: int, lines: int, asked: str, tmp_path: Path) -> None:
    """What stands above each prompt fits on the terminal, and has the beginning of the question."""
    results = [{"doc_id": name, "text": "A passage of prose. " * 100} for name in "abc"]
    fill(tmp_path, {"query_id": "q1", "results": results}, queries=1)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "TODO", query=f"How do I get {asked}")])
    with AtATerminal("label", cwd=tmp_path, columns=columns, lines=lines) as person:
        for key in "nnny":
            person.expect("[q]uit ")
            screen = person.shown.splitlines()[-lines:]
            assert any("How do I get" in line for line in screen), screen
            person.type(key)
        assert person.end() == 0


def test_a_question_keeps_its_lines_and_none_of_them_is_at_the_margin(tmp_path: Path) -> None:
    asked = golden("q1", "TODO", query="What does this print?\nprint(1)\ndoc_x  rank 1")
    write_jsonl(fill(tmp_path, queries=1) / "golden.jsonl", [asked])
    shown = label(tmp_path, "n").out
    assert "\nWhat does this print?\n  print(1)\n  doc_x  rank 1\n(q1)\n" in shown
    assert "\nQ: What does this print?\n  …\nb  rank 2\n" in shown
