"""A stream that ends with an error is no shorter answer, however the service says that it is an error."""

from pathlib import Path

import pytest

from tests.builders import write_jsonl
from tests.net.service import Reply, Service
from tests.process import Ended, rag_contract

EVENT_STREAM = {"Content-Type": "text/event-stream"}
BEGINNING = 'data: {"delta": "Our prices are"}\n\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rule = {"type": "must_not_contain", "value": "salary"}
    write_jsonl(tmp_path / "golden.jsonl", [{"id": "a", "query": "q", "rules": [rule]}])


def recorded(rest: str, *more: str) -> Ended:
    """Record a service that streams the beginning of an answer and then ``rest``."""
    with Service(Reply(content=(BEGINNING + rest).encode(), headers=EVENT_STREAM)) as service:
        lines = ["http:", f"  url: {service.url}", '  json: {q: "{query}"}', "  sse: delta", *more]
        Path("target.yml").write_text("\n".join(lines))
        return rag_contract("record", "target.yml", "--retries", "0")


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("event: error\ndata: \n\n", "it gives no reason"),
        ("event: error\n\n", "it gives no reason"),
        ("event: error\ndata: [DONE]\n\n", "it gives no reason"),
        ("event: error\ndata: upstream reset\n\n", "upstream reset"),
        ('event: Error\ndata: {"message": "boom"}\n\n', "boom"),
        ('data: {"type": "Error", "message": "boom"}\n\n', "boom"),
        ('data: {"event": "error", "status": 400, "code": "quota", "message": "boom"}\n\n', "boom"),
        ('data: {"type": "response.failed", "response": {"error": {"message": "boom"}}}\n\n', "boom"),
        ('event: response.failed\ndata: {"response": {"error": {"message": "boom"}}}\n\n', "boom"),
        ('data: {"type": "end", "response": {"status": "failed", "error": {"message": "boom"}}}\n\n', "boom"),
        ('data: {"type": "RUN_ERROR", "message": "boom"}\n\n', "boom"),
    ],
)
def test_an_event_that_says_an_error_fails_the_attempt(rest: str, reason: str) -> None:
    ended = recorded(rest)
    assert ended.code == 2, ended
    assert f"the service answered with an error: {reason}" in ended.err
    assert not Path("current_run.jsonl").exists()


def test_an_error_with_the_data_of_the_last_event_is_an_error() -> None:
    ended = recorded("event: error\ndata: end\n\n", "  sse_end: end")
    assert (ended.code, "service_error" in ended.err) == (2, True), ended


@pytest.mark.parametrize("rest", ['{"error": "upstream reset"}\n\n', 'data: {"delta": "."}\n {"error": 1}\n\n', "{}"])
def test_json_that_is_no_event_is_not_passed_over(rest: str) -> None:
    ended = recorded(rest)
    assert (ended.code, "the stream has JSON in a line that is not `data:`" in ended.err) == (2, True), ended


def test_an_event_about_a_tool_that_failed_and_one_without_an_error_are_no_errors() -> None:
    rest = 'data: {"type": "response.completed", "response": {"error": null}}\n\n'
    tool = 'event: tool_error\ndata: {"type": "response.mcp_call.failed", "response": "text"}\n\n'
    assert recorded(tool + rest).code == 0
