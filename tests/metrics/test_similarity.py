"""The similarity of answers to their references."""

from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.metric import Invalid, MetricSettings, Missing
from ragcontract.core.run import RunRow, Values
from ragcontract.metrics.answers import similarity
from tests.records import query

ASKED = query("q", answer=ExpectedAnswer(reference="Within 30 days."))


def values(response: Any, error: str | None = None, *, normalise: bool = True) -> list[Values | Missing | Invalid]:
    settings = MetricSettings(cutoffs=(5,), answers=AnswerSettings(normalise=normalise))
    row = RunRow(query_id="q", results=[], response=response, error=error)
    return [family.values(ASKED, row) for family in similarity(settings)]


def test_the_answer_is_compared_with_the_reference() -> None:
    assert values("Within 30 days.") == [(1.0,), (1.0,)]
    assert values("within **30**  days.") == [(1.0,), (1.0,)]
    assert values("within **30**  days.", normalise=False) == [(1.0,), (0.0,)]
    assert values("Within 60 days") == [(pytest.approx(2 / 3),), (0.0,)]


@pytest.mark.parametrize(("response", "error"), [(None, None), ("", None), ("Within 30 days.", "timeout")])
def test_no_answer_has_nothing_of_the_reference(response: str | None, error: str | None) -> None:
    assert values(response, error) == [(0.0,), (0.0,)]


def test_an_answer_that_is_not_exported_is_missing_in_the_same_words_so_that_it_is_said_once() -> None:
    needed = "has no response to compare with its reference; export it, as null if there was none"
    assert values(UNSET) == [Missing(needed), Missing(needed)]


def test_a_query_without_a_reference_does_not_count() -> None:
    row = RunRow(query_id="q", results=[])
    assert [family.values(query("q", "a"), row) for family in similarity(MetricSettings(cutoffs=(5,)))] == [(), ()]


def test_answers_that_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SUBSEQUENCE", 8)
    found, _ = values("a b c")
    assert found == Missing(
        "has a response of 3 words and a reference of 3, too many for rouge_l: their product is over 8"
    )


def test_equality_that_is_computed_otherwise_is_not_compared() -> None:
    prints = {
        next(reversed(list(similarity(MetricSettings(cutoffs=(5,), answers=AnswerSettings(normalise=one))))))
        .metrics[0]
        .fingerprint
        for one in (True, False)
    }
    assert len(prints) == 2
