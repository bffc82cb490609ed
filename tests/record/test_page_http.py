"""The page on recording: its files about services and chat do what it says."""

import re
from pathlib import Path
from typing import Any

import pytest

from ragcontract.net.secrets import Secrets
from ragcontract.net.sending import AGAIN, UNSENT
from ragcontract.record.adapters.templates import METADATA, PLACEHOLDERS
from ragcontract.record.interface import Response, System
from scripts.docs import block
from tests.net.service import Reply, Service
from tests.record.systems import asked, doc_ids, target_of
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "record.md").read_text()
TOKEN = "sk-standin-0123456789abcdef"
TEXTS = """
def retrieve(query):
    return [
        {"doc_id": "doc_refunds", "text": "Returns are accepted within 30 days."},
        {"doc_id": "doc_login", "text": "Log in with your email address."},
    ]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def system(name: str, url: str, **changes: str) -> System:
    """Read a file of the page, with the address of a stand-in for its own."""
    text = re.sub(r"(url: )https?://[^/\n]+", rf"\g<1>{url}", block(PAGE, name))
    for old, new in changes.items():
        text = text.replace(f"# {old}:", f"{new}:")
    Path(name).write_text(text)
    return target_of(Path(), name, secrets=Secrets({"SEARCH_TOKEN": TOKEN})).system


def test_the_service_is_asked_and_understood() -> None:
    hit = {"_id": "c1", "_score": 1.5, "_source": {"doc": "doc_refunds", "text": "Returns …"}}
    reply = Reply(content={"hits": {"hits": [hit]}, "answer": {"text": "30 days."}})
    with Service(reply) as service:
        response = asked(system("http.yml", service.url), "How long?", traceparent="00-aa-bb-01")
    results = [{"doc_id": "doc_refunds", "score": 1.5, "chunk_id": "c1", "text": "Returns …"}]
    assert response == Response(results=results, response="30 days.")
    (request,) = service.requests
    assert (request.method, request.path) == ("POST", "/api/search")
    assert request.json == {"question": "How long?", "size": 5, "session": "q1-1"}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["traceparent"] == "00-aa-bb-01"


def test_the_options_that_are_left_out_may_be_added() -> None:
    names = ("method", "empty_results", "trust_env", "doc_id")
    with Service(Reply(content={"hits": None, "answer": {"text": "x"}})) as service:
        response = asked(system("http.yml", service.url, **{name: name for name in names}))
    assert (response.results, service.requests[0].method) == ([], "GET")


def test_the_stream_is_put_together() -> None:
    frames: list[Any] = ['{"choices": [{"delta": {"content": "30 "}}]}', '{"sources": ["doc_refunds"]}']
    frames += ['{"choices": [{"delta": {"content": "days."}}]}', "[DONE]"]
    content = "".join(f"data: {frame}\n\n" for frame in frames).encode()
    with Service(Reply(content=content, headers={"Content-Type": "text/event-stream"})) as service:
        response = asked(system("sse.yml", service.url), "How long?")
    assert (response.response, doc_ids(response)) == ("30 days.", ["doc_refunds"])
    assert service.requests[0].json["messages"] == [{"role": "user", "content": "How long?"}]


def test_the_table_of_failures_says_what_is_asked_again() -> None:
    table = re.search(r"\| what happens \| kind of failure .*?\n\n", PAGE, re.DOTALL)
    assert table
    rows = [row.strip("| ").split(" | ") for row in table[0].strip().splitlines()[2:]]
    again = {kind: last.startswith("yes") for _, kinds, last in rows[2:] for kind in re.findall(r"`(\w+)`", kinds)}
    assert {kind for kind, may in again.items() if may} == AGAIN
    assert {*UNSENT, "read_timeout", "connection_lost", "not_json", "bad_encoding", "tls_error"} <= set(again)
    assert "no_content" not in again


def test_every_placeholder_is_in_the_table() -> None:
    table = PAGE.partition("<!-- tested: placeholders -->")[2].partition("\n\n")[0]
    assert set(re.findall(r"`\{([\w.]+)\}`", table)) == {*PLACEHOLDERS, f"{METADATA}NAME"}


def test_the_model_answers_from_the_context_that_the_page_shows() -> None:
    Path("texts.py").write_text(TEXTS)
    answer = {"choices": [{"message": {"content": "30 days."}}]}
    models = Reply(content={"data": [{"id": "small-embed"}, {"id": "small-instruct"}]})
    with Service(Reply(content=answer), at={"/v1/models": models}) as service:
        response = asked(system("chat.yml", service.url), "How long?")
    context = block(PAGE, "context").rstrip("\n")
    assert (response.response, response.context_chars) == ("30 days.", len(context))
    body = service.requests[-1].json
    assert body["model"] == "small-instruct"
    assert body["messages"][0] == {"role": "system", "content": "Answer only from the context."}
    assert context in body["messages"][1]["content"]
    assert (body["max_tokens"], body["temperature"], "seed" in body) == (256, 0.0, False)


def test_the_options_of_chat_that_are_left_out_may_be_added() -> None:
    Path("texts.py").write_text(TEXTS)
    answer = {"choices": [{"message": {"content": "x"}}]}
    with Service(Reply(content=answer), at={"/v1/models": Reply(status=404)}) as service:
        asked(system("chat.yml", service.url, **{name: name for name in ("seed", "prompt", "extra")}))
    assert (service.requests[-1].json["seed"], service.requests[-1].json["top_p"]) == (7, 1)
