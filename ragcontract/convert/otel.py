"""Convert traces of OpenTelemetry and OpenInference to a run: what an application did for each golden query."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from ragcontract.convert import native
from ragcontract.convert.collection import Collection, First, Format, Ranking, Retrieved, Source, golden_of
from ragcontract.core import bounds
from ragcontract.core.errors import InputError
from ragcontract.core.ids import as_id, some
from ragcontract.core.phrase import Location
from ragcontract.core.safe_text import shorten
from ragcontract.files.problems import Collector
from ragcontract.files.schema import shown
from ragcontract.record.interface import CallFailed, Response
from ragcontract.record.returned.result_forms import DocumentIds
from ragcontract.record.traces.retrievals import Reading, Span, SpanError
from ragcontract.record.traces.trace_files import read_spans
from ragcontract.record.traces.trace_response import (
    QUERY_ID,
    Trace,
    embedding_model,
    query_id_of,
    questions_of,
    response_of_trace,
    trace_of,
)
from ragcontract.runs.run_writer import RowEncoder

# The fields that a row takes from a response, beside the results.
FIELDS = ("response", "error", "finish_reason", "tool_calls", "llm_model")


def read(source: Source) -> Collection:
    """Read traces; the options are those of :class:`Reading`."""
    if not source.files["golden"]:
        raise InputError(["--traces needs --golden, to know which trace belongs to which query"])
    option = source.options.get
    reading = Reading(ids=DocumentIds(option("doc_id")), use=option("use"), retrieved=option("retrieved"))
    golden, problems = golden_of(source), source.problems
    traces: dict[str, list[Span]] = {}
    locations: dict[str, Location] = {}
    for location, span in read_spans(source.files["traces"], problems, source.progress):
        locations.setdefault(span.trace, location)
        traces.setdefault(span.trace, []).append(span)
    rows = _Rows({query.id: query.query for query in golden.queries.values()}, reading, problems)
    for name, spans in traces.items():
        rows.add(trace_of(spans), locations[name])
    if not problems.collected():
        rows.conclude()
    queries = {query.id: native.as_graded(query) for query in golden.queries.values()}
    return Collection(queries=queries, rankings=rows.rankings)


class _Rows:
    """Collects the rows of the traces that belong to a golden query."""

    def __init__(self, texts: Mapping[str, str], reading: Reading, problems: Collector) -> None:
        self.rankings: dict[str, Ranking] = {}
        self._texts = texts
        self._by_text: dict[str, list[str]] = {}
        for query_id, text in texts.items():
            self._by_text.setdefault(text.strip(), []).append(query_id)
        self._reading = reading
        self._problems = problems
        self._first = First(problems)
        self._encoder = RowEncoder("traces", {})
        self._others: list[Location] = []

    def add(self, trace: Trace, location: Location) -> None:
        """Add the row of a trace, or the problem with it; a trace without a golden query is counted."""
        query_ids = self._queries_of(trace)
        query_id = query_ids[0] if query_ids else ""
        if not query_ids:
            self._others.append(location)
        elif len(query_ids) > 1:
            which = some(query_ids, "golden query")
            self._problems.problem(location, f"the question is that of {which}; set the attribute {QUERY_ID}")
        elif self._first.is_new(query_id, location, f"trace of the query {query_id!r}", "trace"):
            try:
                self.rankings[query_id] = self._row(query_id, trace, location)
            except (CallFailed, SpanError) as error:
                self._problems.problem(location, f"query {shown(query_id)}: {error}")
            except InputError as error:
                self._problems.problem(location, error.problems[0])

    def conclude(self) -> None:
        """Warn of traces that are left out; it is a problem if no trace belongs to a golden query."""
        if self._others and not self.rankings:
            why = f"the attribute {QUERY_ID} names one, or its question is that of one"
            self._problems.problem(self._others[0], f"no trace belongs to a golden query: {why}")
        elif self._others:
            many = len(self._others)
            what = "1 trace belongs" if many == 1 else f"{many:,} traces belong"
            verb = "is" if many == 1 else "are"
            self._problems.warning(f"{self._others[0]}: {what} to no golden query and {verb} left out")

    def _queries_of(self, trace: Trace) -> list[str]:
        """Return the ids of the golden queries that a trace may be about: the one that it names, or by the question."""
        named = query_id_of(trace)
        if named is not None and as_id(named) in self._texts:
            return [as_id(named)]
        return next((ids for question in questions_of(trace) if (ids := self._by_text.get(question))), [])

    def _row(self, query_id: str, trace: Trace, location: Location) -> Ranking:
        response = response_of_trace(trace, self._reading)
        if response.results is None and response.response is UNSET:
            raise CallFailed("nothing", "none of its spans is a retrieval with documents, or has an answer")
        row = _fields(query_id, response, trace)
        further = {name: row[name] for name in row if name not in {"query_id", "results", "latency_ms"}}
        self._encoder.row(query_id, row.get("results", UNSET), row.get("latency_ms"), further)
        results = [Retrieved(doc_id=result["doc_id"], score=result.get("score")) for result in row.get("results", ())]
        return Ranking(query_id=query_id, results=results, location=location, row=msgspec.json.encode(row))


def _fields(query_id: str, response: Response, trace: Trace) -> dict[str, Any]:
    row: dict[str, Any] = {"query_id": query_id}
    if response.results is not None:
        row["results"] = response.results
    if trace.ms is not None:
        row["latency_ms"] = round(trace.ms, 3)
    for name in FIELDS:
        value = getattr(response, name)
        if value is not UNSET and (value is not None or (name == "response" and response.error is not None)):
            row[name] = shorten(value, bounds.ANSWER) if name == "error" else value
    if (model := embedding_model(trace)) is not None:
        row["embedding_model"] = model
    return row


FORMAT = Format(
    read=read, gives={"traces": {"run"}}, adds_to={"golden": "traces"}, options=("doc_id", "use", "retrieved")
)
