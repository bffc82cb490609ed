"""The questions of golden files, and which of them are asked."""

from pathlib import Path

import pytest

from ragcontract import InputError
from ragcontract.record.golden_questions import Question, Selection, read_questions
from tests.builders import Row, golden, write_jsonl

ROWS = [golden("q1", tags=["a"]), golden("q2", tags=["a", "b"]), golden("q3"), golden("q4", tags=["b"])]


def chosen(folder: Path, rows: list[Row], **selection: object) -> list[str]:
    path = write_jsonl(folder / "golden.jsonl", rows)
    return [one.id for one in read_questions([str(path)], Selection(**selection)).chosen]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({}, ["q1", "q2", "q3", "q4"]),
        ({"tags": ["a"]}, ["q1", "q2"]),
        ({"tags": ["b", "a"]}, ["q1", "q2", "q4"]),
        ({"ids": ["q4", "q1"]}, ["q1", "q4"]),
        ({"tags": ["b"], "ids": ["q1", "q2"]}, ["q2"]),
        ({"limit": 3}, ["q1", "q2", "q3"]),
        ({"tags": ["b"], "limit": 1}, ["q2"]),
        ({"limit": 9}, ["q1", "q2", "q3", "q4"]),
    ],
)
def test_a_part_of_the_questions_may_be_chosen(tmp_path: Path, selection: dict[str, object], ids: list[str]) -> None:
    assert chosen(tmp_path, ROWS, **selection) == ids


def test_a_tag_or_an_id_that_no_row_has_is_reported_with_the_nearest(tmp_path: Path) -> None:
    rows = [golden("refunds", tags=["billing"])]
    with pytest.raises(InputError) as raised:
        chosen(tmp_path, rows, tags=["biling"], ids=["refund", "x"])
    assert raised.value.problems == [
        "--tag 'biling': no golden query has this tag; did you mean 'billing'?",
        "--query 'refund': no golden query has this id; did you mean 'refunds'?",
        "--query 'x': no golden query has this id",
    ]


def test_a_choice_that_leaves_nothing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is nothing to ask"):
        chosen(tmp_path, ROWS, tags=["a"], ids=["q4"])


def test_a_question_has_its_turns_and_its_metadata(tmp_path: Path) -> None:
    row = golden(turns=[{"query": "Hi", "rules": [{"type": "unknown"}]}, {"query": "Bye"}], metadata={"b": 1, "a": [2]})
    path = write_jsonl(tmp_path / "golden.jsonl", [row])
    (question,) = read_questions([str(path)], Selection()).chosen
    assert question.user_messages == ("Hi", "Bye")
    assert question.metadata == {"b": 1, "a": [2]}
    assert Question(id="q", query="Hi").user_messages == ("Hi",)


def test_all_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    rows = [golden("q1"), golden("q1"), {"id": "q2"}, golden("q3", turns=[])]
    with pytest.raises(InputError) as raised:
        chosen(tmp_path, rows)
    assert [problem.split("golden.jsonl:")[1].split(" ", 1)[0] for problem in raised.value.problems] == [
        "2:",
        "3:",
        "4:",
    ]


def test_files_without_a_question_and_files_that_are_not_there_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"golden\.jsonl: is empty"):
        chosen(tmp_path, [])
    with pytest.raises(InputError, match="no such file"):
        read_questions([str(tmp_path / "other.jsonl")], Selection())


def test_expectations_that_need_an_extra_are_not_read(tmp_path: Path) -> None:
    assert chosen(tmp_path, [golden("q1", forbidden_claims=["(a"], answer_must_include=7)]) == ["q1"]


@pytest.mark.parametrize("other", [{"query": "Y"}, {"turns": ("X",)}, {"packed": b'{"a":1}'}])
def test_another_question_has_another_digest(other: dict[str, object]) -> None:
    fields = {"query": "X", **other}
    assert Question(id="q1", query="X").digest != Question(id="q1", **fields).digest  # type: ignore[arg-type]
