"""What a judge is told: fixed texts, whose version changes with them, and schemas with the names of the wire."""

from typing import Any

import pytest

from ragcontract.core.judge_settings import Task
from ragcontract.judge.endpoint import instructions_digest
from ragcontract.judge.tasks import CLAIMS, PROTOCOL, VERDICT_TASKS, AskedTask, instructions_of
from tests.judge.judges import TASKS


@pytest.mark.parametrize(
    ("task", "digest"),
    [
        ("attribution", "0cd41d0659756e03"),
        ("confirmation", "ce314bd1b04d4594"),
        ("criteria", "0879f7ab97342a0c"),
        ("claims", "cab29032fbdbfd54"),
    ],
)
def test_the_texts_of_this_version_of_the_protocol_are_these(task: AskedTask, digest: str) -> None:
    """A judge is calibrated with its texts: if they change, so must the version that fingerprints have."""
    assert (PROTOCOL, instructions_digest(task)) == (1, digest)


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("attribution", ["id", "quote", "context", "reason", "supported"]),
        ("confirmation", ["id", "quote", "context", "reason", "verdict"]),
        ("criteria", ["id", "quote", "reason", "met"]),
    ],
)
def test_evidence_and_reason_come_before_the_verdict(task: Task, fields: list[str]) -> None:
    schema: Any = instructions_of(task).schema
    assert list(schema["properties"]) == ["verdicts"]
    item = schema["properties"]["verdicts"]["items"]
    assert list(item["properties"]) == item["required"] == fields
    assert not item["additionalProperties"]


def test_a_confirmation_has_three_verdicts() -> None:
    schema: Any = instructions_of("confirmation").schema
    words = ["asserts_unsupported", "denies_or_reports_absence", "supported_by_context"]
    assert schema["properties"]["verdicts"]["items"]["properties"]["verdict"]["enum"] == words


@pytest.mark.parametrize("task", [*TASKS, "claims"])
def test_the_rules_name_only_fields_with_the_nonce(task: AskedTask) -> None:
    system = instructions_of(task).system
    assert "{nonce}_fault" in system
    if task != "claims":
        assert f"{{nonce}}_{VERDICT_TASKS[task].items}" in system
    assert all(len(line) <= 120 for line in system.splitlines())


def test_claims_are_split_with_the_words_that_they_are_from() -> None:
    schema: Any = CLAIMS.schema
    assert list(schema["properties"]["claims"]["items"]["properties"]) == ["quote", "text"]
