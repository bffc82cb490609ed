"""Limits on spans that are received and read."""

import contextlib
import json
import socket
import time
from pathlib import Path

from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.files.opening import no_progress
from ragcontract.files.problems import Collector
from ragcontract.record.interface import CallFailed, Surroundings
from ragcontract.record.traces.receiving import ReceiverOptions, SpanStore, around
from ragcontract.record.traces.span_receiver import Receiver
from ragcontract.record.traces.trace_files import read_spans
from tests.bounds.lab import Case, Cases, Lab
from tests.bounds.record_targets import longer_by
from tests.record.traces.spans import TRACE, otlp, span
from tests.record.workplace import Toy

BODY = json.dumps(otlp(span(1))).encode()
HEAD = "POST /v1/traces HTTP/1.1\r\nHost: any\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"


def answered(port: int, body: bytes, pause: float = 0) -> bytes:
    """Send a request whose body comes after a pause; returns the first line of the answer, nothing if it is closed."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(HEAD.format(len(body)).encode())
        time.sleep(pause)
        connection.sendall(body)
        with connection.makefile("rb") as answer:
            return answer.readline()
    return b""


def a_body(_: Lab, size: int) -> bool:
    receiver = Receiver("127.0.0.1", 0, lambda _spans: None)
    try:
        return b" 200 " in answered(receiver.port, BODY.ljust(size))
    finally:
        receiver.close()


def connections(_: Lab, count: int) -> bool:
    receiver = Receiver("127.0.0.1", 0, lambda _spans: None)
    try:
        with contextlib.ExitStack() as stack:
            for _number in range(count - 1):
                stack.enter_context(socket.create_connection(("127.0.0.1", receiver.port), timeout=20))
            return b" 200 " in answered(receiver.port, BODY)
    finally:
        receiver.close()


def late(_: Lab, seconds: float) -> bool:
    receiver = Receiver("127.0.0.1", 0, lambda _spans: None)
    try:
        return b" 200 " in answered(receiver.port, BODY, pause=seconds - bounds.TRACE_SECONDS)
    finally:
        receiver.close()


def spans_of_a_call(_: Lab, count: int) -> bool:
    store = SpanStore()
    store.expect(TRACE)
    store.add([span(number + 1) for number in range(count)])
    try:
        return len(store.wait(TRACE, 0, lambda _spans: True)) == count
    except CallFailed:
        return False


def waiting(_: Lab, seconds: float) -> bool:
    try:
        around(ReceiverOptions(wait=seconds), Toy(), Surroundings())
    except InputError:
        return False
    return True


def converted(lab: Lab, count: int) -> bool:
    Path("traces.jsonl").write_text(json.dumps(otlp(*[span(number + 1) for number in range(count)])))
    problems = Collector()
    found = list(read_spans([str(lab.folder / "traces.jsonl")], problems, no_progress))
    return len(found) == count and not problems.collected()


CASES: Cases = {
    "TRACE_BODY": Case(a_body, small=1_000),
    "TRACE_SPANS": Case(spans_of_a_call, small=5),
    "TRACE_CONNECTIONS": Case(connections, small=3),
    "TRACE_SECONDS": Case(late, small=1, past=longer_by(2)),
    "TRACE_WAIT": Case(waiting),
    "CONVERTED_SPANS": Case(converted, small=5),
}
