"""Receive spans from OpenTelemetry's exporters over HTTP, from this machine only.

The protocol is OTLP/HTTP of opentelemetry-proto: protobuf, which is the default of exporters, or JSON, maybe in gzip,
to ``/v1/traces``. Protobuf needs the extra ``traces``.
"""

import sys
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, socket
from socketserver import TCPServer
from time import monotonic
from typing import Any

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.numbers import mebibytes
from ragcontract.record.traces import trace_files
from ragcontract.record.traces.retrievals import Span, SpanError
from ragcontract.record.traces.trace_files import FAILED


def ready() -> None:
    """Import the decoder of protobuf; raises InputError if it is not installed."""
    try:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2  # noqa: F401
    except ModuleNotFoundError as error:
        missing = "traces: decoding them needs opentelemetry-proto: pip install 'rag-contract[traces]'"
        raise InputError([missing]) from error


def spans_of(data: bytes) -> list[Span]:
    """Return the spans in a request as protobuf; raises SpanError if it cannot be read."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
    except (DecodeError, RecursionError) as error:
        raise SpanError(f"is not OTLP as protobuf ({error})") from error
    scopes = [scope for resource in request.resource_spans for scope in resource.scope_spans]
    return [_span(span) for scope in scopes for span in scope.spans]


def _span(span: Any) -> Span:
    if not span.trace_id or not span.span_id:
        raise SpanError("has a span without trace_id or span_id")
    return Span(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        error=(span.status.message or "it failed") if span.status.code == FAILED else None,
        dropped=span.dropped_attributes_count,
        attributes={pair.key: _plain(pair.value) for pair in span.attributes},
    )


def _plain(value: Any) -> Any:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value":
            return [_plain(item) for item in value.array_value.values]
        case "kvlist_value":
            return {pair.key: _plain(pair.value) for pair in value.kvlist_value.values}
        case "bytes_value":
            return value.bytes_value.hex()
        case name:
            return getattr(value, name)


PATH = "/v1/traces"
POLL = 0.05  # s; the time that closing may take
GZIP = 31  # zlib's number for data with gzip's header
READERS = {"application/json": trace_files.spans_of, "application/x-protobuf": spans_of}


class Receiver:
    """A server on loopback that passes on the spans that it receives."""

    def __init__(self, host: str, port: int, take: Callable[[list[Span]], object]) -> None:
        """Listen, and call ``take`` with spans, from several threads; raises InputError if it cannot listen."""
        try:
            self._server = _Server(host, port, take)
        except OSError as error:
            why = f"cannot listen on {host}:{port} ({error.strerror or error}); name another port"
            raise InputError([f"traces.listen: {why}"]) from error
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(POLL,), name="receiving", daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128  # exporters of many workers may connect at the same time
    allow_reuse_address = sys.platform != "win32"  # there, two servers could listen on one port

    def __init__(self, host: str, port: int, take: Callable[[list[Span]], object]) -> None:
        self.address_family = AF_INET6 if ip_address(host).version == 6 else AF_INET  # noqa: PLR2004
        self.take = take
        self._room = threading.BoundedSemaphore(bounds.TRACE_CONNECTIONS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # without asking for the name of the address, which may take long

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """Log nothing: clients that go away or send nonsense do not concern the recording."""


class _Refused(Exception):  # noqa: N818
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        self.request.settimeout(bounds.TRACE_SECONDS)
        super().setup()

    def do_POST(self) -> None:
        try:
            kind = self._kind()
            self.server.take(READERS[kind](self._body()))
        except SpanError as error:
            self._answer(400, "text/plain", str(error).encode(errors="replace"))
        except _Refused as refused:
            self.close_connection = True  # there may be more of the body
            self._answer(refused.status, "text/plain", str(refused).encode(errors="replace"))
        else:
            self._answer(200, kind, b"{}" if kind == "application/json" else b"")

    def _kind(self) -> str:
        if self.path.partition("?")[0].rstrip("/") != PATH:
            raise _Refused(404, f"spans are taken at {PATH}")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind not in READERS:
            raise _Refused(415, f"expected {' or '.join(READERS)}")
        return kind

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _body(self) -> bytes:
        until = monotonic() + bounds.TRACE_SECONDS
        if self.headers.get("Transfer-Encoding", "").strip().lower() == "chunked":
            data = self._chunks(until)
        else:
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdecimal()):
                raise _Refused(411, "expected a Content-Length, or chunks")
            data = self._read(_size(length, 10), until)
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in {"identity", "gzip"}:
            raise _Refused(415, "expected gzip, or no Content-Encoding")
        return _unpacked(data) if encoding == "gzip" else data

    def _chunks(self, until: float) -> bytes:
        data = bytearray()
        while size := _size(self.rfile.readline(bounds.NAME).split(b";")[0].strip().decode("latin-1"), 16):
            if len(data) + size > bounds.TRACE_BODY:
                raise _too_large()
            data += self._read(size, until)
            self.rfile.readline(bounds.NAME)
        self.rfile.readline(bounds.NAME)
        return bytes(data)

    def _read(self, size: int, until: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self.rfile.read1(min(size - len(data), 1 << 16))
            if not part or monotonic() > until:
                raise _Refused(408, "the body did not arrive")
            data += part
        return bytes(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def _size(digits: str, base: int) -> int:
    try:
        size = int(digits[:20], base)
    except ValueError as error:
        raise _Refused(400, "expected a size") from error
    if not 0 <= size <= bounds.TRACE_BODY:
        raise _too_large()
    return size


def _too_large() -> _Refused:
    return _Refused(413, f"the body is larger than {mebibytes(bounds.TRACE_BODY)}")


def _unpacked(data: bytes) -> bytes:
    unpacking = zlib.decompressobj(GZIP)
    try:
        unpacked = unpacking.decompress(data, bounds.TRACE_BODY + 1)
    except zlib.error as error:
        raise _Refused(400, f"is not gzip ({error})") from error
    if len(unpacked) > bounds.TRACE_BODY:
        raise _too_large()
    if not unpacking.eof:
        raise _Refused(400, "is half a gzip")
    return unpacked
