"""The client that applications send interactions with: they never wait for it, and nothing that it does harms them."""

import ast
import subprocess
import sys
import time
import tokenize
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragcontract import interaction_client
from ragcontract.core import bounds
from ragcontract.interaction_client import InteractionClient
from tests.net.service import Reply, Service

STORED = Reply(content={"accepted": 1, "duplicates": 0, "rejected": [], "more_rejected": 0})
LINES = 60
PATIENCE = 30  # s


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def sent(service: Service) -> list[dict[str, Any]]:
    return [item for request in service.requests for item in request.json["interactions"]]


def test_what_is_sent_arrives_with_an_id_and_a_time() -> None:
    with Service(STORED) as service:
        client = InteractionClient(f"{service.url}/", "docs", "rc_key")
        client.send("How?", response="So.", user="ana")
        client.flush(PATIENCE)
        (request,) = service.requests
        (item,) = sent(service)
    assert request.path == "/api/v1/projects/docs/interactions"
    assert request.headers["authorization"] == "Bearer rc_key"
    assert len(item.pop("id")) == 32
    assert item.pop("asked_at") > 1_700_000_000_000
    assert item == {"query": "How?", "response": "So.", "user": "ana"}
    assert client.dropped == 0


@pytest.mark.parametrize(
    "refusal",
    [
        Reply(status=503, headers={"Retry-After": "0"}),
        Reply(status=429, headers={"Retry-After": "0"}),
        Reply(status=502, content=b"<html>", headers={"Retry-After": "0"}),
        Reply(kind="reset"),
    ],
)
def test_what_is_not_stored_is_sent_again_as_it_was(refusal: Reply) -> None:
    with Service(refusal, STORED) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        client.send("How?")
        client.flush(PATIENCE)
        first, second = sent(service)
    assert first == second
    assert client.dropped == 0


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        (Reply(status=401), 1),
        (Reply(status=422), 1),
        (Reply(content=b"not JSON"), 1),
        (Reply(content={"rejected": [{"index": 0, "problem": "query: is blank"}], "more_rejected": 2}), 3),
    ],
)
def test_what_is_refused_is_counted_and_the_next_one_is_sent(reply: Reply, dropped: int) -> None:
    with Service(reply, STORED) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        client.send("How?")
        client.flush(PATIENCE)
        client.send("When?", tags={1, 2})  # no JSON
        client.flush(PATIENCE)
        client.send("Why?")
        client.flush(PATIENCE)
        assert [item["query"] for item in sent(service)] == ["How?", "Why?"]
    assert client.dropped == dropped + 1


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(status=401, content=b"the key rc_key is not valid"), "401 the key … is not valid"),
        (
            Reply(content={"rejected": [{"problem": "query: is blank"}]}),
            '200 {"rejected": [{"problem": "query: is blank"}]}',
        ),
    ],
)
def test_the_log_says_once_why_something_is_dropped(reply: Reply, why: str, caplog: pytest.LogCaptureFixture) -> None:
    with Service(reply, reply) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        for query in ("How?", "When?"):
            client.send(query)
            client.flush(PATIENCE)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("ragcontract")] == [
        f"interactions are dropped: {why}"
    ]
    assert client.dropped == 2


def test_a_wrong_address_is_logged_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    for address, key in (("rag.example.com", "rc_key"), ("http://127.0.0.1:9", "rc_key\n")):
        client = InteractionClient(address, "docs", key)
        client.send("How?")
        client.flush(PATIENCE)
        assert client.dropped == 1
    assert "No scheme supplied" in caplog.text
    assert "InvalidHeader" in caplog.text
    assert "rc_key" not in caplog.text


def test_a_batch_that_is_too_large_is_sent_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CLIENT_BATCH", 4)
    away, too_large = Reply(status=503, headers={"Retry-After": "1"}), Reply(status=413)
    with Service(away, STORED, too_large, STORED) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        client.send("0")
        until(lambda: service.requests)  # while it pauses, the others become a batch
        for number in range(1, 5):
            client.send(f"{number}")
        client.flush(PATIENCE)
        sizes = [len(request.json["interactions"]) for request in service.requests]
        assert {item["query"] for item in sent(service)} == {f"{number}" for number in range(5)}
    assert sizes == [1, 1, 4, 2, 2]
    assert client.dropped == 0


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_a_value_that_is_no_json_harms_no_other_interaction(value: Any) -> None:
    with Service(Reply(status=503, headers={"Retry-After": "1"}), STORED) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        client.send("0")
        until(lambda: service.requests)  # while it pauses, the others become a batch
        for number in range(1, 8):
            client.send(f"{number}", confidence=value if number == 4 else 0.5)
        client.flush(PATIENCE)
        assert {item["query"] for item in sent(service)} == {*"0123567"}
    assert client.dropped == 1


def test_questions_do_not_follow_a_redirect() -> None:
    with Service(STORED) as elsewhere, Service(Reply(status=307, headers={"Location": elsewhere.url})) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        client.send("How?")
        client.flush(PATIENCE)
        assert (len(service.requests), len(elsewhere.requests)) == (1, 0)
    assert client.dropped == 1


def test_with_a_full_queue_the_application_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CLIENT_WAITING", 3)
    with Service(Reply(kind="hang")) as service:
        client = InteractionClient(service.url, "docs", "rc_key")
        client.send("at work")
        until(lambda: service.requests)
        for number in range(50):
            client.send(f"{number}")
        assert client.dropped == 50 - 3


def test_the_end_of_the_program_waits_for_what_is_unsent() -> None:
    program = "import sys\nfrom ragcontract.interaction_client import InteractionClient\n"
    program += "client = InteractionClient(sys.argv[1], 'docs', 'rc_key')\n"
    program += "for number in range(250):\n    client.send(f'{number}')\n"
    with Service(STORED) as service:
        subprocess.run([sys.executable, "-c", program, service.url], check=True, timeout=60)
        assert [item["query"] for item in sent(service)] == [f"{number}" for number in range(250)]


def test_a_fork_sends_too() -> None:
    program = "import os, sys\nfrom ragcontract.interaction_client import InteractionClient\n"
    program += "client = InteractionClient(sys.argv[1], 'docs', 'rc_key')\nclient.send('parent')\nclient.flush(20)\n"
    program += "if os.fork() == 0:\n    client.send('child')\n    client.flush(20)\n    os._exit(0)\nos.wait()\n"
    with Service(STORED) as service:
        subprocess.run([sys.executable, "-W", "ignore", "-c", program, service.url], check=True, timeout=60)
        assert [item["query"] for item in sent(service)] == ["parent", "child"]


def test_the_client_needs_neither_the_service_nor_many_lines() -> None:
    code = "import ragcontract.interaction_client, sys; print([name for name in sys.modules if 'ragcontract.' in name])"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert ast.literal_eval(loaded.strip()) == [
        "ragcontract.core",
        "ragcontract.core.bounds",
        "ragcontract.interaction_client",
    ]
    path = Path(interaction_client.__file__)
    docs = {
        line
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    with path.open("rb") as file:
        ignored = {
            tokenize.ENCODING,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.COMMENT,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        }
        lines = {token.start[0] for token in tokenize.tokenize(file.readline) if token.type not in ignored}
    assert len(lines - docs) <= LINES
