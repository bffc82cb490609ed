"""There is an answer: every query with a rule about its answer is checked for that, too."""

from pathlib import Path

import pytest

from tests.builders import Row
from tests.rules.answers import broken, refusal, rule, says

ASKED = rule("max_chars", value=100)


@pytest.mark.parametrize(
    ("answered", "found"),
    [
        (says("yes"), []),
        (says(None), ["fail answered: expected an answer; found: null"]),
        (says(""), ["fail answered: expected an answer; found: an empty response"]),
        (says(" \n"), ["fail answered: expected an answer; found: an empty response"]),
        (says("yes", error="timeout"), ["fail answered: expected an answer; found: the error timeout"]),
        ({"error": "timeout"}, ["fail answered: expected an answer; found: the error timeout"]),
        ({"error": " "}, ["fail answered: expected an answer; found: an error"]),
        (
            says("ye", finish_reason="length"),
            ["warn answered: expected a complete answer; found: an answer that was cut off: finish_reason is length"],
        ),
        (says("yes", finish_reason="stop"), []),
    ],
)
def test_a_query_with_a_rule_about_its_answer_is_answered(tmp_path: Path, answered: Row, found: list[str]) -> None:
    assert broken(tmp_path, ASKED, answered) == found


def test_a_row_without_the_field_cannot_be_judged(tmp_path: Path) -> None:
    assert refusal(tmp_path, ASKED, {}) == [
        (
            'run.jsonl:1: query "q" has no response, which rules about its answer need; '
            "export it, as null if there was none"
        )
    ]


def test_an_error_is_quoted_and_cut(tmp_path: Path) -> None:
    (found,) = broken(tmp_path, ASKED, says(None, error="x" * 500))
    assert len(found.rpartition(" ")[2]) in {79, 80}


def test_a_refusal_apart_from_the_text_answers_where_one_is_wanted(tmp_path: Path) -> None:
    refused = says(None, refusal="I will not.")
    assert broken(tmp_path, rule("must_refuse"), refused) == []
    assert broken(tmp_path, rule("must_refuse"), says(None, finish_reason="content_filter")) == []
    assert broken(tmp_path, rule("must_refuse"), says(None, mode="abstain")) == [
        "fail answered: expected an answer; found: null"
    ]
    assert broken(tmp_path, ASKED, refused) == ["fail answered: expected an answer; found: null"]


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    assert broken(tmp_path, ASKED, says(""), "per_query: {enforce_answered: false}\n") == []


def test_a_row_about_documents_needs_no_answer(tmp_path: Path) -> None:
    assert broken(tmp_path, {"relevant_doc_ids": []}, {"results": []}) == []
