"""The details of a recording are one JSON document."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragcontract import __version__
from ragcontract.files.git import commit_of
from ragcontract.net.secrets import Secrets
from ragcontract.record.events import End, Event, Failure, QuestionDone, RecordingProgress, Retry, Start
from ragcontract.record.interface import Response
from ragcontract.record.watching import Details
from tests.record.systems import target_of
from tests.runner import ROOT

SECRET = "topsecretvalue"


class App:
    def run(self, query: str) -> list[str]:
        return [query]

    def versions(self) -> dict[str, str]:
        return {"index_version": "7"}


def case(number: int, **fields: Any) -> QuestionDone:
    response = Response(results=[], llm_model="m-1", usage={"total_tokens": 5}, metadata={"n": number})
    return QuestionDone(
        **{"query_id": f"q{number}", "repeat": 1, "attempts": 1, "ms": float(number), "response": response, **fields}
    )


def document(*events: Event, folder: Path = ROOT) -> dict[str, Any]:
    details = Details(target_of(ROOT, App), secrets=Secrets({"TOKEN": SECRET}), commit=commit_of(folder))
    for event in events:
        details(event)
    made = b"".join(details.document())
    details.close()
    assert SECRET.encode() not in made
    found: dict[str, Any] = json.loads(made)
    return found


def test_it_says_what_was_recorded_and_with_what() -> None:
    made = document()
    assert made["target"]["name"] == "tests.record.watching.test_details:App"
    assert len(made["target"]["sha256"]) == 64
    assert made["tool"] == {"name": "rag-contract", "version": __version__}
    assert len(made["git"]["sha"]) == 40
    assert made["git"]["dirty"] in {True, False}
    assert made["packages"]["pytest"] == pytest.__version__
    assert made["versions"] == {"index_version": "7"}
    assert made["cases"] == []


def test_outside_of_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert document(folder=tmp_path)["git"] is None


def test_it_counts_and_measures() -> None:
    failed = Failure(kind="http_error", message=f"denied for {SECRET}", detail={"status_code": 403})
    made = document(
        Start(target="t", total=104, kept=1),
        case(500),
        *[case(number, attempts=1 + (number == 7)) for number in range(1, 101)],
        Retry(query_id="q7", repeat=1, attempt=1, pause=1, failure=failed),
        QuestionDone(query_id="bad", repeat=1, attempts=3, ms=9, failure=failed),
        case(200, response=Response(error="no model")),
        RecordingProgress(done=1, total=1, retried=0, failed=0, rate=1, p95_ms=None, seconds_left=None),
        End(done=103, failed=1, retried=3, written=True, failures={"http_error": 1}),
    )
    assert made["counts"] == {
        "wanted": 104,
        "kept_from_before": 1,
        "asked": 103,
        "failed": 1,
        "with_error": 1,
        "needed_more_than_one_attempt": 2,
        "attempts_repeated": 3,
    }
    assert made["latency_ms"] == {"first": 500, "p50": 51, "p95": 96, "p99": 100, "max": 200}
    assert (made["models"], made["usage"]) == ({"m-1": 101}, {"total_tokens": 505})
    detail = {"kind": "http_error", "message": "denied for ***", "detail": {"status_code": 403}}
    assert made["failures"] == [{"query_id": "bad", "repeat": 1, **detail}]
    assert (made["more_failures"], made["written"], made["failures_by_kind"]) == (0, True, {"http_error": 1})
    assert len(made["cases"]) == 103
    assert made["cases"][1] == {
        "query_id": "q1",
        "repeat": 1,
        "ok": True,
        "ms": 1,
        "attempts": 1,
        "usage": {"total_tokens": 5},
        "metadata": {"n": 1},
    }
    assert made["cases"][-1]["error"] == "no model"


def test_a_secret_that_a_system_returned_is_blanked() -> None:
    """``document`` looks for it in all that is written."""
    made = document(case(1, response=Response(metadata={"url": f"https://host/?key={SECRET}"}, error=SECRET)))
    assert made["cases"][0]["error"] == "***"


def test_the_time_of_the_only_question_is_that_of_the_first() -> None:
    assert document(case(3))["latency_ms"] == {"first": 3}
    assert document()["latency_ms"] is None


def test_half_a_character_does_not_lose_the_details() -> None:
    response = Response(results=[], usage={"a\ud800": 1}, metadata={"b": ["\ud800"]})
    made = document(case(1, response=response))
    assert made["cases"][0]["metadata"] == {"b": ["\\ud800"]}
    assert made["usage"] == {"a\\ud800": 1}


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_versions_that_fail_do_not_lose_the_details(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def versions(_self: App) -> dict[str, str]:
        raise error

    monkeypatch.setattr(App, "versions", versions)
    assert document(case(1))["versions"] == {}
