"""The page on recording: its file about traces does what the page says."""

import json
import re
import threading
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from ragcontract.record.traces.receiving import ReceiverOptions
from scripts.docs import block
from tests.builders import golden, write_jsonl
from tests.net.service import Reply, Request, Service
from tests.process import rag_contract
from tests.record.free_port import free_port
from tests.record.traces.sending import send
from tests.record.traces.spans import retriever, span
from tests.runner import ROOT

PAGE = (ROOT / "docs" / "guides" / "record.md").read_text()


class Instrumented(Service):
    """A service that sends spans of the trace that it is asked in, after it has answered."""

    def __init__(self, spans_to: int) -> None:
        super().__init__(Reply(content={"answer": "30 days."}))
        self._spans_to = spans_to

    def next_reply(self, request: Request) -> Reply:
        trace, entry = request.headers["traceparent"].split("-")[1:3]
        spans = [replace(span(1, name="POST /ask"), parent=entry), retriever(2, "doc_refunds", parent=1)]
        sent = [replace(one, trace=trace) for one in spans]
        threading.Timer(0.02, send, [self._spans_to, sent]).start()
        return super().next_reply(request)


@pytest.mark.parametrize("instrumented", [True, False])
def test_an_instrumented_service_is_recorded_as_it_is(
    instrumented: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "golden.jsonl", [golden("q1"), golden("q2")])
    target = yaml.safe_load(block(PAGE, "traced.yml"))
    listen = free_port()
    target["traces"]["listen"] = f"127.0.0.1:{listen}"
    with Instrumented(listen) if instrumented else Service(Reply(content={"answer": "30 days."})) as service:
        target["http"]["url"] = service.url
        if not instrumented:
            target["traces"]["wait"] = "10ms"
        Path("traced.yml").write_text(json.dumps(target))
        ended = rag_contract("record", "traced.yml")
    if not instrumented:
        assert (ended.code, Path("current_run.jsonl").exists()) == (2, False)
        assert f"set OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{listen}" in ended.err
        return
    assert ended.code == 0, ended.err
    rows = [json.loads(line) for line in Path("current_run.jsonl").read_text().splitlines()]
    assert [[one["doc_id"] for one in row["results"]] for row in rows] == [["doc_refunds"]] * 2
    assert [row["response"] for row in rows] == ["30 days."] * 2


def test_the_file_says_all_options_and_their_defaults() -> None:
    shown = re.sub(r"^  # ", "  ", block(PAGE, "traced.yml"), flags=re.MULTILINE)
    found = yaml.safe_load(shown)["traces"]
    assert set(found) == set(ReceiverOptions.__struct_fields__)
    assert (found["listen"], found["wait"]) == (ReceiverOptions().listen, ReceiverOptions().wait)
