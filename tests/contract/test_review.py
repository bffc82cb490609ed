from pathlib import Path
from typing import Any

import pytest

from tests.builders import Row, golden
from tests.contract.linting import findings
from tests.process import rag_contract


def test_nothing_is_odd_about_a_good_contract(tmp_path: Path) -> None:
    rows = [golden(f"q{n}", "a", must_rank_at_most=2, forbidden_doc_ids=["x"], tags=["t"]) for n in range(5)]
    assert findings(tmp_path, rows, ["a", "b"]) == []


SAME = ["What is SSO?", "what is sso", " WHAT\tis  sso ?", "What is SSO!", "What is SSO.", "Ｗhat is SSO?"]


@pytest.mark.parametrize(("question", "same"), [("straße", "STRASSE"), ("?", "?")])
def test_questions_are_the_same_whatever_their_letters(question: str, same: str, tmp_path: Path) -> None:
    assert [finding.rule for finding in findings(tmp_path, [golden("q1", query=question), golden("q2", query=same)])]


@pytest.mark.parametrize(("question", "other"), [("What is SSO?", "What is SAML?"), ("?", "!")])
def test_questions_of_other_words_or_of_none_are_not_the_same(question: str, other: str, tmp_path: Path) -> None:
    assert findings(tmp_path, [golden("q1", query=question), golden("q2", query=other)]) == []


@pytest.mark.parametrize("question", SAME)
def test_a_duplicate_question_names_the_first(question: str, tmp_path: Path) -> None:
    rows = [golden("q1", query=SAME[0]), golden("q2"), golden("q3", query=question), golden("q4", "b", query=question)]
    found = findings(tmp_path, rows)
    assert [one[:2] for one in found] == [("3", "duplicate-question"), ("4", "duplicate-question")]
    assert found[0][2].startswith("'q3' asks the same as 'q1' (")
    assert found[0][2].endswith("golden.jsonl:1), so it counts twice; remove one")
    assert found[1][2].endswith("they want different documents: merge them into one row")


def test_a_placeholder_is_found_also_among_others_and_takes_no_other_rule(tmp_path: Path) -> None:
    rows = [golden("q1", "a"), golden("q2", "a", "TODO"), golden("q3", "todo"), golden("q4", "TODO")]
    found = findings(tmp_path, rows, ["a", "todo"])
    assert [one[:2] for one in found] == [("2", "todo-placeholder"), ("4", "todo-placeholder")]
    assert found[1][2].startswith(
        "'q4' has 'TODO' for a relevant document, so it fails; run `rag-contract label`, or write the ids"
    )


def test_documents_that_are_wanted_and_forbidden_are_named(tmp_path: Path) -> None:
    rows = [golden("q1", "a"), golden("q2", "c", "b", "a", forbidden_doc_ids=["a", "x", "b"])]
    assert findings(tmp_path, rows) == [
        ("2", "forbidden-and-relevant", "'q2' wants and forbids a and b, so it can never pass; take one out")
    ]


@pytest.mark.parametrize(
    ("rules", "fields", "said"),
    [
        ({"enforce_forbidden_docs": False}, {}, None),
        ({}, {}, "a, so it can never pass"),
        ({}, {"must_include_any": True}, "a"),
        ({}, {"must_include_any": True, "forbidden_doc_ids": ["a", "b"]}, "a and b, so it can never pass"),
        ({"forbidden_within": 5}, {}, "a, so it can never pass"),
        ({"forbidden_within": 4}, {}, "a"),  # at rank 5 it is there, and not forbidden
        ({"enforce_must_include": False}, {"forbidden_doc_ids": ["a", "b"]}, "a and b"),
        (
            {"enforce_must_include": False},
            {"forbidden_doc_ids": ["a", "b"], "must_rank_at_most": 3},
            "a and b, so it can never pass",
        ),
        (
            {"enforce_must_include": False, "forbidden_within": 2},
            {"forbidden_doc_ids": ["a", "b"], "must_rank_at_most": 3},
            "a and b",
        ),
    ],
)
def test_what_is_wanted_and_forbidden_can_pass_where_the_rules_leave_room(
    rules: dict[str, Any], fields: Row, said: str | None, tmp_path: Path
) -> None:
    rows = [golden("q", "a", "b", **{"forbidden_doc_ids": ["a"], **fields})]
    found = findings(tmp_path, rows, config={"per_query": rules})
    assert [message for *_, message in found] == ([f"'q' wants and forbids {said}; take one out"] if said else [])


def test_more_documents_than_k_holds_can_never_pass(tmp_path: Path) -> None:
    rows = [golden("q1", *"ab"), golden("q2", *"abc"), golden("q3", *"abc", must_include_any=True)]
    [found] = findings(tmp_path, rows, config={"k": 2})
    assert found[:2] == ("2", "more-than-k")
    assert "wants all 3 relevant documents in the top 2" in found[2]
    assert findings(tmp_path, rows, config={"k": [1, 3]}) == []
    assert findings(tmp_path, rows, config={"k": 2, "per_query": {"enforce_must_include": False}}) == []


def test_documents_that_no_row_returns_are_named_once_there_is_a_run(tmp_path: Path) -> None:
    rows = [golden("q1", "a", "gone"), golden("q2", "refund_polcy"), golden("q3", "a"), golden("q4", "w", "v")]
    assert findings(tmp_path, rows) == []
    found = findings(tmp_path, rows, ["x"], ["a", "refund_policy"])
    assert [one[:2] for one in found] == [(line, "never-retrieved") for line in "124"]
    assert found[0][2] == (
        "'q1' wants gone, which no run returns for any question; is the id right, and the document in the index?"
    )
    assert found[1][2].endswith("did you mean 'refund_policy'?")
    assert "'q4' wants w and v, which" in found[2][2]


def test_ids_in_another_form_are_said_once_and_hide_no_other_id(tmp_path: Path) -> None:
    rows = [golden("q1", "a.md"), golden("q2", "b.md", "gone"), golden("q3", "c#1"), golden("q4", "d.md")]
    found = findings(tmp_path, rows, ["a", "b", "c", "d"])
    assert [one[:2] for one in found] == [(line, "never-retrieved") for line in "123"]
    assert found[0][2].startswith("5 relevant ids never occur in a run; 3 do without their extension '.md'")
    assert found[1][2].startswith("'q2' wants gone, which no run returns")
    assert found[2][2].endswith("did you mean 'c'?")


def test_a_document_that_another_question_returns_at_any_depth_is_known(tmp_path: Path) -> None:
    assert findings(tmp_path, [golden("q1", "a")], [], [*"bcdefghijklmnop", "a"]) == []


def test_a_rank_is_held_against_the_deepest_list_of_all(tmp_path: Path) -> None:
    rows = [golden("q1", "a", must_rank_at_most=3), golden("q2", "a", must_rank_at_most=4), golden("q3", "a")]
    assert findings(tmp_path, rows) == []
    assert findings(tmp_path, rows, ["a"], ["a", "b", "c", "a"], []) == []
    assert findings(tmp_path, rows, ["a"], ["a", "b", "a"]) == [
        (
            "2",
            "rank-beyond-depth",
            "'q2' has must_rank_at_most 4, but no run lists more than 3 results; export at least 4, or lower it",
        )
    ]
    off = {"per_query": {"enforce_must_rank_at_most": False}}
    assert findings(tmp_path, rows, ["a"], config=off) == []


def test_a_documents_later_chunks_have_no_rank_where_documents_are_ranked(tmp_path: Path) -> None:
    rows = [golden("q1", "a", must_rank_at_most=3)]
    assert findings(tmp_path, rows, ["a", "b", "a"]) == []
    [found] = findings(tmp_path, rows, ["a", "b", "a"], config={"rank_by": "documents"})
    assert found[1] == "rank-beyond-depth"


def test_a_tag_with_few_queries_is_noted_at_its_first(tmp_path: Path) -> None:
    rows = [golden(f"q{n}", tags=["five", *(["four"] if n else []), *(["one"] if n == 2 else [])]) for n in range(5)]
    found = findings(tmp_path, rows)
    assert [one[:2] for one in found] == [("2", "small-tag"), ("3", "small-tag")]
    assert "tag 'four' is on 4 queries only" in found[0][2]
    assert "tag 'one' is on one query only" in found[1][2]
    argv = ("lint", "--golden", str(tmp_path / "golden.jsonl"), "--without-run")
    assert rag_contract(*argv).out.splitlines()[-1].startswith("2 notes, 1 warning (")


def test_findings_come_in_the_files_order(tmp_path: Path) -> None:
    rows = [golden("q1", "gone", tags=["t"]), golden("q2", "TODO"), golden("q3", "a", query="What about q1?")]
    assert [one[:2] for one in findings(tmp_path, rows, ["a"])] == [
        ("1", "small-tag"),
        ("1", "never-retrieved"),
        ("2", "todo-placeholder"),
        ("3", "duplicate-question"),
    ]


def test_only_so_many_findings_are_explained(tmp_path: Path) -> None:
    names = ["sales", "legal", "human", "money", "board", "house"]
    rows = [golden(f"q{n}", f"{name}-handbok") for n, name in enumerate(names)]
    found = findings(tmp_path, rows, [f"{name}-handbook" for name in names])
    assert ["did you mean" in message for _, _, message in found] == [True] * 5 + [False]
