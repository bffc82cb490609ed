"""A server on this machine that answers, or fails to, as a script says."""

import json
import socket
import struct
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Literal
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from tests.local_server import LocalServer, QuietHandler, QuietServer

Kind = Literal["answer", "drop", "reset", "half", "hang", "drip headers", "drip body"]


class Reply(Struct, frozen=True, kw_only=True):
    """What the server does with a request; ``content`` is JSON unless it is bytes."""

    kind: Kind = "answer"
    status: int = 200
    headers: Mapping[str, str] = {}
    content: Any = {}


class Request(Struct, frozen=True, kw_only=True):
    """A request as it came; ``headers`` have names in lower case."""

    method: str
    path: str
    query: list[tuple[str, str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Service(LocalServer):
    """Use it as a context manager; the last of ``replies`` is given again and again."""

    def __init__(self, *replies: Reply, at: Mapping[str, Reply] | None = None) -> None:
        """Answer with replies in turn; a path in ``at`` has one of its own."""
        self.replies = list(replies) or [Reply()]
        self.at = dict(at or {})
        self.requests: list[Request] = []
        self.ports: set[int] = set()  # of the other side: one a connection
        self._given = 0
        self._lock = threading.Lock()
        super().__init__(self._handler(), _Server)

    @property
    def url(self) -> str:
        return self.origin

    def next_reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            if request.path in self.at:
                return self.at[request.path]
            self._given += 1
            return self.replies[min(self._given, len(self.replies)) - 1]

    def _handler(self) -> type[BaseHTTPRequestHandler]:  # noqa: C901 (one small method a kind of reply)
        service = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                parts = urlsplit(self.path)
                service.ports.add(self.client_address[1])
                request = Request(
                    method=self.command,
                    path=parts.path,
                    query=parse_qsl(parts.query),
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
                )
                self.reply(service.next_reply(request))

            def reply(self, reply: Reply) -> None:
                if reply.kind == "answer":
                    self.whole(reply)
                    return
                self.close_connection = True
                if reply.kind == "half":
                    self.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n{"results": [')
                elif reply.kind == "hang":
                    service.stop.wait(30)
                elif reply.kind == "drip headers":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                    self.drip(b"X-Slow: 1\r\n")
                elif reply.kind == "drip body":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n")
                    self.drip(b" ")
                elif reply.kind == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

            def drip(self, data: bytes) -> None:
                for _ in range(1000):
                    if service.stop.wait(0.03):
                        break
                    self.wfile.write(data)

            def whole(self, reply: Reply) -> None:
                plain = isinstance(reply.content, bytes)
                data = reply.content if plain else json.dumps(reply.content).encode()
                kind = "text/html" if plain else "application/json"
                self.send_response(reply.status)
                for name, value in {"Content-Type": kind, "Content-Length": str(len(data)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = handle_any  # noqa: N815 (http.server's names)

        return Handler


class _Server(QuietServer):
    request_queue_size = 128

    def shutdown_request(self, request: Any) -> None:
        """Close without saying so where the script wants a reset."""
        if request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER):
            request.close()
        else:
            super().shutdown_request(request)


def refused() -> str:
    """Return an address at which nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"
