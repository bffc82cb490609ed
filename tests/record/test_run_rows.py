"""Rows of a run: the fields of a response, and no secret in any of them."""

import json
from pathlib import Path

import pytest

from ragcontract import CallFailed, InputError, Response, RunWriter
from ragcontract.net.secrets import NO_SECRETS, Secrets
from ragcontract.record.asking import failure_of
from ragcontract.record.events import Failure
from ragcontract.record.run_rows import FIELDS, Rows, usable_versions
from tests.record.workplace import finds

SECRET = "sk-do-not-show-me"


def test_every_field_of_a_response_is_one_of_a_row_or_goes_into_the_details(tmp_path: Path) -> None:
    in_rows = {"results", "response", "latency_ms", *FIELDS}
    assert {*Response.__struct_fields__} - in_rows == {"usage", "metadata"}
    with RunWriter(tmp_path / "run.jsonl") as run:
        run.write("q", [], **dict.fromkeys(FIELDS))


def test_no_answer_and_no_field_for_answers_are_told_apart() -> None:
    rows = Rows(None, NO_SECRETS)
    assert "response" not in json.loads(rows.encoded("q1", finds(), 1.23456))
    assert json.loads(rows.encoded("q1", Response(results=[], response=None), 1.23456)) == {
        "query_id": "q1",
        "results": [],
        "latency_ms": 1.235,
        "response": None,
    }


def test_no_row_has_a_secret() -> None:
    secrets = Secrets({"TOKEN": SECRET})
    row = Rows("run.jsonl", secrets).encoded("q1", Response(results=[{"doc_id": "a", "text": f"key {SECRET}"}]), 1)
    assert json.loads(row)["results"] == [{"doc_id": "a", "text": "key ***"}]
    with pytest.raises(CallFailed) as raised:
        Rows(None, secrets).encoded("q1", Response(results=[{"doc_id": [SECRET]}]), 1)
    assert SECRET not in str(raised.value)


def test_failures_have_no_secret() -> None:
    failed = CallFailed("http_error", f"401 for {SECRET}", detail={"response_snippet": f"{SECRET} is wrong"})
    assert failure_of(failed, Secrets({"TOKEN": SECRET})) == Failure(
        kind="http_error", message="401 for ***", detail={"response_snippet": "*** is wrong"}
    )


def test_versions_that_a_run_cannot_have_are_left_out_with_a_warning() -> None:
    usable, warnings = usable_versions({"index_version": 7, "llm_model": None, "prompt_version": "", "size": "x"})
    assert usable == {"index_version": "7"}
    assert [warning.split(" is left out")[0] for warning in warnings] == [
        "the system's version 'prompt_version'",
        "the system's version 'size'",
    ]


def test_what_cannot_be_a_version_does_not_keep_a_run_from_being_written() -> None:
    with pytest.raises(InputError, match="is not written to Parquet"):
        Rows("run.parquet", NO_SECRETS).encoded("q1", Response(results=[], mode="abstain"), 1)
