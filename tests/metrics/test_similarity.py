"""The similarity of answers to their references."""

import sys
from typing import Any

import pytest
from msgspec import UNSET

from ragcontract.answers.metric_options import BleuOptions
from ragcontract.answers.translation_scores import metric_of
from ragcontract.core import bounds
from ragcontract.core.config_sections import AnswerSettings
from ragcontract.core.golden import ExpectedAnswer
from ragcontract.core.metric import Demanding, Invalid, MetricSettings, Missing
from ragcontract.core.run import RunRow, Values
from ragcontract.metrics.answers import similarity
from tests.records import query

COMPARED = {"rouge_l", "exact_match"}
ASKED = query("q", answer=ExpectedAnswer(reference="Within 30 days."))


def values(response: Any, error: str | None = None, *, normalise: bool = True) -> list[Values | Missing | Invalid]:
    settings = MetricSettings(cutoffs=(5,), answers=AnswerSettings(normalise=normalise))
    row = RunRow(query_id="q", results=[], response=response, error=error)
    return [family.values(ASKED, row) for family in similarity(settings) if family.metrics[0].key in COMPARED]


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
    assert [family.values(query("q", "a"), row) for family in similarity(MetricSettings(cutoffs=(5,)))] == [()] * 4


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


def test_bleu_and_chrf_are_computed_with_the_options_of_the_configuration() -> None:
    row = RunRow(query_id="q", results=[], response="返品は三十日以内")
    asked = query("q", answer=ExpectedAnswer(reference="返品は三十日"))
    of_options = {}
    for tokenize in ("13a", "char"):
        settings = MetricSettings(cutoffs=(5,), declared={"bleu": BleuOptions(words=tokenize)})
        _, bleu, chrf, _ = similarity(settings)
        of_options[tokenize] = bleu.values(asked, row), chrf.values(asked, row)
        assert bleu.metrics[0].fingerprint == f"sacrebleu 2, {tokenize}"
    assert of_options["13a"][0] == (0.0,)
    assert of_options["char"][0] == pytest.approx(((6 / 8 * 5 / 7 * 4 / 6 * 3 / 5) ** 0.25,))
    assert of_options["13a"][1] == of_options["char"][1]


@pytest.mark.parametrize(("response", "error"), [(None, None), ("", None), ("Within 30 days.", "timeout")])
def test_no_answer_is_no_translation(response: str | None, error: str | None) -> None:
    row = RunRow(query_id="q", results=[], response=response, error=error)
    _, bleu, chrf, _ = similarity(MetricSettings(cutoffs=(5,)))
    assert (bleu.values(ASKED, row), chrf.values(ASKED, row)) == ((0.0,), (0.0,))


def test_without_sacrebleu_a_contract_with_bleu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    metric_of.cache_clear()
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    for family in list(similarity(MetricSettings(cutoffs=(5,))))[1:3]:
        assert isinstance(family, Demanding)
        (complaint,) = family.complaints([])
        assert complaint.message.startswith(f"{family.metrics[0].key} needs sacrebleu; install it: pip install")
