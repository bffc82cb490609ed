"""The rule made from ``expected_mode``."""

from pathlib import Path
from typing import Any

import pytest

from ragcontract.core.answer_settings import AnswerSettings
from ragcontract.core.phrase import render
from ragcontract.core.rule import RowContext, RuleSettings
from ragcontract.core.run import RunRow
from ragcontract.rules.answered import ExpectedMode
from tests.builders import run
from tests.records import query
from tests.rules.answers import broken, says

RULE = ExpectedMode(mode="abstain")
ASKED = query("q1")


def context(**answers: Any) -> RowContext:
    return RowContext(settings=RuleSettings(k=5, answers=AnswerSettings(**answers)))


def row(mode: str | None) -> RunRow:
    return RunRow(query_id="q1", mode=mode)


def test_the_expected_mode_holds() -> None:
    assert list(RULE.violations(ASKED, row("abstain"), context())) == []
    assert RULE.lacking(ASKED, row("abstain"), context()) is None


def test_another_mode_breaks_it() -> None:
    (violation,) = RULE.violations(ASKED, row("disputed"), context())
    assert (violation.rule, violation.expected, violation.actual) == (
        "expected_mode",
        ("mode abstain",),
        ("mode disputed",),
    )


@pytest.mark.parametrize("mode", [None, "", "ABSTAIN"])
def test_a_missing_or_unknown_mode_cannot_be_judged(mode: str | None) -> None:
    assert RULE.lacking(ASKED, row(mode), context())


def test_a_missing_mode_breaks_it_where_the_config_says_so() -> None:
    fails = context(missing_modes="fail")
    assert RULE.lacking(ASKED, row(None), fails) is None
    assert RULE.lacking(ASKED, row("ABSTAIN"), fails) is not None
    (violation,) = RULE.violations(ASKED, row(None), fails)
    assert violation.actual == ("no mode",)


@pytest.mark.parametrize(("error", "found"), [("timeout", 'the error "timeout"'), (" ", "an error")])
def test_an_application_that_failed_answered_in_no_mode(error: str, found: str) -> None:
    failed = RunRow(query_id="q1", error=error)
    assert RULE.lacking(ASKED, failed, context()) is None
    (violation,) = RULE.violations(ASKED, failed, context())
    assert render(violation.actual) == found
    (abstaining,) = RULE.violations(ASKED, RunRow(query_id="q1", mode="abstain", error=error), context())
    assert render(abstaining.actual) == found, "or all questions without an answer pass while it is down"


@pytest.mark.parametrize("response", [None, "", " \n", "\u200b", "<!-- x -->", "..."])
@pytest.mark.parametrize("mode", ["trustworthy", "disputed"])
def test_a_response_that_says_nothing_is_an_answer_in_no_mode_but_abstain(
    tmp_path: Path, response: str | None, mode: str
) -> None:
    (broken_rule,) = broken(tmp_path, {"expected_mode": mode}, says(response, mode=mode))
    assert broken_rule == f"fail expected_mode: expected mode {mode}; found: no answer"
    assert broken(tmp_path, {"expected_mode": "abstain"}, says(response, mode="abstain")) == []


def test_a_row_may_have_a_mode_without_a_response(tmp_path: Path) -> None:
    assert broken(tmp_path, {"expected_mode": "trustworthy"}, run("q", mode="trustworthy")) == []
