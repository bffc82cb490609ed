"""Candidates over the API: who decides what, what a golden row must have, and what the contract does with it."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ragcontract.service.database import Database
from ragcontract.service.tables import audit
from tests.builders import as_jsonl, golden, run
from tests.process import rag_contract
from tests.service.askers import new_user
from tests.service.conftest import HOSTILE
from tests.service.production_rows import add_candidate_row, add_project_row
from tests.service.served import Served, checked
from tests.service.targets import project

QUERIES = [golden("q1", "d1", query="Where is the first text?"), golden("q2", "d2", query="Write to ana@example.com?")]


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Served]:
    with Served(database, projects=project(tmp_path / "projects", queries=QUERIES)) as served:
        yield served


@pytest.fixture
def editor(served: Served) -> str:
    return served.database.write(lambda connection: new_user(connection, "ana", "editor"))


def decided(served: Served, key: str, number: int, decision: str, status: int = 200, **row: Any) -> Any:
    """Decide on a candidate and return what is answered."""
    body = {"decision": decision} | ({"row": row} if row else {})
    answer = served.request("POST", f"/candidates/{number}", key=key, json=body)
    assert answer.status_code == status, answer.text
    checked(answer)
    return answer.json()


def listed(served: Served, **params: Any) -> list[dict[str, Any]]:
    """Return all pages of the list."""
    items, cursor = [], None
    while True:
        page = {"limit": 2, **params} | ({"cursor": cursor} if cursor else {})
        answer = served.request("GET", "/projects/docs/candidates", params=page)
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        cursor = answer.json()["next"]
        if cursor is None:
            return items


def downloaded(served: Served) -> list[dict[str, Any]]:
    answer = served.request("GET", "/projects/docs/candidates.jsonl")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/jsonl")
    return [json.loads(line) for line in answer.text.split("\n") if line]


def test_the_most_asked_wait_first_and_what_was_decided_last_is_listed_first(served: Served, editor: str) -> None:
    for number, asked in enumerate((1, 7, 3, 7, 1)):
        add_candidate_row(served.database, f"Question {number}?", asked=asked)
    assert [each["query"][9] for each in listed(served)] == ["3", "1", "2", "4", "0"]
    for number in (2, 5, 1):
        decided(served, editor, number, "reject")
    assert [each["id"] for each in listed(served)] == [4, 3]
    assert {each["id"] for each in listed(served, state="rejected")} == {1, 2, 5}
    assert [each["state"] for each in listed(served, state="accepted")] == []
    for params in ({"state": "waiting"}, {"cursor": "x"}, {"limit": 0}):
        assert checked(served.request("GET", "/projects/docs/candidates", params=params)) == 422


def test_an_accepted_candidate_is_a_row_with_the_question_and_an_id(served: Served, editor: str) -> None:
    number = add_candidate_row(served.database, "How do I invite a teammate?")
    accepted = decided(served, editor, number, "accept", relevant_doc_ids=["invite", "roles"], tags=["team"])
    assert accepted["row"] == {
        "id": "how_do_i_invite_a_teammate",
        "query": "How do I invite a teammate?",
        "relevant_doc_ids": ["invite", "roles"],
        "tags": ["team"],
    }
    assert (accepted["state"], accepted["decided_by"], accepted["golden_id"]) == ("accepted", "user:ana", None)
    assert downloaded(served) == [accepted["row"]]
    with served.database.read() as connection:
        rows = connection.execute(select(audit.c.action, audit.c.subject, audit.c.detail)).all()
    assert ("candidate.accept", "project:docs", "candidate 1 as how_do_i_invite_a_teammate") in [*map(tuple, rows)]


@pytest.mark.parametrize(
    "row", [{"relevant_doc_ids": []}, {"expected_mode": "abstain"}, {"relevance": {"d1": 2}}], ids=str
)
def test_a_row_says_that_nothing_answers_it_or_how_to_answer(row: dict[str, Any], served: Served, editor: str) -> None:
    number = add_candidate_row(served.database, "What does the director earn?")
    assert row.items() <= decided(served, editor, number, "accept", **row)["row"].items()


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing": ({"tags": ["a"]}, ["row.relevant_doc_ids: is missing"]),
    "only a reference": ({"reference": "x"}, ["row: expects nothing"]),
    "unknown fields": (
        {"relevant_doc_ids": ["d"], "relevant": ["d"], "must_contain": "x"},
        ["row.relevant: no golden row has this field", "row.must_contain: no golden row"],
    ),
    "everything at once": (
        {"id": "", "relevant_doc_ids": "d", "expected_mode": "maybe", "weight": -1, "rules": [{"type": "x"}]},
        ["row.id:", "row.relevant_doc_ids: expected a list", "row.expected_mode:", "row.weight:", "row.rules[0].type:"],
    ),
    "a golden id": ({"id": "q1", "relevant_doc_ids": ["d"]}, ["row.id: a golden query has it"]),
    "a golden question": (
        {"query": "where is the FIRST text", "relevant_doc_ids": []},
        ["row.query: the golden query"],
    ),
    "a golden question with what is taken out": (
        {"query": "Write to [email]?", "relevant_doc_ids": []},
        ["row.query: the golden query 'q2' has"],
    ),
    "the placeholder": ({"relevant_doc_ids": ["TODO"]}, ["row.relevant_doc_ids: still holds the placeholder"]),
    "too much": ({"relevant_doc_ids": [], "metadata": {"x": "y" * 300_000}}, ["row: is larger than"]),
    "a rank of nothing": ({"relevant_doc_ids": [], "must_rank_at_most": 3}, ["row.must_rank_at_most: needs"]),
}


@pytest.mark.parametrize(("row", "problems"), WRONG.values(), ids=WRONG.keys())
def test_what_is_no_golden_row_is_refused_with_all_problems(
    row: dict[str, Any], problems: list[str], served: Served, editor: str
) -> None:
    number = add_candidate_row(served.database, "How do I invite a teammate?")
    answered = decided(served, editor, number, "accept", 422, **row)["problems"]
    for problem in problems:
        assert any(each.startswith(problem) for each in answered), answered
    assert len(answered) == len(problems)
    assert listed(served)[0]["state"] == "new"


def test_who_decides_second_is_told_who_was_first_and_what_the_row_is(served: Served, editor: str) -> None:
    other = served.database.write(lambda connection: new_user(connection, "ben", "editor"))
    number = add_candidate_row(served.database, "How?")
    decided(served, editor, number, "accept", relevant_doc_ids=["d1"])
    for decision, row in (("accept", {"relevant_doc_ids": []}), ("accept", {"id": "q1"}), ("reject", {})):
        problem = decided(served, other, number, decision, 409, **row)
        assert problem["detail"].startswith("it was accepted by user:ana at ")
        assert problem["problems"][1] == 'row: {"id":"how","query":"How?","relevant_doc_ids":["d1"]}'
    assert downloaded(served)[0]["relevant_doc_ids"] == ["d1"]


def test_a_decision_is_taken_back_and_taken_again(served: Served, editor: str) -> None:
    number = add_candidate_row(served.database, "How?")
    assert decided(served, editor, number, "reopen", 409)["detail"] == "it waits for a decision"
    decided(served, editor, number, "accept", relevant_doc_ids=["d1"])
    assert decided(served, editor, number, "reopen")["state"] == "new"
    assert downloaded(served) == []
    assert decided(served, editor, number, "reject")["row"] is None
    assert decided(served, editor, number, "reopen")["decided_by"] is None
    assert decided(served, editor, number, "accept", relevant_doc_ids=[])["row"]["id"] == "how"


def test_of_editors_at_once_one_decides(served: Served) -> None:
    numbers = [add_candidate_row(served.database, f"Question {number}?") for number in range(8)]
    names = ("ben", "eva", "tom")
    keys = [served.database.write(partial(new_user, name=name, role="editor")) for name in names]
    answers: list[tuple[int, int]] = []

    def decide_all(place: int) -> None:
        for number in numbers:
            body = {"decision": "accept", "row": {"relevant_doc_ids": [f"d{place}"]}}
            answer = served.request("POST", f"/candidates/{number}", key=keys[place], json=body)
            answers.append((number, answer.status_code))

    threads = [threading.Thread(target=decide_all, args=(place,)) for place in range(len(keys))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in numbers:
        assert sorted(status for of, status in answers if of == number) == [200, 409, 409]
    assert len(downloaded(served)) == 8


def test_two_accepted_candidates_never_share_an_id(served: Served, editor: str) -> None:
    questions = ("How?", "How so?", "How_how?")
    first, second, third = (add_candidate_row(served.database, question) for question in questions)
    decided(served, editor, first, "accept", relevant_doc_ids=[])
    refused = decided(served, editor, second, "accept", 422, id="how", relevant_doc_ids=[])
    assert refused["problems"] == ["id: another accepted candidate has it; choose another one"]
    decided(served, editor, second, "accept", id="how_how", relevant_doc_ids=[])
    assert decided(served, editor, third, "accept", relevant_doc_ids=[])["row"]["id"] == "how_how_3"
    decided(served, editor, first, "reopen")
    decided(served, editor, second, "reopen")
    decided(served, editor, second, "accept", id="how", relevant_doc_ids=[])
    long = "x" * 2_000
    decided(served, editor, first, "accept", id=long, relevant_doc_ids=[])
    assert [row["id"] for row in downloaded(served)] == ["how_how_3", "how", long]


def test_what_is_golden_meanwhile_is_shown_as_such_and_not_downloaded(
    served: Served, editor: str, tmp_path: Path
) -> None:
    same, edited, waiting, left = (add_candidate_row(served.database, f"{name}?") for name in ("a", "b", "c", "d"))
    for number in (same, edited, left):
        decided(served, editor, number, "accept", relevant_doc_ids=["d1"])
    more = [golden("other", query="A?"), golden("b", query="What is b, exactly?"), golden("c_is_there", query="c")]
    project(tmp_path / "projects", queries=[*QUERIES, *more])
    assert {each["id"]: each["golden_id"] for each in listed(served, state="accepted")} == {
        same: "other",
        edited: "b",
        left: None,
    }
    assert [each["golden_id"] for each in listed(served)] == ["c_is_there"]
    assert [row["id"] for row in downloaded(served)] == ["d"]
    problem = decided(served, editor, waiting, "accept", 422, relevant_doc_ids=["d1"])
    assert "the golden query 'c_is_there' has this question" in problem["detail"]
    decided(served, editor, waiting, "reject")


def test_a_candidate_of_another_project_does_not_exist_for_a_key(served: Served, editor: str) -> None:
    add_project_row(served.database, "other")
    number = add_candidate_row(served.database, "How?", slug="other")
    limited = served.new_key("read", project="docs")
    assert served.status("/projects/other/candidates", key=limited) == 404
    assert served.status("/projects/other/candidates.jsonl", key=limited) == 404
    assert downloaded(served) == listed(served) == []
    assert checked(served.request("POST", f"/candidates/{number}", key=limited, json={"decision": "reject"})) == 403
    for number in (999, 10**30):
        decided(served, editor, number, "reject", 404)
    decided(served, editor, number, "maybe", 422)
    decided(served, editor, number, "reject", 422, relevant_doc_ids=[])


def test_lint_and_check_take_what_was_downloaded_with_the_golden_file(
    served: Served, editor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{mark} {HOSTILE}" for mark in ("a\u2028", '"b"\\', "\x1b]0;c", "=d()", "{e}\n[")]
    numbers = [add_candidate_row(served.database, text) for text in texts]
    for number in numbers[:3]:
        decided(
            served, editor, number, "accept", relevant_doc_ids=[HOSTILE, "d1"], tags=[HOSTILE], id=f"{HOSTILE}{number}"
        )
    decided(served, editor, numbers[3], "accept", relevant_doc_ids=[])
    decided(served, editor, numbers[4], "accept", expected_mode="abstain")
    folder = tmp_path / "contract"
    folder.mkdir()
    monkeypatch.chdir(folder)
    lines = served.request("GET", "/projects/docs/candidates.jsonl").content
    Path("golden.jsonl").write_bytes(as_jsonl(*QUERIES).encode() + lines)
    Path("ragcontract.yml").write_text("k: 5\n")
    rows = [json.loads(line) for line in Path("golden.jsonl").read_bytes().split(b"\n") if line]
    assert [row["query"] for row in rows[2:]] == texts
    linted = rag_contract("lint")
    assert linted.code == 0, linted.err
    assert "unknown field" not in linted.out + linted.err
    answers = [
        run(row["id"], *row.get("relevant_doc_ids", []), mode="abstain", response="I do not know.") for row in rows
    ]
    Path("current_run.jsonl").write_text(as_jsonl(*answers))
    checked_run = rag_contract("check")
    assert checked_run.code == 0, checked_run.out + checked_run.err
