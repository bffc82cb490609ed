"""One call: how long it may take, how much it may bring, and where it goes."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from ragcontract.core import bounds
from ragcontract.net.sending import HttpAnswer, HttpCall, Unanswered, send
from ragcontract.net.sessions import open_session
from tests.net.service import Reply, Service, refused


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with open_session("http://127.0.0.1") as found:
        yield found


def sent(session: requests.Session, url: str, *, seconds: float = 20, redirects: int = 0, **call: Any) -> HttpAnswer:
    found = HttpCall(**{"method": "GET", "url": url} | call)
    return send(session, found, seconds=seconds, connect_seconds=5, redirects=redirects)


def fails(session: requests.Session, url: str, **more: Any) -> Unanswered:
    with pytest.raises(Unanswered) as raised:
        sent(session, url, **more)
    return raised.value


@pytest.mark.parametrize("status", [200, 204, 302, 400, 429, 500])
def test_an_answer_of_any_status_is_one(session: requests.Session, status: int) -> None:
    with Service(Reply(status=status, content=b"" if status == 204 else b"x", headers={"X-Y": "z"})) as service:
        answered = sent(session, service.url)
    assert (answered.status, answered.headers["x-y"]) == (status, "z")
    assert answered.content == (b"" if status == 204 else b"x")


def test_a_body_and_a_query_are_sent(session: requests.Session) -> None:
    with Service() as service:
        sent(session, f"{service.url}/a", method="POST", json={"q": "ü"}, query={"n": "a b&c"})
        sent(session, f"{service.url}/a", method="POST", form={"q": "ü", "r": ["1", "2"]})
    first, second = service.requests
    assert (first.method, first.path, first.json, first.query) == ("POST", "/a", {"q": "ü"}, [("n", "a b&c")])
    assert first.headers["content-type"] == "application/json"
    assert second.body == b"q=%C3%BC&r=1&r=2"


@pytest.mark.parametrize("kind", ["hang", "drip headers", "drip body"])
def test_a_server_that_does_not_end_its_answer_is_left(session: requests.Session, kind: Any) -> None:
    with Service(Reply(kind=kind), Reply()) as service:
        error = fails(session, service.url, seconds=0.3)
        assert (error.kind, error.unsent) == ("read_timeout", False)
        assert sent(session, service.url).status == 200


@pytest.mark.parametrize("kind", ["drop", "reset", "half"])
def test_a_connection_that_ends_early_was_lost(session: requests.Session, kind: Any) -> None:
    with Service(Reply(kind=kind)) as service:
        error = fails(session, service.url)
    assert (error.kind, error.unsent) == ("connection_lost", False)


def test_a_connection_that_was_refused_sent_nothing(session: requests.Session) -> None:
    error = fails(session, refused())
    assert (error.kind, error.unsent, error.name) == ("unreachable", True, "ConnectionError")


def test_a_host_that_does_not_exist_is_unreachable(session: requests.Session) -> None:
    assert fails(session, "http://no-such-host.invalid").kind == "unreachable"


def test_what_does_not_speak_tls_is_no_https(session: requests.Session) -> None:
    with Service() as service:
        assert fails(session, service.url.replace("http:", "https:")).kind == "tls_error"


@pytest.mark.parametrize("url", ["http://", "http://a:b", "http://[", "nothing", "http://a..b.invalid", "ftp://h"])
def test_an_address_that_is_none_is_an_error_like_others(session: requests.Session, url: str) -> None:
    assert fails(session, url).kind == "bad_request"


def test_a_header_with_a_line_break_is_not_sent(session: requests.Session) -> None:
    with Service() as service:
        error = fails(session, service.url, headers={"X": "secret-value\r\nY: 1"})
    assert (error.kind, service.requests) == ("bad_request", [])
    assert "secret" not in str(error)


def test_an_answer_in_a_wrong_compression_is_none(session: requests.Session) -> None:
    with Service(Reply(content=b"no gzip", headers={"Content-Encoding": "gzip"})) as service:
        assert fails(session, service.url).kind == "bad_encoding"


def test_an_answer_that_is_large_once_unpacked_is_too_large(session: requests.Session) -> None:
    packed = gzip.compress(b" " * (bounds.HTTP_ANSWER + 1))
    with Service(Reply(content=packed, headers={"Content-Encoding": "gzip"})) as service:
        assert fails(session, service.url).kind == "too_large"


def test_an_answer_of_20_mb_is_too_large(session: requests.Session) -> None:
    with Service(Reply(content=b" " * 20_000_000), Reply()) as service:
        error = fails(session, service.url)
        assert (error.kind, str(error)) == ("too_large", "the answer is larger than 16 MiB")
        assert sent(session, service.url).status == 200


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"), (308, "POST", "POST"),
        (301, "GET", "GET"), (302, "GET", "GET"),
    ],
)  # fmt: skip
def test_a_redirect_within_the_host_is_followed(
    session: requests.Session, status: int, method: str, after: str
) -> None:
    there = Reply(content={"there": True})
    with Service(Reply(status=status, headers={"Location": "/there?x=1"}), at={"/there": there}) as service:
        headers = {"Authorization": "Bearer x"}
        answered = sent(session, service.url, method=method, json={"q": 1}, headers=headers, redirects=1)
    assert answered.content == b'{"there": true}'
    second = service.requests[1]
    assert (second.method, second.query, second.headers["authorization"]) == (after, [("x", "1")], "Bearer x")
    assert (second.body != b"") == (after == method)


@pytest.mark.parametrize("location", ["{other}/steal", "//{host}/steal", "https://127.0.0.1/", "http://[", "file:///x"])
def test_a_redirect_to_another_host_is_not_followed(session: requests.Session, location: str) -> None:
    with Service() as other:
        at = location.format(other=other.url, host=other.url.removeprefix("http://"))
        with Service(Reply(status=307, headers={"Location": at})) as service:
            error = fails(session, service.url, redirects=5)
        assert other.requests == []
    assert error.kind == "redirect"
    assert "another host" in str(error)


def test_a_redirect_with_a_large_body_is_too_large(session: requests.Session) -> None:
    with Service(Reply(status=302, headers={"Location": "/there"}, content=b" " * 20_000_000)) as service:
        assert fails(session, service.url, redirects=1).kind == "too_large"


def test_redirects_without_end_end(session: requests.Session) -> None:
    with Service(Reply(status=302, headers={"Location": "/again"})) as service:
        assert sent(session, service.url, redirects=2).status == 302
    assert len(service.requests) == 3


def test_cookies_do_not_carry_anything_from_one_call_to_the_next(session: requests.Session) -> None:
    with Service(Reply(headers={"Set-Cookie": "session=1"})) as service:
        sent(session, service.url)
        sent(session, service.url)
    assert "cookie" not in service.requests[1].headers


def test_a_connection_is_used_again_and_the_deadline_of_an_earlier_call_does_not_end_it(
    session: requests.Session,
) -> None:
    with Service() as service:
        sent(session, service.url, seconds=0.2)
        service.stop.wait(0.3)
        sent(session, service.url)
    assert len(service.ports) == 1


def test_no_time_limit_is_one_too(session: requests.Session) -> None:
    with Service() as service:
        assert sent(session, service.url, seconds=float("inf")).status == 200
