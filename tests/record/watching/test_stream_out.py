"""The stream of events: one a line, as they happen, until the file cannot be written any more."""

import json
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.errors import OutputError
from ragcontract.net.secrets import Secrets
from ragcontract.record.events import End, Event, Failure, QuestionDone, RecordingProgress, Retry, Start
from ragcontract.record.interface import Response
from ragcontract.record.watching import EventStream
from tests.needs import require

TIME = datetime(2026, 11, 22, 11, 30, tzinfo=UTC)
FAILED = Failure(kind="read_timeout", message="no answer", detail={"status_code": 503})
EVENTS: tuple[Event, ...] = (
    Start(target="search.py:find", total=2, kept=0),
    Retry(query_id="q1", repeat=1, attempt=1, pause=0.5, failure=FAILED),
    QuestionDone(
        query_id="q1",
        repeat=1,
        attempts=2,
        ms=12.3456,
        response=Response(results=[{"doc_id": "a"}, {"doc_id": 7}], response="All is well."),
    ),
    QuestionDone(query_id="q2", repeat=1, attempts=1, ms=5, failure=FAILED),
    RecordingProgress(done=2, total=2, retried=1, failed=1, rate=1.5, p95_ms=12.3, seconds_left=None),
    End(done=2, failed=1, retried=1, written=False, failures={"read_timeout": 1}),
)


def stream_of(path: Path | str, *args: Any, warnings: list[str] | None = None, **options: Any) -> EventStream:
    said: list[str] = [] if warnings is None else warnings
    return EventStream(str(path), *args, warn=said.append, clock=lambda: TIME, **options)


def written(path: Path, *args: Any, **options: Any) -> bytes:
    stream = stream_of(path, *args, **options)
    for event in EVENTS:
        stream(event)
    stream.close()
    return path.read_bytes()


def events(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_every_event_is_a_line(tmp_path: Path) -> None:
    at = "2026-11-22T11:30:00.000Z"
    failure = {"kind": "read_timeout", "message": "no answer", "detail": {"status_code": 503}}
    assert events(written(tmp_path / "events.jsonl")) == [
        {"event": "start", "at": at, "seq": 1, "target": "search.py:find", "total": 2, "kept": 0},
        {
            "event": "retry",
            "at": at,
            "seq": 2,
            "query_id": "q1",
            "repeat": 1,
            "attempt": 1,
            "pause": 0.5,
            "failure": failure,
        },
        {
            "event": "case",
            "at": at,
            "seq": 3,
            "query_id": "q1",
            "repeat": 1,
            "ok": True,
            "ms": 12.346,
            "attempts": 2,
            "documents": ["a", 7],
        },
        {
            "event": "case",
            "at": at,
            "seq": 4,
            "query_id": "q2",
            "repeat": 1,
            "ok": False,
            "ms": 5,
            "attempts": 1,
            "failure": failure,
        },
        {
            "event": "progress",
            "at": at,
            "seq": 5,
            "done": 2,
            "total": 2,
            "retried": 1,
            "failed": 1,
            "rate": 1.5,
            "p95_ms": 12.3,
            "seconds_left": None,
        },
        {
            "event": "end",
            "at": at,
            "seq": 6,
            "done": 2,
            "failed": 1,
            "retried": 1,
            "written": False,
            "failures": {"read_timeout": 1},
        },
    ]


def test_a_line_is_there_as_soon_as_it_happens(tmp_path: Path) -> None:
    path = tmp_path / "new" / "events.jsonl"
    stream = stream_of(path)
    stream(EVENTS[0])
    assert len(events(path.read_bytes())) == 1
    stream.close()


@pytest.mark.parametrize(("chars", "text"), [(0, None), (5, "All …"), (100, "All is well.")])
def test_answers_are_cut(chars: int, text: str | None, tmp_path: Path) -> None:
    found = events(written(tmp_path / "events.jsonl", answer_chars=chars))
    assert found[2].get("response") == text


def test_a_response_with_an_error_says_so(tmp_path: Path) -> None:
    stream = stream_of(tmp_path / "events.jsonl")
    stream(QuestionDone(query_id="q", repeat=1, attempts=1, ms=1, response=Response(error="no model")))
    stream.close()
    assert events((tmp_path / "events.jsonl").read_bytes())[0]["error"] == "no model"


def test_a_secret_is_in_no_event(tmp_path: Path) -> None:
    secret = "topsecretvalue"
    stream = stream_of(tmp_path / "events.jsonl", secrets=Secrets({"TOKEN": secret}), answer_chars=100)
    stream(QuestionDone(query_id="q", repeat=1, attempts=1, ms=1, response=Response(response=f"it is {secret}")))
    stream.close()
    assert b"it is ***" in (tmp_path / "events.jsonl").read_bytes()


def test_a_foreign_parser_reads_json_text_sequences(tmp_path: Path) -> None:
    """RFC 7464: jq reads it with --seq, and only so."""
    require("jq")
    data = written(tmp_path / "events.seq", "json-seq")
    assert data.startswith(b'\x1e{"event":"start"')
    read = subprocess.run(["jq", "--seq", "-r", ".event"], input=data, capture_output=True, check=True).stdout
    assert read.replace(b"\x1e", b"").split() == [b"start", b"retry", b"case", b"case", b"progress", b"end"]


def test_a_pipe_whose_reader_has_left_ends_the_stream_only() -> None:
    read, write = os.pipe()
    warnings: list[str] = []
    stream = stream_of(f"/dev/fd/{write}", warnings=warnings)
    os.close(write)
    stream(EVENTS[0])
    assert events(os.read(read, 4096))[0]["event"] == "start"
    os.close(read)
    for event in EVENTS:
        stream(event)
    assert warnings == [f"/dev/fd/{write}: the stream of events ends here (its reader has left); the recording goes on"]


def test_a_pipe_that_takes_a_part_gets_the_rest() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    stream = stream_of(f"/dev/fd/{write}", answer_chars=1 << 20)
    text = "x" * 300_000
    got = bytearray()

    def reader() -> None:
        while part := os.read(read, 4096):
            got.extend(part)

    thread = threading.Thread(target=reader)
    thread.start()
    for number in range(3):
        stream(QuestionDone(query_id=str(number), repeat=1, attempts=1, ms=1, response=Response(response=text)))
    stream.close()
    os.close(write)
    thread.join()
    os.close(read)
    assert [(line["query_id"], line["response"] == text) for line in events(bytes(got))] == [
        ("0", True),
        ("1", True),
        ("2", True),
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
def test_a_full_disk_ends_the_stream_only() -> None:
    warnings: list[str] = []
    stream = stream_of("/dev/full", warnings=warnings)
    for event in EVENTS:
        stream(event)
    stream.close()
    assert warnings == ["/dev/full: the stream of events ends here (No space left on device); the recording goes on"]


def test_standard_output_that_goes_to_a_file_is_not_truncated(tmp_path: Path) -> None:
    program = (
        "from ragcontract.record.watching import EventStream\n"
        "from ragcontract.record.events import Start\n"
        "EventStream('/dev/stdout', warn=print)(Start(target='t', total=1, kept=0))\n"
    )
    path = tmp_path / "out"
    path.write_text("before\n")
    with path.open("a") as out:
        subprocess.run([sys.executable, "-c", program], stdout=out, check=True)
    assert [line[:7] for line in path.read_text().splitlines()] == ["before", '{"event']


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder"):
        stream_of(tmp_path)


def test_a_file_is_overwritten_by_the_first_event_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("of another recording, which is under way\n" * 99)
    stream = stream_of(path)
    assert path.read_text().startswith("of another")
    stream(EVENTS[0])
    stream.close()
    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["start"]


def test_half_a_character_does_not_end_the_recording(tmp_path: Path) -> None:
    stream = stream_of(tmp_path / "events.jsonl", answer_chars=9)
    stream(QuestionDone(query_id="q1", repeat=1, attempts=1, ms=5, response=Response(response="a\ud800")))
    stream.close()
    assert json.loads((tmp_path / "events.jsonl").read_text())["response"] == "a\\ud800"
