"""Complete a system's responses from the spans that it sends: its documents, its tool calls, its model.

Each call has its own trace: the system continues the one in the ``traceparent`` that it gets with the question. Spans
are kept while their call is under way.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import ip_address
from time import monotonic, perf_counter
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct
from msgspec.structs import replace

from ragcontract.answers.metric_options import telling
from ragcontract.answers.tool_calls import written
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.safe_text import shorten, visible
from ragcontract.record.interface import CallFailed, Context, Json, Response, Surroundings, System, Wrapping
from ragcontract.record.returned.result_forms import DocumentIds, Retrieved
from ragcontract.record.traces import span_receiver
from ragcontract.record.traces.retrievals import SEVERAL, Reading, Span, SpanError, Use
from ragcontract.record.traces.span_receiver import Receiver
from ragcontract.record.traces.trace_response import embedding_model, response_of_trace, trace_of

UNITS = {"": 1.0, "s": 1.0, "ms": 0.001}


class ReceiverOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where spans are received, and how they are read."""

    listen: Annotated[str, Meta(description="The address on this machine to which the system sends its spans.")] = (
        "127.0.0.1:4318"
    )
    wait: Annotated[
        str | int | float, Meta(description="How long spans are waited for after an answer: `5s`, `500ms`, seconds.")
    ] = "5s"
    use: Annotated[
        Use | None, Meta(description="Whose ranking counts where there are both; by default, the reranker's.")
    ] = None
    retrieved: Annotated[
        Retrieved | None, Meta(description="Which retrieval counts where there are several for one question.")
    ] = None
    empty_results: Annotated[
        Literal["error", "accept"], Meta(description="What a trace without documents means: an error, or none found.")
    ] = "error"
    doc_id: Annotated[
        str | None, Meta(description="A JMESPath expression over `id`, `metadata` and `text` of a document.")
    ] = None


OPTIONS = ReceiverOptions


def around(options: ReceiverOptions, system: System, surroundings: Surroundings) -> System:
    """Return a system that also receives the spans of ``system``; raises InputError if the options are wrong."""
    span_receiver.ready()
    address, seconds = _address(options.listen), _seconds(options.wait)
    problems = [f"traces.{problem}" for problem in (address, seconds) if isinstance(problem, str)]
    if isinstance(address, str) or isinstance(seconds, str):
        raise InputError(problems)
    reading = Reading(
        ids=DocumentIds(surroundings.doc_id or options.doc_id),
        use=options.use,
        retrieved=options.retrieved,
        accept_empty=options.empty_results == "accept",
    )
    return Traced(system, reading, address, seconds)


class Traced(Wrapping):
    """A system whose spans are received."""

    def __init__(self, system: System, reading: Reading, address: tuple[str, int], seconds: float) -> None:
        """Store the system; ``seconds`` is how long spans are waited for after an answer."""
        super().__init__(system)
        self._reading = reading
        self._address = address
        self._seconds = seconds
        self._store = SpanStore()
        self._receiver: Receiver | None = None
        self._embedding_models: set[str] = set()

    def setup(self) -> None:
        """Listen, then set the system up, which may send spans at once."""
        self._receiver = Receiver(*self._address, self._store.add)
        super().setup()

    def ask(self, query: str, context: Context) -> Response:
        """Ask the system, wait for the spans of the call, and return the response with what they say."""
        trace, entry = context.traceparent.split("-")[1:3]
        self._store.expect(trace)
        try:
            started = perf_counter()
            response = super().ask(query, context)
            took = perf_counter() - started
            seconds = max(0.0, min(self._seconds, context.seconds - took))
            spans = self._store.wait(trace, seconds, lambda spans: self._is_whole(spans, entry))
        finally:
            self._store.forget(trace)
        if not spans:
            raise self._nothing(seconds)
        ms = took * 1000 if response.latency_ms is None else response.latency_ms
        return replace(self._merged(response, spans), latency_ms=ms)

    def _is_whole(self, spans: list[Span], entry: str) -> bool:
        """Return whether all spans have arrived: the outermost span ends last, and retrievals end before it."""
        known = {span.id for span in spans} | {entry}
        if not any(span.parent == entry for span in spans) or any(span.parent not in known for span in spans):
            return False
        try:
            return response_of_trace(trace_of(spans), self._reading).results is not None
        except (CallFailed, SpanError):
            return True  # the error is raised when the trace is read again

    def _merged(self, response: Response, spans: list[Span]) -> Response:
        trace = trace_of(spans)
        try:
            heard = response_of_trace(trace, self._reading)
        except SpanError as error:
            raise CallFailed("too_large", str(error)) from error
        except CallFailed as failed:
            if failed.kind == SEVERAL:  # so it will be for other questions
                raise InputError([str(failed)]) from failed
            raise
        results = response.results if heard.results is None else heard.results
        if results is None and self._reading.accept_empty:
            results = []
        if results is None:
            names = ", ".join(dict.fromkeys(shorten(visible(span.name), bounds.NAME) for span in spans[: bounds.NAMES]))
            why = "none of the retriever: instrument what retrieves, or say `empty_results: accept` under `traces`"
            raise CallFailed("no_documents", f"{len(spans)} spans arrived, such as {names}, but {why}")
        if (model := embedding_model(trace)) is not None and len(self._embedding_models) <= 1:
            self._embedding_models.add(model)
        return replace(
            response,
            results=results,
            response=heard.response if response.response is UNSET else response.response,
            tool_calls=_calls(heard.tool_calls, response.tool_calls),
            finish_reason=telling((response.finish_reason, heard.finish_reason)),
            llm_model=heard.llm_model or response.llm_model,
        )

    def _nothing(self, seconds: float) -> CallFailed:
        host, port = self._address
        name = f"[{host}]" if ":" in host else host
        if others := self._store.others:
            why = f"{others:,} of other traces did: the service must continue the trace of the traceparent that it gets"
        else:
            why = f"set OTEL_EXPORTER_OTLP_ENDPOINT=http://{name}:{port} where the service runs"
        return CallFailed("no_spans", f"no spans of the call arrived within {seconds:.3g} s after its answer; {why}")

    def versions(self) -> Mapping[str, str]:
        models = self._embedding_models
        named = {"embedding_model": next(iter(models))} if len(models) == 1 else {}
        return {**named, **super().versions()}

    def facts(self) -> Mapping[str, Any]:
        return {**super().facts(), "traces": {"spans": self._store.expected, "others": self._store.others}}

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if self._receiver is not None:
                self._receiver.close()


def _address(text: str) -> tuple[str, int] | str:
    """Return the host and the port in ``127.0.0.1:4318``, or what is wrong with them."""
    host, _, port = text.rpartition(":")
    host = {"localhost": "127.0.0.1"}.get(host, host.removeprefix("[").removesuffix("]"))
    shown = shorten(text, bounds.NAME)
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) < 1 << 16:
        return f"listen: expected an address with a port, such as 127.0.0.1:4318, found {shown!r}"
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        return f"listen: expected an address of this machine alone, as 127.0.0.1:4318 or [::1]:4318, found {shown!r}"
    return host, int(port)


def _seconds(wait: str | float) -> float | str:
    """Return the seconds in ``5s``, or what is wrong with them."""
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(ms|s|)", str(wait))
    seconds = float(match[1]) * UNITS[match[2]] if match else -1
    if not 0 <= seconds <= bounds.TRACE_WAIT:
        return f"wait: expected up to {bounds.TRACE_WAIT} s, such as 5s or 500ms, found {wait!r}"
    return seconds


def _calls(heard: Sequence[Json] | None, own: Sequence[Json] | None) -> Sequence[Json] | None:
    """Return the calls in the spans, then those that only the system reports; None if neither reports calls."""
    if heard is None or own is None:
        return own if heard is None else heard
    left = Counter(call["name"] for call in heard)
    left.subtract(Counter(names := [_name(call) for call in own]))
    unheard = []
    for call, name in zip(reversed(own), reversed(names), strict=True):
        if left[name] < 0:
            left[name] += 1
            unheard.append(call)
    return [*heard, *reversed(unheard)]


def _name(call: Json) -> str:
    name, _ = written(call)
    return name if isinstance(name, str) else ""


class SpanStore:
    """Keeps the spans of expected traces, and counts all others."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._spans: dict[str, list[Span]] = {}
        self.expected = self.others = 0  # spans of calls under way, and other ones

    def expect(self, trace: str) -> None:
        """Keep the spans of a trace from now on."""
        with self._changed:
            self._spans[trace] = []

    def forget(self, trace: str) -> None:
        """Drop the spans of a trace, also those that arrive later."""
        with self._changed:
            self._spans.pop(trace, None)

    def add(self, spans: Iterable[Span]) -> None:
        """Keep expected spans. Of those beyond the limit of a trace, one is kept to show that there were more."""
        with self._changed:
            for span in spans:
                kept = self._spans.get(span.trace)
                if kept is None:
                    self.others += 1
                else:
                    self.expected += 1
                    if len(kept) <= bounds.TRACE_SPANS:
                        kept.append(span)
            self._changed.notify_all()

    def wait(self, trace: str, seconds: float, enough: Callable[[list[Span]], bool]) -> list[Span]:
        """Return the spans of a trace once they are ``enough``, or those that have arrived after ``seconds``.

        Raises CallFailed if there are too many.
        """
        until = monotonic() + seconds
        seen = 0
        while True:
            with self._changed:
                while len(self._spans[trace]) == seen and (left := until - monotonic()) > 0:
                    self._changed.wait(left)
                spans = list(self._spans[trace])
            if len(spans) > bounds.TRACE_SPANS:
                raise CallFailed("too_large", f"the call made more than {bounds.TRACE_SPANS:,} spans")
            if len(spans) == seen or enough(spans):
                return spans
            seen = len(spans)
