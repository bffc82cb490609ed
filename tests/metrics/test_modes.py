"""The three metrics of the mode: what each row of a query counts for, and what is wrong input."""

from collections.abc import Sequence

import pytest

from ragcontract.core.config_sections import AnswerSettings
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.metric import Family, Invalid, MetricSettings, Missing
from ragcontract.core.run import RunRow
from ragcontract.metrics.answers import modes
from tests.records import query


def families(**answers: str) -> Sequence[Family]:
    return list(modes(MetricSettings(cutoffs=(5,), answers=AnswerSettings(**answers))))  # type: ignore[arg-type]


def values(expected: str | None, mode: str | None, error: str | None = None, **answers: str) -> dict[str, object]:
    """Return the values of a row by metric; without those that do not apply."""
    answer = ExpectedAnswer(expected_mode=expected) if expected else None  # type: ignore[arg-type]
    asked, row = query("q1", answer=answer), RunRow(query_id="q1", mode=mode, error=error)
    found = {family.metrics[0].key: family.values(asked, row) for family in families(**answers)}
    return {key: of if isinstance(of, Missing | Invalid) else of[0] for key, of in found.items() if of != ()}


@pytest.mark.parametrize(
    ("expected", "mode", "found"),
    [
        ("abstain", "abstain", {"mode_accuracy": 1.0, "false_answer_rate": 0.0}),
        ("abstain", "trustworthy", {"mode_accuracy": 0.0, "false_answer_rate": 1.0}),
        ("abstain", "disputed", {"mode_accuracy": 0.0, "false_answer_rate": 1.0}),
        ("trustworthy", "trustworthy", {"mode_accuracy": 1.0, "over_refusal_rate": 0.0}),
        ("trustworthy", "disputed", {"mode_accuracy": 0.0, "over_refusal_rate": 0.0}),
        ("disputed", "abstain", {"mode_accuracy": 0.0, "over_refusal_rate": 1.0}),
        (None, None, {}),
        (None, "nonsense", {}),
    ],
)
def test_each_rate_applies_to_the_queries_that_it_is_about(
    expected: str | None, mode: str | None, found: dict[str, float]
) -> None:
    assert values(expected, mode) == found


def test_a_row_without_a_mode_cannot_be_judged() -> None:
    why = Missing("has no mode, which expected_mode needs; export trustworthy, disputed or abstain")
    assert values("abstain", None) == {"mode_accuracy": why, "false_answer_rate": why}


def test_a_row_without_a_mode_is_as_bad_as_can_be_where_the_config_says_so() -> None:
    fails = {"missing_modes": "fail"}
    assert values("abstain", None, **fails) == {"mode_accuracy": 0.0, "false_answer_rate": 1.0}
    assert values("disputed", None, **fails) == {"mode_accuracy": 0.0, "over_refusal_rate": 1.0}


def test_an_application_that_failed_is_as_bad_as_can_be() -> None:
    assert values("abstain", None, "timeout") == {"mode_accuracy": 0.0, "false_answer_rate": 1.0}
    assert values("disputed", None, "timeout") == {"mode_accuracy": 0.0, "over_refusal_rate": 1.0}
    assert values("abstain", "abstain", "timeout") == {"mode_accuracy": 0.0, "false_answer_rate": 1.0}


@pytest.mark.parametrize("answers", [{}, {"missing_modes": "fail"}])
def test_an_unknown_mode_is_wrong_input_and_the_nearest_one_is_named(answers: dict[str, str]) -> None:
    why = Missing("has the mode \"Abstained\", expected trustworthy, disputed or abstain; did you mean 'abstain'?")
    assert values("abstain", "Abstained", **answers) == {"mode_accuracy": why, "false_answer_rate": why}
    assert values("abstain", "", **answers)["mode_accuracy"] == Missing(
        'has the mode "", expected trustworthy, disputed or abstain'
    )
