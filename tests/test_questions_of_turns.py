"""A conversation whose questions changed is another conversation: for its baseline, and for a run that is older."""

from pathlib import Path

import pytest

from tests.builders import Row, golden, run, write_jsonl
from tests.process import Ended, rag_contract

ASKED, OTHER = "How long for a return?", "What is the refund window for shoes?"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ragcontract.yml").write_text("per_query: {fail_on: new}\n")


def chat(*questions: str) -> Row:
    """Return a golden conversation, each turn of which must say 30 days."""
    rule = {"type": "must_contain", "value": "30 days"}
    return {"id": "c", "query": "Chat", "turns": [{"query": asked, "rules": [rule]} for asked in questions]}


def said(*questions: str, answer: str = "dunno") -> Row:
    """Return the run row of a conversation."""
    turns = [({"role": "user", "content": asked}, {"role": "assistant", "content": answer}) for asked in questions]
    return {"query_id": "c", "messages": [message for turn in turns for message in turn]}


def contract(*questions: str) -> None:
    write_jsonl(Path("golden.jsonl"), [chat(*questions), golden("q2")])


def exported(row: Row, path: str = "current_run.jsonl") -> None:
    write_jsonl(Path(path), [row, run("q2")])


def checked(*options: str) -> Ended:
    return rag_contract("check", *options)


def test_what_a_stored_baseline_breaks_is_no_excuse_where_a_turn_asks_something_else() -> None:
    contract(ASKED)
    exported(said(ASKED))
    assert rag_contract("baseline").code == 0
    assert checked().code == 0  # it is already broken
    contract(OTHER)
    exported(said(OTHER, answer="bad"))
    ended = checked()
    assert ended.code == 1
    assert "Contract changed since the baseline: 1 question changed (c)" in ended.out


def test_turns_that_are_swapped_added_or_removed_are_another_conversation() -> None:
    contract(ASKED, OTHER)
    exported(said(ASKED, OTHER))
    assert rag_contract("baseline").code == 0
    for questions in ((OTHER, ASKED), (ASKED, OTHER, ASKED), (ASKED,)):
        contract(*questions)
        exported(said(*questions))
        ended = checked()
        assert (ended.code, "1 question changed (c)" in ended.out) == (1, True), questions


def test_a_baseline_without_the_questions_of_turns_is_compared_as_before() -> None:
    contract(ASKED)
    exported(said(ASKED))
    assert rag_contract("baseline").code == 0
    baseline = Path("baseline.json").read_text()
    start = baseline.index(',"turns":"')
    Path("baseline.json").write_text(baseline[:start] + baseline[baseline.index('"', start + 10) + 1 :])
    contract(OTHER)
    exported(said(OTHER))
    ended = checked()
    assert (ended.code, "changed" in ended.out) == (0, False)


def test_a_run_as_the_baseline_is_no_excuse_either() -> None:
    contract(OTHER)
    exported(said(ASKED), "good.jsonl")
    exported(said(OTHER, answer="bad"))
    ended = checked("--baseline", "good.jsonl")
    assert ended.code == 1
    assert "good.jsonl: 1 conversation with other questions than the golden turns, not compared: 'c'" in ended.err
    contract(ASKED)
    exported(said(ASKED, answer="bad"))
    assert checked("--baseline", "good.jsonl").code == 0


@pytest.mark.parametrize("questions", [(OTHER, OTHER), (OTHER, ASKED)], ids=["others", "swapped"])
def test_a_run_with_other_questions_is_a_warning(questions: tuple[str, str]) -> None:
    contract(ASKED, OTHER)
    exported(said(*questions, answer="30 days"))
    ended = checked()
    assert ended.code == 0
    assert "1 conversation with other questions than the golden turns, record it again: 'c'" in ended.err


@pytest.mark.parametrize("asked", ["  how long\nfor a RETURN", f"Context: none.\nQuestion: {ASKED}"])
def test_blanks_case_and_what_is_put_around_a_question_make_no_other_one(asked: str) -> None:
    contract(ASKED)
    exported(said(asked, answer="30 days"))
    ended = checked()
    assert (ended.code, ended.err) == (0, "")
