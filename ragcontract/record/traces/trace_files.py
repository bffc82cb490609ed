"""Reads files of spans: OTLP's JSON line by line, as the collector writes it, or spans as JSON objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ragcontract.core import bounds
from ragcontract.files.jsonl import UNDECODABLE
from ragcontract.files.malformed import malformed
from ragcontract.files.nesting import check_nesting
from ragcontract.files.opening import READ_ERRORS, Progress, read_problem, read_within
from ragcontract.files.problems import Collector
from ragcontract.record.traces.otlp_json import Request, spans_in
from ragcontract.record.traces.span_json import is_span, span_of
from ragcontract.record.traces.spans import Span, SpanError

OTHER_SIGNALS = ("resourceMetrics", "resourceLogs", "resourceProfiles")
EXPECTED = "expected OTLP as JSON lines (resourceSpans), as the collector's file exporter writes it, or spans as JSON"


def read_spans(paths: Sequence[str], problems: Collector, progress: Progress) -> Iterator[tuple[str, Span]]:
    """Yield the spans of files, each with its location; ``problems`` collects what is wrong with the files."""
    left = bounds.CONVERTED_SPANS
    for path in paths:
        for location, value in _values(path, problems, progress):
            try:
                spans = _spans(value)
            except SpanError as error:
                problems.problem(location, str(error))
                continue
            left -= len(spans)
            if left < 0:
                problems.problem(location, f"there are more than {bounds.CONVERTED_SPANS:,} spans; convert fewer files")
                return
            for span in spans:
                yield location, span


def _values(path: str, problems: Collector, progress: Progress) -> Iterator[tuple[str, Any]]:
    """Yield what is in a file: its lines, or the items of the one document that it is."""
    try:
        data, _ = read_within(bounds.RESULTS, path, progress, beyond="; convert it in several parts")
    except READ_ERRORS as error:
        problems.problem(path, read_problem(error))
        return
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line and not line.isspace()]
    if not lines:
        problems.problem(path, f"is empty; {EXPECTED}")
        return
    if data.lstrip().startswith(b"[") or not _is_json(lines[0][1]):
        lines = [(1, data)]
    for number, line in lines:
        try:
            check_nesting(line)
            value = msgspec.json.decode(line)
        except UNDECODABLE as error:
            within, message = malformed(line, error)
            problems.problem(f"{path}:{number + within - 1}", message)
        else:
            listed = value.get("data") if isinstance(value, dict) and "data" in value else value
            for item in listed if isinstance(listed, list) else [listed]:
                yield f"{path}:{number}", item


def _is_json(line: bytes) -> bool:
    try:
        check_nesting(line)
        msgspec.json.decode(line)
    except UNDECODABLE:
        return False
    return True


def _spans(value: Any) -> list[Span]:
    """Return the spans in a value; raises SpanError if it is nothing that has any."""
    if isinstance(value, Mapping):
        if "resourceSpans" in value:
            try:
                return list(spans_in(msgspec.convert(value, Request)))
            except msgspec.ValidationError as error:
                raise SpanError(f"is no OTLP as JSON ({error})") from error
        if any(name in value for name in OTHER_SIGNALS):
            return []
        if is_span(value):
            return [span_of(value)]
    raise SpanError(f"has no spans; {EXPECTED}")
