"""Recording from Python: the run is one to check, and what is wrong is raised."""

import os
from pathlib import Path
from typing import Any

import pytest

from ragcontract import CallFailed, Context, InputError, Response, check, record_run
from ragcontract.record.events import Event, QuestionDone
from tests.builders import golden, write_jsonl


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "golden.jsonl", [golden("q1", tags=["a"]), golden("q2"), golden("q3")])


def search(_query: str) -> list[str]:
    return ["doc1", "doc2"]


def flaky(_query: str, context: Context) -> Response:
    if context.query_id == "q2":
        raise CallFailed("busy", "come back later")
    return Response(results=[{"doc_id": "doc1"}], response="Yes.")


def test_a_function_is_recorded_and_checked_without_a_file(questions: Path) -> None:
    recording = record_run(search, golden=questions)
    assert check(golden=questions, run=recording.rows).verdict == "pass"  # type: ignore[arg-type]
    assert recording.failures == ()
    assert recording.details["done"] == 3
    assert os.listdir(questions.parent) == ["golden.jsonl"]  # noqa: PTH208


def test_a_run_may_be_written(questions: Path, tmp_path: Path) -> None:
    out = tmp_path / "runs" / "run.jsonl.gz"
    recording = record_run(search, golden=[questions], out=out, repeats=2, versions={"index_version": "7"})
    assert recording.rows == str(out)
    assert check(golden=questions, run=out, repeats=True).verdict == "pass"


def test_questions_that_fail_are_raised_or_left_out(questions: Path) -> None:
    with pytest.raises(InputError, match="on_failure='leave-out' leaves them out"):
        record_run(flaky, golden=questions)
    recording = record_run(flaky, golden=questions, on_failure="leave-out")
    assert list(recording.rows or ()) == ["q1", "q3"]
    (failed,) = recording.failures
    assert (failed.query_id, failed.failure.kind, failed.failure.message) == ("q2", "busy", "come back later")


def test_a_part_may_be_recorded(questions: Path) -> None:
    assert list(record_run(search, golden=questions, tags="a").rows or ()) == ["q1"]
    assert list(record_run(search, golden=questions, queries=["q3"], rate="600/min").rows or ()) == ["q3"]


def test_who_watches_is_called_with_what_happens(questions: Path) -> None:
    events: list[Event] = []
    record_run(search, golden=questions, watch=events.append, limit=2)
    assert [event.query_id for event in events if isinstance(event, QuestionDone)] == ["q1", "q2"]


def test_all_that_is_wrong_is_raised_at_once(questions: Path) -> None:
    wrong: Any = {"top": 0, "rate": "fast", "on_failure": "ignore", "repeats": 2, "versions": {"size": "x"}}
    with pytest.raises(InputError) as raised:
        record_run(search, golden=questions, **wrong)
    assert [problem.partition(": ")[0] for problem in raised.value.problems] == [
        "top",
        "rate",
        "on_failure",
        "versions",
        "repeats",
    ]


def test_secrets_are_in_the_environment_and_not_too_short_to_hide(
    questions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "1234567")
    monkeypatch.delenv("ABSENT", raising=False)
    with pytest.raises(InputError) as raised:
        record_run(search, golden=questions, secrets=["SHORT", "ABSENT", "A B"])
    assert raised.value.problems == [
        "secrets: SHORT: has fewer than 8 characters, too few to keep it out of what is written",
        "secrets: ABSENT: there is no environment variable of this name",
        "secrets: 'A B': is not a name of an environment variable",
    ]
