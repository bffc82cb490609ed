"""The page of candidates: what somebody in a hurry sees and decides there, without JavaScript."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from ragcontract.core import bounds
from ragcontract.service.database import DAY, Database, now_ms
from ragcontract.service.tables import candidates, interactions
from tests.builders import golden
from tests.service.conftest import HOSTILE
from tests.service.production_rows import add_candidate_row, add_tallies
from tests.service.served import Served
from tests.service.targets import project
from tests.service.test_playground_page import Visitor, hidden, words
from tests.service.visiting import Page

PATH = "/p/docs/candidates"
BAD = f"{HOSTILE}\u2028\n\"'><b>"
SHOWN_ONLY = f"{BAD}\x1b[31m"
QUERIES = [
    golden("q1", "d1", query="Where is the first text?"),
    golden("q2", "d2", query="What does the director earn?", expected_mode="abstain"),
]
RESULTS = [{"doc_id": f"d{number}", "score": 1 - number / 100} for number in range(12)]


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Served]:
    with Served(database, projects=project(tmp_path / "projects", queries=QUERIES)) as served:
        yield served


@pytest.fixture
def editor(served: Served) -> Visitor:
    served.client.follow_redirects = True
    return Visitor(served, "editor")


def stored(database: Database, number: int = 1) -> Any:
    with database.read() as connection:
        return connection.execute(select(candidates).where(candidates.c.id == number)).one()


def values(page: Page, name: str) -> list[str]:
    """Return the values of fields with a name, as a browser sends them."""
    parts = page.markup.split(f'name="{name}" value="')[1:]
    return [unescape(part.partition('"')[0]) for part in parts]


def test_the_card_says_why_it_is_here_what_was_answered_and_what_was_retrieved(
    editor: Visitor, database: Database
) -> None:
    text = "A long answer. " * 20
    add_candidate_row(database, "How?", asked=12, reason="slow", flags=4 | 16, results=RESULTS, response=text)
    add_candidate_row(database, "Why?", reason="error", flags=1, error="Timeout: no index")
    page = editor.get(PATH)
    shown = words(page)
    for part in ("2 questions wait", "slow", "negative feedback", "asked 12 times", "asked once", "from web"):
        assert part in shown
    assert "Error: Timeout: no index" in shown
    assert shown.index("How?") < shown.index("Why?")
    assert values(page, "relevant") == [f"d{number}" for number in range(12)]
    assert "2 further results" in shown
    assert text.strip() in shown
    assert values(page, "id") == ["how", "why"]
    assert "abstain: say that it does not know" in shown
    assert "trustworthy" not in shown


def test_ticked_and_typed_documents_tags_and_an_id_become_the_row(editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How do I invite?", results=RESULTS)
    form: dict[str, Any] = {
        "number": 1,
        "decision": "accept",
        "relevant": ["d1", "d3"],
        "further": " guide 7 \r\n\r\nd1\r\n",
    }
    page = editor.post(PATH, **form, tags="team, team ,x", id=" own ", mode="")
    assert "✓ Accepted: “ How do I invite? ”" in words(page)
    assert "No question waits" in words(page)
    assert msgspec.json.decode(stored(database).row) == {
        "id": "own",
        "query": "How do I invite?",
        "relevant_doc_ids": ["d1", "d3", "guide 7"],
        "tags": ["team", "x"],
    }
    assert "/api/v1/projects/docs/candidates.jsonl" in page.links
    assert "Download 1 accepted row" in words(page)
    accepted = editor.get(f"{PATH}?state=accepted")
    assert "Accepted by an-editor" in words(accepted)
    assert "cat candidates.jsonl >> golden.jsonl" in words(accepted)
    assert '"relevant_doc_ids":["d1","d3","guide 7"]' in words(accepted)


@pytest.mark.parametrize(
    ("form", "row"),
    [
        ({"relevant": "d1"}, {"relevant_doc_ids": ["d1"]}),
        ({"nothing": "yes"}, {"relevant_doc_ids": []}),
        ({"nothing": "yes", "mode": "abstain"}, {"relevant_doc_ids": [], "expected_mode": "abstain"}),
        ({"mode": "abstain"}, {"expected_mode": "abstain"}),
    ],
    ids=["one document", "nothing", "nothing and a mode", "a mode"],
)
def test_each_way_to_say_what_is_expected(
    form: dict[str, Any], row: dict[str, Any], editor: Visitor, database: Database
) -> None:
    add_candidate_row(database, "How?", results=RESULTS)
    editor.post(PATH, number=1, decision="accept", **form)
    assert msgspec.json.decode(stored(database).row) == {"id": "how", "query": "How?", **row}


WRONG = {
    "neither": ({}, "Tick the relevant documents, or “nothing answers it”"),
    "both": ({"nothing": "yes", "relevant": ["d1"]}, "Relevant documents: some are named, and"),
    "a golden id": ({"relevant": ["d1"], "id": "q1"}, "Id: a golden query has it; choose another one"),
    "a long tag": ({"relevant": ["d1"], "tags": "x" * 201}, "Tags: expected text of 1 to 200 characters"),
    "a long document": ({"further": "x" * 2_001}, "Relevant documents: expected text of 1 to 2,000"),
    "another mode": ({"mode": "maybe"}, "How it must be answered: expected"),
}


@pytest.mark.parametrize(("form", "problem"), WRONG.values(), ids=WRONG.keys())
def test_an_error_comes_first_and_keeps_what_was_typed(
    form: dict[str, Any], problem: str, editor: Visitor, database: Database
) -> None:
    for number in range(15):
        add_candidate_row(database, f"Question {number}?", results=RESULTS, asked=20 - number)
    typed = {"further": "typed further", "tags": "typed tag", "id": "typed_id", **form}
    page = editor.post(PATH, status=422, number=15, decision="accept", **typed) if form else None
    page = page or editor.post(PATH, status=422, number=15, decision="accept", tags="typed tag", id="typed_id")
    shown = words(page)
    assert problem in shown
    assert shown.index(problem) < shown.index("Question 14?") < shown.index("Question 0?")
    assert shown.count("Question 14?") == 1
    assert values(page, "id")[0] == typed["id"]
    assert values(page, "tags")[0] == typed["tags"]
    assert ('value="d1" checked' in page.markup) == ("relevant" in form)
    assert ('value="yes" checked' in page.markup) == ("nothing" in form)
    assert stored(database, 15).state == "new"


def test_what_somebody_else_decided_meanwhile_is_said(served: Served, editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How?")
    other = Visitor(served, "admin")
    other.post(PATH, number=1, decision="reject")
    page = editor.post(PATH, status=409, number=1, decision="accept", nothing="yes")
    assert "It was rejected by user:an-admin at " in words(page)
    assert "Rejected by an-admin" in words(page)
    assert stored(database).decided_by == "user:an-admin"


def test_a_decision_is_taken_back_and_fills_the_form_in(editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How?", results=RESULTS)
    editor.post(PATH, number=1, decision="accept", relevant=["d2"], further="other", tags="a,b", id="own")
    page = editor.post(PATH, number=1, decision="reopen")
    assert "It waits again: “ How? ”" in words(page)
    assert 'value="d2" checked' in page.markup
    assert (values(page, "id"), values(page, "tags")) == (["own"], ["a, b"])
    assert "other" in page.markup
    assert "Download" not in words(page)
    assert "Rejected: “ How? ”" in words(editor.post(PATH, number=1, decision="reject"))
    assert "Take it back" in words(editor.get(f"{PATH}?state=rejected"))


def test_golden_questions_and_rows_need_no_decision(editor: Visitor, database: Database, tmp_path: Path) -> None:
    add_candidate_row(database, "where is the FIRST text", results=RESULTS)
    page = editor.get(PATH)
    assert "✓ Golden already, as q1 ." in words(page)
    assert values(page, "relevant") == []
    add_candidate_row(database, "How?", results=RESULTS)
    editor.post(PATH, number=2, decision="accept", relevant=["d1"])
    project(tmp_path / "projects", queries=[*QUERIES, golden("how", "d1", query="How?")])
    page = editor.get(f"{PATH}?state=accepted")
    assert "✓ Golden now, as how ." in words(page)
    assert "Download" not in words(page)
    assert "Take it back" not in words(page)
    assert "Rejected: “ where is" in words(editor.post(PATH, number=1, decision="reject"))


def test_the_page_counts_what_was_drawn_and_what_was_not_queued(editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How?")
    now = now_ms()
    add_tallies(database, now, received=5_000, sampled=1_000, golden=300, not_queued=16)
    add_tallies(database, now - 29 * DAY, received=1, sampled=1, golden=1, not_queued=1)
    add_tallies(database, now - 30 * DAY, received=7, sampled=7, golden=7, not_queued=7)
    shown = words(editor.get(PATH))
    assert "17 questions of the last 30 days were not queued, because 10,000 candidates waited" in shown
    assert "5,001 interactions received, 1,001 drawn, of which 301 ask what is golden already, and 17 were not" in shown


def test_an_empty_page_says_where_candidates_come_from(served: Served, editor: Visitor) -> None:
    page = editor.get(PATH)
    assert "No question waits" in words(page)
    assert {"/p/docs/production", "/p/docs/playground"} <= {*page.links}
    viewer = Visitor(served, "viewer")
    assert "/p/docs/playground" not in viewer.get(PATH).links
    assert "None is accepted" in words(viewer.get(f"{PATH}?state=accepted"))


def test_pages_follow_each_other_and_a_decision_stays_on_its_page(editor: Visitor, database: Database) -> None:
    for number in range(25):
        add_candidate_row(database, f"Question {number}?", asked=100 - number)
    found, path = list[str](), PATH
    while path:
        page = editor.get(path)
        found += [part.partition("<")[0] for part in page.markup.split('class="asked" dir="auto">')[1:]]
        path = next((link for link in page.links if "cursor=" in link), "")
    assert found == [f"Question {number}?" for number in range(25)]
    second = next(link for link in editor.get(PATH).links if "cursor=" in link)
    page = editor.get(second)
    after = editor.post(PATH, number=11, decision="reject", cursor=hidden(page, "cursor"))
    assert "Question 11?" in words(after)
    assert "Question 9?" not in words(after)
    assert "damaged" in words(editor.get(f"{PATH}?cursor=x", status=422))


def test_questions_are_found_by_a_part_and_a_decision_keeps_the_search(editor: Visitor, database: Database) -> None:
    for number in range(bounds.CANDIDATES_PAGE + 2):
        add_candidate_row(database, f"Does the E-bike {number}% charge?", asked=number + 1)
    add_candidate_row(database, "How do I return it?", asked=99)
    page = editor.get(f"{PATH}?q=e-BIKE")
    assert "return it" not in words(page)
    assert values(page, "q")[-1] == "e-BIKE"
    page = editor.get(unescape(page.markup.split('rel="next"')[0].rpartition('href="')[2].partition('"')[0]))
    assert "E-bike 0%" in words(page)
    assert "return it" not in words(page)
    assert "E-bike 1%" in words(editor.get(f"{PATH}?q=1%25 ch"))
    assert "No question that waits has" in words(editor.get(f"{PATH}?q=%25%25"))
    refused = editor.post(PATH, status=422, number=1, decision="accept", q="e-bike")
    assert "return it" not in words(refused)
    decided = editor.post(PATH, number=1, decision="accept", q="e-bike", nothing="yes")
    assert "Accepted" in words(decided)
    assert "return it" not in words(decided)


def test_a_viewer_reads_and_decides_nothing(served: Served, database: Database) -> None:
    add_candidate_row(database, "How?", results=RESULTS)
    viewer = Visitor(served, "viewer")
    page = viewer.get(PATH)
    assert "How?" in words(page)
    assert values(page, "decision") == []
    viewer.post(PATH, status=403, number=1, decision="reject")
    assert stored(database).state == "new"


def test_hostile_texts_stay_texts_in_fields_and_come_back_as_they_are(editor: Visitor, database: Database) -> None:
    results = [{"doc_id": BAD, "score": 0.5}, {"doc_id": 7}, {"text": "no id"}]
    told: dict[str, Any] = {"response": SHOWN_ONLY * 20, "error": SHOWN_ONLY, "source": SHOWN_ONLY, "tags": [BAD]}
    add_candidate_row(database, BAD, reason=SHOWN_ONLY, results=results, flags=31, **told)
    page = editor.get(PATH)
    assert "<script>alert(1)</script>" in words(page)
    assert values(page, "relevant") == [BAD, "7"]
    form: dict[str, Any] = {"relevant": values(page, "relevant"), "further": BAD, "id": BAD, "tags": BAD, "mode": BAD}
    wrong = editor.post(PATH, status=422, number=1, decision="accept", **form)
    assert values(wrong, "id") == [BAD]
    assert 'value="7" checked' in wrong.markup
    editor.post(PATH, number=1, decision="accept", **{**form, "mode": ""})
    row = msgspec.json.decode(stored(database).row)
    assert row["relevant_doc_ids"][:2] == [BAD, "7"]
    assert row["query"] == BAD
    editor.get(f"{PATH}?state=accepted")


def test_a_question_waits_since_it_was_asked_also_if_it_was_sent_later(editor: Visitor, database: Database) -> None:
    asked_at = now_ms() - 20 * DAY
    number = add_candidate_row(database, "How?", asked_at=asked_at)
    sent = candidates.update().where(candidates.c.id == number).values(created_at=now_ms())
    database.write(lambda connection: connection.execute(sent))
    day = datetime.fromtimestamp(asked_at / 1_000, UTC).strftime("%Y-%m-%d %H:%M")
    assert f"since {day} UTC" in words(editor.get(PATH))


def test_the_answer_of_a_candidate_may_be_gone(editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How?", results=RESULTS)
    database.write(lambda connection: connection.execute(interactions.delete()))
    page = editor.get(PATH)
    assert "Its answer is no longer kept" in words(page)
    editor.post(PATH, number=1, decision="accept", relevant="d1")
    assert stored(database).state == "accepted"


def test_a_form_of_another_project_or_no_candidate_is_not_found(editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How?")
    editor.post("/p/other/candidates", status=404, number=1, decision="reject")
    editor.post(PATH, status=404, number=99, decision="accept", nothing="yes")
    editor.post(PATH, status=404, number=99, decision="accept")
    editor.post(PATH, status=422, number=1, decision="maybe")
    editor.post(PATH, status=422, number="x", decision="reject")
    for text in ("99", str(2**63), "-1"):
        editor.get(f"{PATH}?decided={text}")
    editor.get(f"{PATH}?state=old", status=422)


@pytest.mark.parametrize("ticked", ["relevant_doc_ids", ["\ud800"]])
def test_odd_values_of_a_form_are_no_fault_of_the_service(ticked: Any, editor: Visitor, database: Database) -> None:
    add_candidate_row(database, "How?")
    raw = b"number=1&decision=accept&relevant=" + (b"%ED%A0%80" if isinstance(ticked, list) else b"%00")
    headers = {"Content-Type": "application/x-www-form-urlencoded"} | editor.headers
    answer = editor.client.post(PATH, content=raw, headers=headers)
    assert answer.status_code in {200, 400, 422}, answer.text


def test_the_page_reads_a_bounded_number_of_candidates(editor: Visitor, database: Database) -> None:
    for number in range(bounds.CANDIDATES_PAGE + 1):
        add_candidate_row(database, f"Question {number}?")
    assert editor.get(PATH).markup.count('class="candidate-card"') == bounds.CANDIDATES_PAGE
