"""Recording a service that fails in every way it can: how often it is asked, the exit code, and no secret anywhere."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from tests.builders import golden, write_jsonl
from tests.net.service import Reply, Service, refused
from tests.process import Ended, rag_contract
from tests.secret_forms import every_character_escaped, forms_of

TOKEN = "sk-standin-0123456789abcdef"
WHOLLY_ESCAPED = {kind: [form] for kind, form in every_character_escaped(TOKEN).items()}
FORMS_OF_TOKEN = {**forms_of(TOKEN), **WHOLLY_ESCAPED}
ECHO = {"error": f"bad key {TOKEN}, also {TOKEN[:14]}", TOKEN: TOKEN}
FOUND = Reply(content={"results": [{"doc_id": "doc1", "text": f"A text with {TOKEN} in it."}]})
FILE = """
http:
  url: {url}/ask
  headers: {{Authorization: "Bearer ${{secret:SEARCH_TOKEN}}"}}
  json: {{question: "{{query}}", key: "${{secret:SEARCH_TOKEN}}"}}
"""
CHAT = """
chat:
  base_url: {url}/v1
  model: m
  api_key: "${{secret:SEARCH_TOKEN}}"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SEARCH_TOKEN", TOKEN)
    monkeypatch.setattr("ragcontract.record.asking.FIRST_BACKOFF", 0.01)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1", "doc1")])
    return tmp_path


def recorded(url: str, *more: str, chat: bool = False) -> Ended:
    """Record a service; the secret is in nothing that is written, whatever became of it."""
    Path("record.yml").write_text((FILE + CHAT if chat else FILE).format(url=url))
    options = ("--secret", "SEARCH_TOKEN", "--stream-out", "events.jsonl", "--stream-answer-chars", "999")
    ended = rag_contract("record", "record.yml", *options, "--details", "details.json", *more)
    written = [path.read_bytes() for path in Path().rglob("*") if path.is_file() and path.name != "record.yml"]
    for text in (ended.out, ended.err, *(one.decode() for one in written)):
        assert not any(TOKEN[at : at + 12] in text for at in range(len(TOKEN) - 11)), text
    return ended


def in_an_instant() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1)


def dated(header: str) -> Reply:
    return Reply(status=503, headers={"Retry-After": header})


AGAIN_STATUSES = (408, 409, 429, 500, 502, 503, 504)
AGAIN: dict[str, tuple[Any, str]] = {
    "reset": (Reply(kind="reset"), "connection_lost"),
    "dropped": (Reply(kind="drop"), "connection_lost"),
    "half an answer": (Reply(kind="half"), "connection_lost"),
    **{
        str(status): (Reply(status=status, content=ECHO), "http_error")
        for status in (408, 409, 429, 500, 502, 503, 504)
    },
    "seconds": (Reply(status=429, headers={"Retry-After": "0.1"}), "http_error"),
    "a duration": (Reply(status=429, headers={"Retry-After": "100ms"}), "http_error"),
    "a rate limit": (Reply(status=429, headers={"X-RateLimit-Reset-Tokens": "0.1s"}), "http_error"),
    "a date": (lambda: dated(format_datetime(in_an_instant(), usegmt=True)), "http_error"),
    "ISO 8601": (lambda: dated(in_an_instant().isoformat()), "http_error"),
    "no time": (Reply(status=503, headers={"Retry-After": "inf"}), "http_error"),
}
NOT_AGAIN: dict[str, tuple[Reply, str]] = {
    **{str(status): (Reply(status=status, content=ECHO), "http_error") for status in (400, 401, 403, 404, 422)},
    "hang": (Reply(kind="hang"), "read_timeout"),
    "drip of headers": (Reply(kind="drip headers"), "read_timeout"),
    "drip of a body": (Reply(kind="drip body"), "read_timeout"),
    "HTML for JSON": (Reply(content=f"<html>{TOKEN}</html>".encode()), "not_json"),
    "20 MB": (Reply(content=b" " * 20_000_000), "too_large"),
    "another host": (Reply(status=307, headers={"Location": f"http://other.invalid/?{TOKEN}"}), "redirect"),
    "no results": (Reply(content={"results": None, TOKEN: TOKEN}), "no_results"),
}


def reply_of(given: Any) -> Reply:
    found: Reply = given() if callable(given) else given
    return found


def failed(kind: str, ended: Ended) -> None:
    assert ended.code == 2, ended
    assert kind in ended.err
    assert not Path("current_run.jsonl").exists()
    cases = [one for one in map(json.loads, Path("events.jsonl").read_text().splitlines()) if one["event"] == "case"]
    assert [one["failure"]["kind"] for one in cases] == [kind]


@pytest.mark.parametrize("fault", AGAIN)
def test_what_may_pass_is_asked_again_and_then_recorded(fault: str) -> None:
    with Service(reply_of(AGAIN[fault][0]), FOUND) as service:
        ended = recorded(service.url, "--retries", "1")
    assert ended.code == 0, ended
    assert len(service.requests) == 2
    (row,) = map(json.loads, Path("current_run.jsonl").read_text().splitlines())
    assert row["results"] == [{"doc_id": "doc1", "text": "A text with *** in it."}]


@pytest.mark.parametrize("form", FORMS_OF_TOKEN)
def test_a_secret_that_a_service_echoes_in_a_form_of_the_page_on_security_is_recorded_in_none(form: str) -> None:
    echoed = FORMS_OF_TOKEN[form]
    text = " and ".join(["A text with", *echoed, "."])
    with Service(Reply(content={"results": [{"doc_id": "doc1", "text": text}]})) as service:
        assert recorded(service.url).code == 0
    assert not any(
        encoded[at : at + 12] in Path("current_run.jsonl").read_text() for encoded in echoed for at in (0, 9)
    )
    (row,) = map(json.loads, Path("current_run.jsonl").read_text().splitlines())
    assert row["results"][0]["text"] == " and ".join(["A text with", *["***"] * len(echoed), "."])


@pytest.mark.parametrize("fault", ["reset", "503", "seconds"])
def test_what_does_not_pass_is_given_up_after_the_retries(fault: str) -> None:
    reply, kind = AGAIN[fault]
    with Service(reply_of(reply)) as service:
        failed(kind, recorded(service.url, "--retries", "1"))
    assert len(service.requests) == 2


def test_without_retries_there_is_one_attempt() -> None:
    with Service(Reply(status=503)) as service:
        failed("http_error", recorded(service.url, "--retries", "0"))
    assert len(service.requests) == 1


def test_a_service_that_is_not_there_is_unreachable() -> None:
    failed("unreachable", recorded(refused(), "--retries", "1"))


@pytest.mark.parametrize("fault", NOT_AGAIN)
def test_what_will_not_pass_is_asked_once(fault: str) -> None:
    reply, kind = NOT_AGAIN[fault]
    with Service(reply) as service:
        failed(kind, recorded(service.url, "--timeout", "0.3" if kind == "read_timeout" else "20"))
    assert len(service.requests) == 1


@pytest.mark.parametrize("fault", NOT_AGAIN)
def test_a_chat_that_fails_leaves_its_retrieval_to_those_who_keep_it(fault: str) -> None:
    reply, kind = NOT_AGAIN[fault]
    kind = "no_content" if kind == "no_results" else kind
    with Service(reply, at={"/ask": FOUND}) as service:
        seconds = "0.5" if kind == "read_timeout" else "20"
        ended = recorded(service.url, "--timeout", seconds, "--on-failure", "keep-retrieval", chat=True)
    assert ended.code == 0, ended
    (row,) = map(json.loads, Path("current_run.jsonl").read_text().splitlines())
    assert row["results"] == [{"doc_id": "doc1", "text": "A text with *** in it."}]
    assert row["response"] is None
    assert row["error"].startswith(f"{kind}: ")
    assert row["context_chars"] == len("[1] source=doc1\nA text with *** in it.")
    answered = kind in {"http_error", "not_json", "no_content"}
    assert (row.get("error_detail") is not None) == answered
    if answered:
        assert set(row["error_detail"]) >= {"status_code", "content_type", "response_snippet"}
