"""The rule made from ``expected_mode``."""

from pathlib import Path

import pytest

from tests.builders import Row, run
from tests.rules.answers import broken, refusal, says

ABSTAIN: Row = {"expected_mode": "abstain"}
FAILS = "answers: {missing_modes: fail}\n"


def row(mode: str | None, **fields: str) -> Row:
    return {"mode": mode, **fields}


def test_the_expected_mode_holds(tmp_path: Path) -> None:
    assert broken(tmp_path, ABSTAIN, row("abstain")) == []


def test_another_mode_breaks_it(tmp_path: Path) -> None:
    assert broken(tmp_path, ABSTAIN, row("disputed")) == [
        "fail expected_mode: expected mode abstain; found: mode disputed"
    ]


@pytest.mark.parametrize("mode", [None, "", "ABSTAIN"])
def test_a_missing_or_unknown_mode_cannot_be_judged(mode: str | None, tmp_path: Path) -> None:
    assert refusal(tmp_path, ABSTAIN, row(mode))


def test_a_missing_mode_breaks_it_where_the_config_says_so(tmp_path: Path) -> None:
    assert broken(tmp_path, ABSTAIN, row(None), FAILS) == ["fail expected_mode: expected mode abstain; found: no mode"]
    assert refusal(tmp_path, ABSTAIN, row("ABSTAIN"), FAILS)


@pytest.mark.parametrize(("error", "found"), [("timeout", "the error timeout"), (" ", "an error")])
def test_an_application_that_failed_answered_in_no_mode(error: str, found: str, tmp_path: Path) -> None:
    said = [f"fail expected_mode: expected mode abstain; found: {found}"]
    assert broken(tmp_path, ABSTAIN, row(None, error=error)) == said
    assert broken(tmp_path, ABSTAIN, row("abstain", error=error)) == said, "or all pass while it is down"


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
