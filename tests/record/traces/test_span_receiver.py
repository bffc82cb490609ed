"""The receiver of spans: what exporters send is taken, and what is hostile is refused."""

import contextlib
import gzip
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.record.traces.retrievals import Span
from ragcontract.record.traces.span_receiver import Receiver
from tests.record.traces.spans import otlp, protobuf, span

SPANS = [span(1), span(2, "LLM", 1)]
JSON, PROTOBUF = "application/json", "application/x-protobuf"
BODY = json.dumps(otlp(*SPANS)).encode()


class Taken:
    """A receiver, and what it took."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.receiver = Receiver("127.0.0.1", 0, self.spans.extend)

    def post(
        self, body: Any, path: str = "/v1/traces", *, method: str = "POST", **headers: str
    ) -> tuple[int, str, bytes]:
        """Send a request; returns the status, the type and the body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.receiver.port, timeout=20)
        named = {"Content-Type": JSON} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, named, encode_chunked=named.get("Transfer-Encoding") == "chunked")
        answer = connection.getresponse()
        found = (answer.status, answer.headers["Content-Type"], answer.read())
        connection.close()
        return found

    def raw(self, data: bytes) -> bytes:
        """Send bytes and close the sending side; returns the first line of the answer."""
        with socket.create_connection(("127.0.0.1", self.receiver.port), timeout=20) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            with connection.makefile("rb") as answer:
                return answer.readline()


@pytest.fixture
def taken() -> Iterator[Taken]:
    made = Taken()
    yield made
    made.receiver.close()


@pytest.mark.parametrize(
    ("body", "headers", "answer"),
    [
        (BODY, {}, (200, JSON, b"{}")),
        (BODY, {"Content_Type": "application/json; charset=utf-8"}, (200, JSON, b"{}")),
        (protobuf(*SPANS), {"Content_Type": PROTOBUF}, (200, PROTOBUF, b"")),
        (gzip.compress(BODY), {"Content_Encoding": "gzip"}, (200, JSON, b"{}")),
        (gzip.compress(protobuf(*SPANS)), {"Content_Type": PROTOBUF, "Content_Encoding": "GZIP"}, (200, PROTOBUF, b"")),
        ([BODY[:100], BODY[100:]], {"Transfer_Encoding": "chunked"}, (200, JSON, b"{}")),
    ],
    ids=["JSON", "JSON with a charset", "protobuf", "JSON in gzip", "protobuf in gzip", "chunks"],
)
def test_spans_are_taken_in_every_form(
    body: Any, headers: Mapping[str, str], answer: tuple[int, str, bytes], taken: Taken
) -> None:
    assert taken.post(body, **headers) == answer
    assert taken.spans == SPANS


def test_a_connection_takes_several_requests(taken: Taken) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", taken.receiver.port, timeout=20)
    for _ in range(2):
        connection.request("POST", "/v1/traces", BODY, {"Content-Type": JSON})
        assert connection.getresponse().read() == b"{}"
    assert taken.spans == SPANS * 2
    connection.close()


@pytest.mark.parametrize(
    ("status", "body", "path", "headers"),
    [
        (404, BODY, "/v1/metrics", {}),
        (404, BODY, "/", {}),
        (415, BODY, "/v1/traces", {"Content_Type": "text/plain"}),
        (415, BODY, "/v1/traces", {"Content_Encoding": "br"}),
        (400, b"{", "/v1/traces", {}),
        (400, b"[" * 100_000, "/v1/traces", {}),
        (400, b"\xff\xff", "/v1/traces", {"Content_Type": PROTOBUF}),
        (400, b"no gzip", "/v1/traces", {"Content_Encoding": "gzip"}),
        (400, gzip.compress(BODY)[:-4], "/v1/traces", {"Content_Encoding": "gzip"}),
    ],
    ids=["metrics", "the root", "text", "brotli", "no JSON", "nested JSON", "no protobuf", "no gzip", "half of gzip"],
)
def test_what_is_not_understood_is_refused(
    status: int, body: bytes, path: str, headers: Mapping[str, str], taken: Taken
) -> None:
    assert taken.post(body, path, **headers)[0] == status
    assert taken.spans == []
    assert taken.post(BODY)[0] == 200


def test_only_posts_are_answered(taken: Taken) -> None:
    assert taken.post(None, method="GET")[0] == 501


def test_a_bomb_is_not_unpacked(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TRACE_BODY", 10_000)
    assert taken.post(gzip.compress(b" " * 10_001), Content_Encoding="gzip")[0] == 413


HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: any\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"\r\n", b"411"),
        (b"Content-Length: -1\r\n\r\n", b"411"),
        (b"Content-Length: 9999999999999999999999\r\n\r\n", b"413"),
        (b"Content-Length: 10\r\n\r\n{", b"408"),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"Transfer-Encoding: chunked\r\n\r\n-1\r\n", b"413"),
        (b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", b"413"),
        (b"Transfer-Encoding: chunked\r\n\r\n9\r\n{", b"408"),
    ],
)
def test_sizes_that_are_none_are_refused(head: bytes, status: bytes, taken: Taken) -> None:
    assert status in taken.raw(HEAD + head)


def test_a_body_that_does_not_arrive_is_given_up(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TRACE_SECONDS", 0.05)
    with socket.create_connection(("127.0.0.1", taken.receiver.port), timeout=20) as connection:
        connection.sendall(HEAD + b"Content-Length: 10\r\n\r\n{")
        assert connection.recv(100) == b""  # closed, without an answer


def test_a_port_that_is_taken_is_an_input_error(taken: Taken) -> None:
    with pytest.raises(InputError, match=r"traces.listen: cannot listen on 127\.0\.0\.1:\d+"):
        Receiver("127.0.0.1", taken.receiver.port, print)


def test_a_body_that_drips_is_given_up(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "TRACE_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", taken.receiver.port), timeout=0.02) as connection:
        connection.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        answer = b""
        for _ in range(1_000):
            connection.sendall(b" ")
            with contextlib.suppress(TimeoutError):
                answer = connection.recv(100)
                break
    assert b" 408 " in answer
