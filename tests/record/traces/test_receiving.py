"""A system with its spans: what a service does not answer comes from what it sends."""

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ragcontract.core.errors import InputError
from ragcontract.record.interface import CallFailed, Context, Response, Surroundings
from ragcontract.record.traces import span_receiver
from ragcontract.record.traces.receiving import ReceiverOptions, around
from ragcontract.record.traces.retrievals import Span
from tests.record.free_port import free_port
from tests.record.traces.sending import send
from tests.record.traces.spans import retriever, span
from tests.record.workplace import Toy

TRACE, ENTRY = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{ENTRY}-01"
ANSWERED = Response(response="30 days.")


def entry(number: int = 1, **fields: Any) -> Span:
    """Return the outermost span of a service."""
    return replace(span(number, **fields), parent=ENTRY)


WHOLE = [entry(), retriever(2, "doc1", parent=1)]


class Instrumented(Toy):
    """A service that sends batches of spans to a port, as it is answering."""

    def __init__(self, port: int, *batches: Sequence[Span], answer: Response = ANSWERED, trace: str = TRACE) -> None:
        super().__init__(lambda _query, _context: answer)
        self._port, self._batches, self._trace = port, batches, trace

    def ask(self, query: str, context: Context) -> Response:
        self.send_all()
        return super().ask(query, context)

    def send_all(self) -> None:
        for batch in self._batches:
            send(self._port, [replace(one, trace=self._trace) for one in batch])


class Late(Instrumented):
    """A service whose spans arrive after its answer."""

    def ask(self, query: str, context: Context) -> Response:
        threading.Timer(0.05, self.send_all).start()
        return Toy.ask(self, query, context)


def asked(
    *batches: Sequence[Span],
    answer: Response = ANSWERED,
    made: Callable[..., Instrumented] = Instrumented,
    trace: str = TRACE,
    **options: Any,
) -> Response:
    """Ask an instrumented service one question, and return what is recorded of it."""
    port = free_port()
    service = made(port, *batches, answer=answer, trace=trace)
    system = around(ReceiverOptions(listen=f"127.0.0.1:{port}", **options), service, Surroundings())
    system.setup()
    try:
        return system.ask("Why?", Context(query_id="q1", top=5, seconds=20, traceparent=PARENT))
    finally:
        system.teardown()
        assert service.calls == ["setup", "teardown"]


def doc_ids(found: Response) -> list[Any]:
    return [one["doc_id"] for one in found.results or ()]


def test_the_answer_stays_and_the_documents_are_the_spans() -> None:
    found = asked(WHOLE, answer=Response(response="30 days.", results=[{"doc_id": "from the service"}]))
    assert (found.response, doc_ids(found)) == ("30 days.", ["doc1"])


def test_spans_may_come_in_any_number_of_batches_before_the_answer_or_after_it() -> None:
    for made in (Instrumented, Late):
        assert doc_ids(asked([WHOLE[1]], [WHOLE[0]], made=made)) == ["doc1"]


def test_an_answer_that_the_service_does_not_give_is_the_spans() -> None:
    chain = span(2, "CHAIN", 1, attributes={"output.value": "14 days."})
    found = asked([*WHOLE, replace(chain, id="c")], answer=Response())
    assert found.response == "14 days."
    assert asked(WHOLE, answer=Response()).response is UNSET


def test_tool_calls_and_models_are_the_spans() -> None:
    tool = span(3, "TOOL", 1, attributes={"tool.name": "search", "input.value": "{}"})
    said = {"llm.output_messages.0.message.content": "30 days."}
    model = span(4, "LLM", 1, attributes={"llm.model_name": "m-7", **said})
    found = asked([*WHOLE, tool, model])
    assert (found.tool_calls, found.llm_model) == ([{"name": "search", "arguments": {}}], "m-7")
    own = Response(response="", tool_calls=[{"name": "mapped"}], llm_model="mapped")
    assert (asked(WHOLE, answer=own).tool_calls, asked(WHOLE, answer=own).llm_model) == ([{"name": "mapped"}], "mapped")
    assert asked(WHOLE, answer=replace(own, tool_calls=[])).tool_calls == []
    assert asked(WHOLE, answer=replace(own, tool_calls=None)).tool_calls is None


def test_a_tool_call_that_only_the_service_names_is_one_too() -> None:
    tool = span(3, "TOOL", 1, attributes={"tool.name": "search", "input.value": "{}"})
    own: list[dict[str, Any]] = [{"name": "search"}, {"function": {"name": "refund"}}, {"name": "search"}]
    found = asked([*WHOLE, tool], answer=Response(response="", tool_calls=own))
    assert found.tool_calls == [{"name": "search", "arguments": {}}, *own[1:]]


def test_waiting_for_spans_is_no_latency() -> None:
    found = asked(WHOLE, made=Late)
    assert found.latency_ms is not None
    assert asked(WHOLE, answer=Response(latency_ms=7)).latency_ms == 7


def test_no_spans_are_a_failure_that_says_where_to_send_them() -> None:
    with pytest.raises(CallFailed, match=r"set OTEL_EXPORTER_OTLP_ENDPOINT=http://127\.0\.0\.1:\d+") as raised:
        asked(wait="10ms")
    assert (raised.value.kind, raised.value.again) == ("no_spans", False)


def test_spans_of_other_traces_are_a_failure_that_says_so() -> None:
    with pytest.raises(CallFailed, match="2 of other traces did: the service must continue the trace"):
        asked(WHOLE, trace="f" * 32, wait="10ms")


def test_a_trace_without_a_retrieval_is_no_empty_one() -> None:
    with pytest.raises(CallFailed, match="1 spans arrived, such as POST / ask, but none of the retriever"):
        asked([entry(name="POST / ask")], wait="10ms")
    assert asked([entry()], wait="10ms", empty_results="accept").results == []
    own = Response(results=[{"doc_id": "own"}])
    assert doc_ids(asked([entry()], wait="10ms", answer=own)) == ["own"]


def test_spans_are_used_where_the_outermost_one_never_arrives() -> None:
    assert doc_ids(asked([WHOLE[1]], wait="10ms")) == ["doc1"]


def test_several_retrievals_end_the_recording_until_one_is_chosen() -> None:
    spans = [*WHOLE, retriever(3, "doc2", parent=1)]
    with pytest.raises(InputError, match="retrieved 2 times"):
        asked(spans)
    assert doc_ids(asked(spans, retrieved="last")) == ["doc2"]


def test_documents_without_an_id_fail_the_attempt() -> None:
    bare = span(2, "RETRIEVER", 1, attributes={"retrieval.documents.0.document.content": "text"})
    with pytest.raises(CallFailed, match="names no document"):
        asked([entry(), bare])
    assert doc_ids(asked([entry(), bare], doc_id="text")) == ["text"]


def test_a_failed_call_is_the_services() -> None:
    def fail(*_: Any) -> Response:
        raise CallFailed("http_error", "answered 500")

    system = around(ReceiverOptions(listen="127.0.0.1:1"), Toy(fail), Surroundings())
    with pytest.raises(CallFailed, match="answered 500"):
        system.ask("Why?", Context(query_id="q1", top=5, traceparent=PARENT))


def test_versions_and_facts_are_both() -> None:
    port = free_port()
    embedding = span(3, "EMBEDDING", 1, attributes={"embedding.model_name": "e5"})
    service = Instrumented(port, [*WHOLE, embedding])
    system = around(ReceiverOptions(listen=f"localhost:{port}"), service, Surroundings())
    system.setup()
    system.ask("Why?", Context(query_id="q1", top=5, seconds=20, traceparent=PARENT))
    system.teardown()
    assert system.versions() == {"embedding_model": "e5"}
    assert system.facts() == {"llm": {"model": "toy"}, "traces": {"spans": 3, "others": 0}}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"listen": "0.0.0.0:4318"}, "traces.listen: expected an address of this machine alone"),
        ({"listen": "192.168.0.7:4318"}, "traces.listen: expected an address of this machine alone"),
        ({"listen": "example.org:4318"}, "traces.listen: expected an address of this machine alone"),
        ({"listen": ":4318"}, "traces.listen: expected an address of this machine alone"),
        ({"listen": "127.0.0.1"}, "traces.listen: expected an address with a port"),
        ({"listen": "127.0.0.1:0"}, "traces.listen: expected an address with a port"),
        ({"listen": "127.0.0.1:70000"}, "traces.listen: expected an address with a port"),
        ({"wait": "soon"}, "traces.wait: expected up to 600 s"),
        ({"wait": -1}, "traces.wait: expected up to 600 s"),
        ({"wait": "601s"}, "traces.wait: expected up to 600 s"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, problem: str) -> None:
    with pytest.raises(InputError) as raised:
        around(ReceiverOptions(**options), Toy(), Surroundings())
    assert raised.value.problems[0].startswith(problem)


def test_everything_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as raised:
        around(ReceiverOptions(listen="all", wait="soon"), Toy(), Surroundings())
    assert len(raised.value.problems) == 2


@pytest.mark.parametrize("wait", ["0.5s", "500ms", 0.5, "0.5 s"])
def test_a_time_has_a_unit_or_is_in_seconds(wait: Any) -> None:
    assert around(ReceiverOptions(wait=wait), Toy(), Surroundings()).concurrency == 1


def test_without_opentelemetry_proto_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1", None)
    with pytest.raises(InputError, match=r"pip install 'rag-contract\[traces\]'"):
        span_receiver.ready()
