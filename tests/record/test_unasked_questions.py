"""A target file that sends no question is refused: all answers would be to something else than the golden queries."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders import write_jsonl
from tests.net.service import Reply, Service
from tests.process import Ended, rag_contract

SAME = "no placeholder stands for the question, so all questions would be the same; write {query}, or {messages}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rule = {"type": "must_not_contain", "value": "salary of"}
    row = {"id": "a", "query": "What does the director earn?", "rules": [rule], "metadata": {"question": "q"}}
    write_jsonl(tmp_path / "golden.jsonl", [row])


def recorded(**http: Any) -> tuple[Ended, int]:
    """Record a service that answers anything; return how that ended, and how often it was asked."""
    with Service(Reply(content={"answer": "Ask me anything!"})) as service:
        Path("http.yml").write_text(yaml.safe_dump({"http": {"url": service.url, **http}}))
        return rag_contract("record", "http.yml", "--retries", "0"), len(service.requests)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{ query }}", "{ query }"),
        ("{ query }", "{ query }"),
        ("{query }", "{query }"),
        ("{query} and { messages }", "{ messages }"),
        ("{query} in { metadata.lang }", "{ metadata.lang }"),
    ],
)
def test_a_placeholder_with_blanks_is_not_sent_as_it_stands(text: str, found: str) -> None:
    ended, asked = recorded(json={"question": text})
    assert (ended.code, asked) == (2, 0)
    assert f"http.json.question: {found} has blanks, so it is not a placeholder; write {{" in ended.err


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"question": "%(query)s"}},
        {"json": {"{query}": 1}},
        {"json": {"question": "{{query}}", "session": "{query_id}", "size": "{top}", "before": "{history}"}},
        {"form": {"question": "How long?"}},
        {"query": {"q": "$query"}},
        {},
    ],
)
def test_a_service_that_is_not_sent_the_question_is_not_asked(sent: dict[str, Any]) -> None:
    ended, asked = recorded(**sent)
    assert (ended.code, asked) == (2, 0)
    assert f"http: {SAME}" in ended.err


@pytest.mark.parametrize(
    "sent",
    [
        {"json": {"question": "Answer: {query}", "graph": "query { hits { id } }"}},
        {"json": {"messages": "{messages}"}},
        {"query": {"q": "{metadata.question}"}},
        {"form": {"q": "{query}"}},
        {"headers": {"X-Question": "{query}"}},
    ],
)
def test_a_service_may_be_sent_the_question_anywhere(sent: dict[str, Any]) -> None:
    ended, asked = recorded(**sent)
    assert (ended.code, asked) == (0, 1), ended
