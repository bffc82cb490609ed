"""Sends spans to a receiver, as an exporter does."""

import http.client
import json
from collections.abc import Sequence

from ragcontract.record.traces.retrievals import Span
from tests.record.traces.spans import otlp


def send(port: int, spans: Sequence[Span]) -> None:
    """Send spans to a port of this machine, as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("POST", "/v1/traces", json.dumps(otlp(*spans)), {"Content-Type": "application/json"})
    assert connection.getresponse().read() == b"{}"
    connection.close()
