"""Every fault of a service: what it is called, whether the question is asked again, and after how long."""

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.net.pacing import Timing
from ragcontract.net.secrets import Secrets
from ragcontract.net.sending import HttpCall, shown
from ragcontract.record.adapters.service_client import ServiceClient, keys_in
from ragcontract.record.interface import CallFailed, Surroundings
from tests.net import service as stand_in
from tests.net.service import Reply, refused

TOKEN = "sk-standin-0123456789abcdef"
NOW = 1_800_000_000.0


def called(url: str, *, seconds: float = 20) -> Any:
    surroundings = Surroundings(secrets=Secrets({"KEY": TOKEN}))
    service = ServiceClient(url, trust_env="auto", surroundings=surroundings, timing=Timing(now=lambda: NOW))
    call = HttpCall(method="POST", url=f"{url}/ask?key={TOKEN}", headers={"Authorization": f"Bearer {TOKEN}"}, json={})
    try:
        return service.json(call, seconds)[0]
    finally:
        service.close()


def failure(*replies: Reply, seconds: float = 20) -> CallFailed:
    with stand_in.Service(*replies) as service, pytest.raises(CallFailed) as raised:
        called(service.url, seconds=seconds)
    assert len(service.requests) == 1, "an adapter makes one attempt"
    assert TOKEN not in f"{raised.value}{raised.value.detail}"
    return raised.value


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 501, 502, 503, 504, 599])
def test_what_may_be_different_next_time_is_asked_again(status: int) -> None:
    found = failure(Reply(status=status, content={"error": {"message": "busy"}}))
    assert (found.kind, found.again, found.pause) == ("http_error", True, None)
    assert str(found).endswith(f"/ask answered {status}: busy")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 413, 422, 304, 302])
def test_what_will_be_the_same_next_time_is_not(status: int) -> None:
    found = failure(Reply(status=status, headers={"Retry-After": "5"}, content=b"" if status == 304 else {}))
    assert (found.kind, found.again, found.pause) == ("http_error", False, None)


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": format_datetime(datetime.fromtimestamp(NOW + 9, UTC), usegmt=True)}, 9),
        ({"Retry-After": datetime.fromtimestamp(NOW + 9, UTC).isoformat()}, 9),
        ({"Retry-After": "1m30s"}, 90),
        ({"X-RateLimit-Reset-Tokens": "6m0s", "X-RateLimit-Reset-Requests": "1s"}, 360),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "NaN"}, None),
        ({"Retry-After": "-1"}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_pause_is_the_one_that_the_service_asks_for(
    status: int, headers: dict[str, str], pause: float | None
) -> None:
    assert failure(Reply(status=status, headers=headers)).pause == pause


@pytest.mark.parametrize(
    ("reply", "kind", "again"),
    [
        (Reply(kind="drop"), "connection_lost", True),
        (Reply(kind="reset"), "connection_lost", True),
        (Reply(kind="half"), "connection_lost", True),
        (Reply(content=b"<html>Sign in</html>"), "not_json", False),
        (Reply(content=b""), "not_json", False),
        (Reply(content=b'{"results": ['), "not_json", False),
        (Reply(content=b"[" * 200_000), "not_json", False),
        (Reply(content=b" " * 20_000_000), "too_large", False),
        (Reply(status=307, headers={"Location": "http://other.invalid/steal"}), "redirect", False),
    ],
)
def test_what_is_no_answer_is_named(reply: Reply, kind: str, *, again: bool) -> None:
    found = failure(reply)
    assert (found.kind, found.again, found.pause) == (kind, again, None)


@pytest.mark.parametrize("kind", ["hang", "drip headers", "drip body"])
def test_what_takes_too_long_is_given_up_and_not_asked_again(kind: Any) -> None:
    found = failure(Reply(kind=kind), seconds=0.2)
    assert (found.kind, found.again) == ("read_timeout", False)
    assert str(found).endswith("; --timeout allows more")


def test_a_refused_connection_may_be_there_next_time() -> None:
    with pytest.raises(CallFailed) as raised:
        called(refused())
    assert (raised.value.kind, raised.value.again, raised.value.detail) == ("unreachable", True, None)


def test_certificates_that_are_not_there_are_a_problem_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "none.pem")
    with pytest.raises(InputError, match=r"cannot be called from this machine: .*none\.pem"):
        called("https://127.0.0.1:1")


def test_without_time_nothing_is_sent() -> None:
    with stand_in.Service() as service, pytest.raises(CallFailed, match="over before this call") as raised:
        called(service.url, seconds=-1)
    assert (raised.value.kind, service.requests) == ("read_timeout", [])


def test_the_details_say_what_was_answered() -> None:
    html = failure(Reply(content="<p>sorrü</p>".encode()))
    assert str(html).endswith("/ask answered 200, but not with JSON: text/html")
    assert html.detail == {"status_code": 200, "content_type": "text/html", "response_snippet": "<p>sorrü</p>"}
    long = failure(Reply(status=500, content=b"x" * 9_999)).detail
    assert long is not None
    assert long["response_snippet"] == "x" * (bounds.SERVICE_SNIPPET - 1) + "…"


def test_no_echo_of_a_secret_is_passed_on() -> None:
    echo = {"error": f"bad key {TOKEN}", TOKEN: [TOKEN[:15]]}
    headers = {"Content-Type": f"text/{TOKEN}"}
    for reply in (Reply(status=401, content=echo), Reply(content=f"<p>{TOKEN}".encode(), headers=headers)):
        found = failure(reply)
        assert TOKEN[:12] not in f"{found}{found.detail}"
        assert "***" in str(found.detail)
    with stand_in.Service(Reply(content=echo)) as service:
        assert called(service.url) == {"error": "bad key ***", "***": ["***"]}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"error": "a"}, "a"), ({"error": {"message": "b"}}, "b"), ({"detail": "c"}, "c"), ({"message": "d\n"}, r"d\n"),
        ({"detail": [{"msg": "e"}]}, "Bad Request"), ([1], "Bad Request"), ({"error": {"error": {}}}, "Bad Request"),
    ],
)  # fmt: skip
def test_the_reason_is_found_in_the_usual_places(content: Any, reason: str) -> None:
    assert str(failure(Reply(status=400, content=content))).endswith(f"answered 400: {reason}")


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert shown("https://ann:pw@h:8/a/b?key=x#y") == "https://h:8/a/b"


@pytest.mark.parametrize(
    ("content", "shown"),
    [({"b": 1, "a\n": 2}, r"a\n, b"), ({}, "no keys"), ([], "no keys, because it is a list"), (7, "not an object")],
)
def test_keys_are_named(content: Any, shown: str) -> None:
    assert shown in keys_in(content)
