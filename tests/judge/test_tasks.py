"""What a judge is told: fixed texts, whose version changes with them, and schemas with the names of the wire."""

import json
import random
from typing import Any

import pytest

from ragcontract.core.config_sections import Task
from ragcontract.judge.claims_run import split_reference
from ragcontract.judge.endpoint import asked_judge, instructions_digest
from ragcontract.judge.interface import Ask, VoteSettings
from ragcontract.judge.judge_case import judge_case
from tests.judge.judges import TASKS, Model, case, honestly

ONE = VoteSettings(votes=1)


def asked(task: Any) -> Ask:
    """Return what a model is asked in a task; ``claims`` are those of a reference."""
    if task == "claims":
        model = Model('{"claims": []}')
        split_reference("?", "The words.", model, ONE, random.Random(1))
    else:
        model = Model(honestly)
        judge_case(case(task), model, ONE, random.Random(1))
    return model.asked[0]


@pytest.mark.parametrize(
    ("task", "digest"),
    [
        ("attribution", "0cd41d0659756e03"),
        ("confirmation", "ce314bd1b04d4594"),
        ("criteria", "0879f7ab97342a0c"),
        ("claims", "cab29032fbdbfd54"),
    ],
)
def test_the_texts_of_this_version_of_the_protocol_are_these(task: Any, digest: str) -> None:
    """A judge is calibrated with its texts: if they change, so must the version that fingerprints have."""
    assert (asked_judge(task, ONE, Model()).protocol, instructions_digest(task)) == (1, digest)


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("attribution", ["id", "quote", "context", "reason", "supported"]),
        ("confirmation", ["id", "quote", "context", "reason", "verdict"]),
        ("criteria", ["id", "quote", "reason", "met"]),
    ],
)
def test_evidence_and_reason_come_before_the_verdict(task: Task, fields: list[str]) -> None:
    schema: Any = asked(task).schema
    assert list(schema["properties"]) == ["verdicts"]
    item = schema["properties"]["verdicts"]["items"]
    assert list(item["properties"]) == item["required"] == fields
    assert not item["additionalProperties"]


def test_a_confirmation_has_three_verdicts() -> None:
    schema: Any = asked("confirmation").schema
    words = ["asserts_unsupported", "denies_or_reports_absence", "supported_by_context"]
    assert schema["properties"]["verdicts"]["items"]["properties"]["verdict"]["enum"] == words


@pytest.mark.parametrize("task", [*TASKS, "claims"])
def test_the_rules_name_only_fields_with_the_nonce(task: str) -> None:
    ask = asked(task)
    nonce = next(iter(json.loads(ask.user))).partition("_")[0]
    assert f"{nonce}_fault" in ask.system
    if task != "claims":
        items = {"attribution": "claims", "criteria": "criteria", "confirmation": "flagged"}[task]
        assert f"{nonce}_{items}" in ask.system
    assert all(len(line) <= 120 for line in ask.system.replace(nonce, "{nonce}").splitlines())


def test_claims_are_split_with_the_words_that_they_are_from() -> None:
    schema: Any = asked("claims").schema
    assert list(schema["properties"]["claims"]["items"]["properties"]) == ["quote", "text"]
