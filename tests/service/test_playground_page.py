"""The page of the playground: what somebody sees of an answer, without JavaScript and whatever a system returns."""

from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ragcontract.service.database import Database
from ragcontract.service.tables import audit, candidates, interactions
from tests.builders import golden
from tests.service.askers import by_key, new_user
from tests.service.conftest import HOSTILE
from tests.service.served import Served
from tests.service.targets import project
from tests.service.visiting import Page, assert_harmless, text_of

BOTH = "it's <b>bold</b> & \u202e\x1b[31m"
CODE = f"""
BAD = {HOSTILE + BOTH!r}
def answer(query, messages=()):
    return {{
        "response": f"{{BAD}} about {{query}}",
        "results": [{{"doc_id": BAD, "text": BAD * 20, "chunk_id": BAD, "score": 0.5}}, {{"doc_id": "d2"}}],
        "tool_calls": [{{"name": BAD, "arguments": {{BAD: BAD}}}}],
        "messages": [
            {{"role": "user", "content": query}},
            {{"role": "assistant", "content": f"{{BAD}} about {{query}}"}},
        ],
        "label": BAD,
    }}
"""
RULES = [{"type": "must_contain", "value": "no such words"}, {"type": "must_contain", "value": "bold"}]


@pytest.fixture
def kind() -> str:
    return "sqlite"


class Visitor:
    """Somebody with a role, who opens the page of a mounted project."""

    def __init__(self, served: Served, role: str) -> None:
        self.client = served.client
        key = served.database.write(lambda connection: new_user(connection, f"an-{role}", role))
        self.headers = by_key(key) | {"Accept": "text/html"}

    def get(self, path: str, status: int = 200) -> Page:
        return self._page(self.client.get(path, headers=self.headers), status)

    def post(self, path: str = "/p/docs/playground", status: int = 200, **form: Any) -> Page:
        return self._page(self.client.post(path, data=form, headers=self.headers), status)

    def _page(self, answer: Any, status: int) -> Page:
        assert answer.status_code == status, answer.text
        page = Page(answer.content)
        assert_harmless(page)
        return page


@pytest.fixture
def served(database: Database, tmp_path: Path) -> Iterator[Served]:
    queries = [golden("q1", HOSTILE, query="What is bold?", rules=RULES), golden(HOSTILE, query=HOSTILE)]
    with Served(database, projects=project(tmp_path / "projects", CODE, queries=queries)) as served:
        yield served


@pytest.fixture
def editor(served: Served) -> Visitor:
    return Visitor(served, "editor")


def words(page: Page) -> str:
    return " ".join(text_of(page.markup).split())


def hidden(page: Page, name: str) -> str:
    """Return the value of a hidden field as a browser sends it."""
    return unescape(page.markup.partition(f'name="{name}" value="')[2].partition('"')[0])


def test_a_hostile_answer_is_shown_as_text_and_two_turns_are_asked(editor: Visitor) -> None:
    page = editor.post(query=f"Hello {HOSTILE}")
    for shown in ("2 results", "1 tool call", "Messages", "Golden queries most like it", "about Hello", "What else"):
        assert shown in words(page)
    assert "<script>alert(1)</script>" in words(page)
    assert "What the contract says" not in words(page)
    second = editor.post(query="And then?", messages=hidden(page, "messages"))
    assert "about And then?" in words(second)
    assert f"Hello {HOSTILE[:10]}" in hidden(second, "messages")


def test_a_golden_query_shows_which_rules_hold_and_the_metrics(editor: Visitor) -> None:
    page = editor.post(golden_id="q1")
    rules = [text_of(f"<li {part.partition('</li>')[0]}") for part in page.markup.split("<li ")]
    assert ["✕" if "✕" in rule else "✓" for rule in rules if "must_contain" in rule] == ["✕", "✓"]
    assert any("✕" in rule and "no such words" in rule and "found:" in rule for rule in rules)
    assert any("✓" in rule and "bold" in rule for rule in rules)
    assert "MRR@5" in words(page)
    assert "Make it a candidate" not in words(page)
    assert '<option value="q1" selected>' in page.markup


def test_a_golden_query_with_a_hostile_id_is_asked_by_the_list(editor: Visitor) -> None:
    page = editor.get("/p/docs/playground")
    sent = [unescape(part.partition('"')[0]) for part in page.markup.split('<option value="')[1:]]
    assert sent == ["q1", HOSTILE]
    assert "What the contract says" in words(editor.post(golden_id=HOSTILE))


def test_a_question_becomes_a_candidate_and_a_golden_one_does_not(editor: Visitor, database: Database) -> None:
    path = "/p/docs/playground/candidate"
    number = hidden(editor.post(query="Write to ana@example.com?"), "number")
    assert "“ Write to [email]? ” is a candidate now." in words(editor.post(path, number=number))
    assert "is a candidate already" in words(editor.post(path, number=number))
    same = hidden(editor.post(query="what is BOLD"), "number")
    assert "is a golden query already, so it is no candidate" in words(editor.post(path, number=same))
    editor.post(path, status=404, number="999")
    with database.read() as connection:
        assert connection.execute(select(candidates.c.query)).scalars().all() == ["Write to [email]?"]
        actions = connection.execute(select(audit.c.actor).where(audit.c.action == "candidate.add")).scalars().all()
        assert actions == ["user:an-editor"]
        assert len(connection.execute(select(interactions)).all()) == 2


def test_what_is_no_question_is_said_on_the_page(editor: Visitor, database: Database) -> None:
    assert "Question: expected a question" in words(editor.post(status=422, query=""))
    assert "Golden query: the golden set has no query" in words(editor.post(status=422, golden_id="unknown"))
    for messages in ("[", "{}", '[{"role": "user"}]', "[" * 100_000, '[{"role": "user", "content": "x", "path": "/"}]'):
        editor.post(status=422, query="x", messages=messages)
    editor.post(status=422, query="x" * 20_001)
    with database.read() as connection:
        assert connection.execute(select(interactions)).all() == []


def test_the_page_is_linked_for_those_who_may_ask(served: Served, editor: Visitor) -> None:
    links = editor.get("/p/docs/query?id=q1").links
    assert "/p/docs/playground" in links
    assert "/p/docs/playground?golden_id=q1" in links
    assert '<option value="q1" selected>' in editor.get("/p/docs/playground?golden_id=q1").markup
    viewer = Visitor(served, "viewer")
    assert not any("playground" in link for link in viewer.get("/p/docs/query?id=q1").links)
    viewer.get("/p/docs/playground", status=403)


def test_a_project_that_cannot_be_asked_says_what_is_missing(editor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "projects/docs/record.yml").unlink()
    page = editor.get("/p/docs/playground")
    assert "It cannot be asked: the mounted project has no record.yml" in words(page)
    assert "<textarea" not in page.markup
    assert "has no record.yml" in words(editor.post(status=409, query="x"))


def test_what_is_stored_is_said_as_the_project_has_it(editor: Visitor, tmp_path: Path) -> None:
    assert "stored, without e-mail addresses, phone numbers" in words(editor.get("/p/docs/playground"))
    (tmp_path / "projects/docs/project.yml").write_text("redact: []\n")
    assert "are stored as they are" in words(editor.get("/p/docs/playground"))
